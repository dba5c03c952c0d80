"""A page with every figure, with long names where users give them."""

from __future__ import annotations

from functools import partial

import numpy as np

from ultr.pages import Drawing, Page, Section, figures
from ultr.pages.drawing import BLUE, GREEN, ORANGE

NAMES = ("a model in a folder of some length", "models/another-one", "c")
COLOURS = dict(zip(NAMES, (BLUE, ORANGE, GREEN), strict=True))
PLACES = [str(place) for place in range(1, 11)]
SHARES = np.linspace(1, 0.1, 10)
BAND = (SHARES, SHARES * 0.9, SHARES * 1.1)
SIX = (SHARES[:6], SHARES[:6] * 0.9, SHARES[:6] * 1.1)
SHOWN = np.full(10, 2310)


def every_figure() -> Page:
    """One section with all figures."""
    random = np.random.default_rng(0)
    vectors = random.normal(3, size=(200, 2)).astype(np.float64)
    titles = [f"{place}. a hat of straw… 45%" for place in range(1, 11)]
    estimates = dict.fromkeys(NAMES, (0.7, 0.6, 0.8))
    drawn = {
        "rates": figures.click_rates("position", PLACES, BAND, SHOWN),
        "rates of long names": figures.click_rates("device", [f"{each} device" for each in NAMES * 2], SIX, SHOWN[:6]),
        "over time": figures.rates_over_time([f"2024-{month:02}-01" for month in range(1, 11)], BAND, SHOWN),
        "curves": figures.curves(dict.fromkeys(NAMES, BAND), PLACES, xlabel="position", ylabel="bias over the first"),
        "links": figures.links(PLACES, np.ones((10, 10)) * 1234, parts=1),
        "map": figures.rate_map(np.outer(SHARES[:5], SHARES), ylabel="relevance group"),
        "wide map": figures.rate_map(np.outer(SHARES[:5], np.linspace(1, 0.1, 40)), ylabel="relevance group"),
        "singular values": figures.singular_values(SHARES[:5]),
        "intervals": figures.intervals(estimates, COLOURS, measure="nDCG@10"),
        "demo": figures.demo(estimates, vectors[:10], measure="nDCG@10"),
        "learning": figures.learning_curves(
            {name: (range(100, 1100, 100), SHARES.tolist()) for name in NAMES}, COLOURS, ylabel="loss", best=True
        ),
        "plane": figures.plane(vectors, np.arange(200.0) % 5, vectors[:10], vectors),
        "moves": figures.moves(titles, [f"{title[3:-4]} ▲ 3" for title in titles], range(10), titles, sides=NAMES[:2]),
        "seeds": figures.values_by_seed(
            {way: dict.fromkeys(NAMES, SHARES[:3]) for way in ("clicks", "labels")},
            {},
            labels=NAMES,
            measure="nDCG@10",
        ),
        "bands": figures.bands({NAMES[0]: (np.arange(1.0, 11), *BAND[:2])}, estimates, xlabel="x", ylabel="nDCG@10"),
        "bars": figures.bars(dict.fromkeys(NAMES, 2.0), xlabel="milliseconds"),
    }
    return Page(
        "Every figure", "", [Section("All", figures={name: partial(_given, each) for name, each in drawn.items()})]
    )


def _given(drawing: Drawing | None) -> Drawing | None:
    return drawing

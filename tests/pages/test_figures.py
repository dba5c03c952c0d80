"""What a pointer reads on each figure: the numbers that it was drawn from."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest

from ultr.pages import Drawing, blank, figures
from ultr.pages.drawing import BLUE, GREEN, tip

RATES = np.array([0.5, 0.0123, np.nan])
BAND = (RATES, RATES * 0.9, RATES * 1.1)


def told(drawing: Drawing | None) -> list[str]:
    """The texts of a figure's tips."""
    assert drawing is not None
    return [unescape(text) for text in re.findall("<title>(.*?)</title>", drawing.svg("one"))]


def test_a_tip_is_where_the_point_is_drawn_whatever_is_around_it() -> None:
    figure, axes = blank(4, 2, xlabel="x", ylabel="y")
    axes.plot([0, 7], [0, 5])
    axes.plot([3], [4], "o", color="#123456")
    tip(axes, 3, 4, "here")
    tip(axes, [0, 7], [5, 5], "there")
    limits = axes.get_xlim()
    svg = Drawing(figure, "points").svg("one")
    x, y = map(float, re.findall(r'<use [^>]*x="([\d.]+)" y="([\d.]+)" style="fill: #123456', svg)[0])
    (near,) = re.findall(r'd="M([\d.,]+)h.1"><title>here', svg)
    assert [float(each) for each in near.split(",")] == pytest.approx([x, y], abs=0.06)
    assert axes.get_xlim() == limits


def test_click_rates_say_of_how_many_impressions() -> None:
    shown = np.array([2310, 1, 0])
    assert told(figures.click_rates("position", ["1", "2", "3"], BAND, shown)) == [
        "position 1: clicked on 50 % of 2,310 impressions (45 to 55 %)",
        "position 2: clicked on 1.23 % of 1 impression (1.11 to 1.35 %)",
    ]
    drawing = figures.rates_over_time(["May", "June"], (RATES[:2], RATES[:2] * 0.9, RATES[:2] * 1.1), shown[:2])
    assert told(drawing)[0] == "May: clicked on 50 % of 2,310 impressions (45 to 55 %)"


def test_curves_say_what_they_are_the_value_of() -> None:
    nothing = np.full(3, np.nan)
    drawing = figures.curves(
        {"swaps": BAND, "raw": (np.array([1.0, 0.5, 0.25]), nothing, nothing)},
        ["1", "2", "3"],
        xlabel="position",
        ylabel="bias over the first",
    )
    assert told(drawing) == [
        "swaps, position 1: bias over the first 0.500 (0.450 to 0.550)",
        "swaps, position 2: bias over the first 0.012 (0.011 to 0.014)",
        "raw, position 1: bias over the first 1.000",
        "raw, position 2: bias over the first 0.500",
        "raw, position 3: bias over the first 0.250",
    ]


def test_links_say_how_strong_they_are_and_gaps_nothing() -> None:
    strength = np.array([[0, 1234.4, 0], [1234.4, 0, 7], [0, 7, 0]])
    assert told(figures.links(["1", "2", "3"], strength, parts=1)) == [
        f"position {a} and {b}: {value} effective impressions of documents seen under both"
        for a, b, value in ((1, 2, "1,234"), (2, 1, "1,234"), (2, 3, "7"), (3, 2, "7"))
    ]


@pytest.mark.parametrize("columns", [2, figures.MOST_NUMBERS + 1])
def test_every_cell_of_a_map_says_its_rate_also_where_no_number_fits(columns: int) -> None:
    rates = np.linspace(0.01, 0.6, 2 * columns).reshape(2, columns)
    found = told(figures.rate_map(rates, ylabel="grade", rows=range(2), positions=range(3, 3 + columns)))
    assert len(found) == 2 * columns
    assert found[0] == "grade 0, position 3: clicked on 1 % of impressions"
    assert found[-1] == f"grade 1, position {2 + columns}: clicked on 60 % of impressions"


def test_bars_say_their_values() -> None:
    assert told(figures.singular_values(np.array([1.4, 0.15]))) == [
        "singular value 1 of 2: 1.4000",
        "singular value 2 of 2: 0.1500",
    ]
    assert told(figures.bars({"Click": 1.5, "DLA": 2}, xlabel="milliseconds")) == [
        "Click: 1.50 milliseconds",
        "DLA: 2.00 milliseconds",
    ]


def test_a_learning_curve_says_its_best_its_last_and_at_most_twenty_more() -> None:
    steps, values = range(10, 1010, 10), [0.5] * 100
    values[37] = 0.75
    found = told(figures.learning_curves({"a": (steps, values)}, {"a": BLUE}, ylabel="nDCG@10", best=True))
    assert len(found) == figures.MOST_TOLD + 1
    assert found[0] == "a, step 10: 0.5000"
    assert "a, best at step 380: 0.7500" in found
    assert found[-1] == "a, last at step 1,000: 0.5000"


def test_a_plane_says_the_angle_of_each_position_that_has_a_label() -> None:
    random = np.random.default_rng(0)
    degrees = np.array([10.0, 12.0, 40.0])
    observation = np.column_stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))])
    relevance, base = random.normal(size=(5_000, 2)), np.array([[2.0, 0.0]])
    found = told(figures.plane(relevance, np.zeros(5_000), observation, base))
    assert found[:-1] == [
        f"position {place}: {angle}° from the mean base vector" for place, angle in ((1, 10), (3, 40))
    ]
    assert found[-1].startswith("mean base vector")


def test_dots_by_seed_say_their_mean_and_how_far_they_spread() -> None:
    values = {"clicks": {"DLA": np.array([0.7, 0.72, 0.77])}, "labels": {"DLA": np.array([0.8])}}
    assert told(figures.values_by_seed(values, {"DLA": GREEN}, labels=["DLA"], measure="nDCG@10")) == [
        "DLA, weights chosen by clicks: mean nDCG@10 0.7300, from 0.7000 to 0.7700 over 3 seeds",
        "DLA, weights chosen by labels: mean nDCG@10 0.8000, from 0.8000 to 0.8000 over 1 seed",
    ]


def test_bands_say_mean_and_deviation_and_lines_across_their_value() -> None:
    band = np.array([1.0, 2.0]), np.array([0.7, 0.75]), np.array([0.01, 0.02])
    lines = {"DLA": (0.6, 0.55, 0.65)}
    assert told(figures.bands({"ours": band}, lines, xlabel="dimension", ylabel="nDCG@10")) == [
        "ours, dimension 1: nDCG@10 0.7000 ± 0.0100",
        "ours, dimension 2: nDCG@10 0.7500 ± 0.0200",
        "DLA: nDCG@10 0.600 (0.550 to 0.650)",
    ]

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ultr.data.click_log import ClickLog
from ultr.data.signal import Signal
from ultr.errors import DataError, OptionError


def log_with_signals(seed: int = 0) -> ClickLog:
    """Two hundred pages of three documents, with purchases after clicks and counted views of any number."""
    random = np.random.default_rng(seed)
    pages = 200
    documents = np.concatenate([random.permutation(3) for _ in range(pages)])
    clicks = random.integers(0, 2, 3 * pages)
    return ClickLog.of(
        features=[[0.0], [1.0], [2.0]],
        documents=documents,
        offsets=np.arange(pages + 1) * 3,
        clicks=clicks,
        queries=[f"q{number % 7}" for number in range(pages)],
        signals={"purchase": clicks * random.integers(0, 2, 3 * pages), "views": random.integers(0, 9, 3 * pages)},
    )


def test_signals_are_summed_with_the_impressions_of_a_list() -> None:
    log = ClickLog.of(
        features=[[0.1], [0.7]],
        documents=[0, 1, 0, 1, 1, 0],
        offsets=[0, 2, 4, 6],
        clicks=[1, 0, 1, 1, 1, 0],
        queries=["a", "a", "a"],
        signals={"purchase": [1, 0, 0, 1, 1, 0], "seconds": [30, 0, 5, 60, 7, 0]},
    )
    assert log.lists == 2
    assert log.signal("purchase").tolist() == [1, 1, 1, 0]
    assert log.signal("seconds").tolist() == [35, 60, 7, 0]
    assert log.signal("click").tolist() == log.clicks.tolist()


def test_signals_follow_the_order_of_positions() -> None:
    log = ClickLog.of(
        features=[[0.0]] * 2,
        documents=[0, 1],
        offsets=[0, 2],
        clicks=[0, 1],
        positions=[2, 1],
        signals={"cart": [0, 4]},
    )
    assert log.documents.tolist() == [1, 0]
    assert log.signal("cart").tolist() == [4, 0]


def test_a_saved_log_has_the_same_signals_and_fingerprint(tmp_path: Path) -> None:
    log = log_with_signals()
    log.save(tmp_path / "log")
    loaded = ClickLog.load(tmp_path / "log")
    assert [signal.name for signal in loaded.signals] == ["purchase", "views"]
    assert all((loaded.signal(name) == log.signal(name)).all() for name in ("purchase", "views"))
    assert loaded.fingerprint() == log.fingerprint()


def test_the_fingerprint_knows_names_and_totals_of_signals() -> None:
    log = log_with_signals()
    purchase, views = log.signals
    others = [
        replace(log, signals=(purchase,)),
        replace(log, signals=(replace(purchase, name="cart"), views)),
        replace(log, signals=(replace(purchase, totals=purchase.totals + 1), views)),
    ]
    assert len({each.fingerprint() for each in (log, *others)}) == 4


@pytest.mark.parametrize("by", ["query", "page"])
def test_both_parts_of_a_split_have_all_signals_together(by: str) -> None:
    log = log_with_signals()
    parts = log.split(0.3, by=by)
    for name in ("click", "purchase", "views"):
        assert sum(part.signal(name).sum() for part in parts) == log.signal(name).sum()
        assert all(part.signal(name).sum() > 0 for part in parts)
    for part in parts:
        assert (part.signal("purchase") <= part.clicks).all()


def test_signals_do_not_change_which_clicks_a_split_by_page_takes() -> None:
    log = log_with_signals()
    plain = replace(log, signals=())
    for mine, theirs in zip(log.split(0.3, by="page"), plain.split(0.3, by="page"), strict=True):
        assert (mine.clicks == theirs.clicks).all()
        assert (mine.impressions == theirs.impressions).all()


def test_pages_take_purchases_in_proportion() -> None:
    """Of 4,000 pages with 3,000 clicks and 2,000 purchases, a fifth of the pages has a fifth of the purchases."""
    log = ClickLog.of(
        features=[[0.0]],
        documents=[0],
        offsets=[0, 1],
        clicks=[3_000],
        impressions=[4_000],
        signals={"purchase": [2_000], "views": [40_000]},
    )
    _, held = log.split(0.2, by="page")
    pages = held.impressions[0]
    # Standard deviations: below sqrt(n p q) = 25 for the pages, less for what is drawn from them; views are binomial.
    assert abs(held.signal("purchase")[0] - pages / 2) < 100
    assert abs(held.signal("views")[0] - 10 * pages) < 400


@pytest.mark.parametrize(
    ("signals", "sentence"),
    [
        (
            (Signal("click", np.zeros(2, dtype=np.int64)),),
            "two signals of a click log have the same name: click, click",
        ),
        ((Signal("cart", np.zeros(3, dtype=np.int64)),), "2 shown documents, but 3 of signal 'cart'"),
    ],
)
def test_signals_that_do_not_fit_are_refused(signals: tuple[Signal, ...], sentence: str) -> None:
    log = ClickLog.of(features=[[0.0]] * 2, documents=[0, 1], offsets=[0, 2], clicks=[0, 1])
    with pytest.raises(DataError, match=sentence):
        replace(log, signals=signals)


def test_totals_are_counts() -> None:
    with pytest.raises(DataError, match="signal 'cart' has a total below 0"):
        Signal("cart", np.array([-1]))
    with pytest.raises(DataError, match="flat array of integers"):
        Signal("cart", np.array([0.5]))


def test_an_unknown_signal_names_the_known_ones() -> None:
    with pytest.raises(OptionError, match="signal must be one of click, purchase, views"):
        log_with_signals().signal("cart")


def test_categories_must_be_numbers_of_their_values() -> None:
    log = ClickLog.of(
        features=[[0.0, 1.0], [np.nan, 0.5]],
        documents=[0, 1],
        offsets=[0, 2],
        clicks=[0, 1],
        feature_names=["brand", "price"],
    )
    named = replace(log, categories={"brand": ("adidas",)})
    assert named.fingerprint() != log.fingerprint()
    with pytest.raises(DataError, match="feature 'price' must hold the numbers of its 2 categories"):
        replace(log, categories={"price": ("low", "high")})
    with pytest.raises(DataError, match="feature 'brand' must hold the numbers of its 0 categories"):
        replace(log, categories={"brand": ()})
    with pytest.raises(DataError, match="categories of 'colour', which is no feature"):
        replace(log, categories={"colour": ()})

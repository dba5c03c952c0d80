from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.data.test_click_log import random_log, random_sessions, shown, totals

from ultr.arrays import Integers
from ultr.data.click_log import ClickLog
from ultr.errors import DataError

NAMES = ("2024-01", "2024-02", "2024-03", "2024-04")


def timed_log(seed: int = 0, *, lists: int = 60) -> ClickLog:
    periods = np.random.default_rng([seed, 1]).integers(0, len(NAMES), size=lists)
    return replace(random_log(seed, lists=lists), periods=periods, period_names=NAMES)


def periods_of(log: ClickLog) -> Integers:
    assert log.periods is not None
    return log.periods


def one_list(impressions: list[int]) -> ClickLog:
    """The same list in as many periods as there are numbers of impressions."""
    count = len(impressions)
    return ClickLog.of(
        features=np.eye(2),
        documents=[0, 1] * count,
        offsets=np.arange(count + 1) * 2,
        clicks=[0, 0] * count,
        impressions=impressions,
        queries=["q"] * count,
        periods=range(count),
    )


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000))
def test_collapse_sums_within_a_period_only(seed: int) -> None:
    log = timed_log(seed)
    collapsed = log.collapse()
    for period in range(len(NAMES)):
        part, whole = (each.select(periods_of(each) == period) for each in (collapsed, log))
        assert totals(part) == totals(whole)
        assert len(set(shown(part))) == part.lists == len(set(shown(whole)))


def test_a_log_of_plain_arrays_takes_days_numbers_or_texts_as_periods() -> None:
    days = np.array(["2024-03-01", "2024-02-29", "2024-03-01"], dtype="datetime64[D]")
    for periods, names in [(days, ("2024-02-29", "2024-03-01")), ([10, 9, 10], ("9", "10")), (list("bab"), ("a", "b"))]:
        log = ClickLog.of(
            features=np.eye(2),
            documents=[0, 1] * 3,
            offsets=[0, 2, 4, 6],
            clicks=[1, 0, 0, 0, 1, 1],
            queries=["q"] * 3,
            periods=periods,
        )
        assert log.period_names == names
        assert periods_of(log).tolist() == [1, 0]
        assert log.impressions.tolist() == [2, 1]
        assert log.clicks.tolist() == [2, 1, 0, 0]


def test_pairs_are_counted_within_a_period() -> None:
    log = random_sessions(pairs=True, periods=np.arange(200) // 100)
    halves = [log.select(periods_of(log) == period) for period in (0, 1)]
    assert log.pair_clicks is not None
    alone = random_sessions(pairs=True).pair_clicks
    assert alone is not None
    assert log.pair_clicks.sum() == alone.sum()
    assert [half.impressions.sum() for half in halves] == [100, 100]


def brute_force(impressions: list[int], held_out: float) -> int:
    """How many of the last periods come nearest to the share, the fewer if two are as near."""
    near = {count: abs(sum(impressions[-count:]) / sum(impressions) - held_out) for count in range(1, len(impressions))}
    return min(near, key=lambda count: (near[count], count))


@settings(max_examples=60)
@given(st.lists(st.integers(1, 50), min_size=2, max_size=8), st.floats(0.01, 1.0))
def test_a_split_by_time_puts_the_last_periods_aside(impressions: list[int], held_out: float) -> None:
    log = one_list(impressions)
    kept, aside = log.split(held_out, by="time")
    count = brute_force(impressions, held_out)
    assert periods_of(kept).tolist() == list(range(len(impressions) - count))
    assert periods_of(aside).tolist() == list(range(len(impressions) - count, len(impressions)))
    assert kept.impressions.tolist() + aside.impressions.tolist() == impressions
    assert kept.period_names == aside.period_names == log.period_names


def test_a_split_by_time_keeps_queries_and_lists_on_both_sides_and_loses_nothing() -> None:
    log = timed_log()
    kept, aside = log.split(0.3, by="time")
    assert periods_of(kept).max() < periods_of(aside).min()
    assert kept.lists + aside.lists == log.lists
    assert set(kept.queries) & set(aside.queries)
    assert random_sessions(pairs=True, periods=np.arange(200)).split(0.25, by="time")[1].impressions.sum() == 50


def test_periods_without_impressions_do_not_count() -> None:
    log = one_list([1, 1, 1, 1]).select(np.array([0, 1]))
    kept, aside = log.split(0.01, by="time")
    assert (periods_of(kept).tolist(), periods_of(aside).tolist()) == ([0], [1])


def test_a_log_without_time_or_with_one_period_is_not_split_by_time() -> None:
    with pytest.raises(DataError, match=r"cannot be split by time; prepare it with --time COLUMN$"):
        random_log().split(0.5, by="time")
    with pytest.raises(DataError, match=r"a log of one period cannot be split by time; split it by query or page$"):
        one_list([7]).split(0.5, by="time")


def test_select_takes_the_period_of_each_list() -> None:
    log = timed_log()
    assert periods_of(log.select(np.array([7, 3]))).tolist() == periods_of(log)[[7, 3]].tolist()


def test_a_saved_log_loads_with_its_periods(tmp_path: Path) -> None:
    log = timed_log()
    log.save(tmp_path / "log")
    loaded = ClickLog.load(tmp_path / "log")
    assert loaded.fingerprint() == log.fingerprint()
    assert loaded.period_names == NAMES
    assert periods_of(loaded).tolist() == periods_of(log).tolist()
    assert json.loads((tmp_path / "log" / "manifest.json").read_text())["period_names"] == list(NAMES)
    (tmp_path / "log" / "periods.npy").unlink()
    with pytest.raises(DataError, match=r"periods\.npy is missing or damaged"):
        ClickLog.load(tmp_path / "log")


def test_the_fingerprint_knows_the_periods_and_their_names() -> None:
    log = timed_log()
    others = [
        replace(log, periods=3 - periods_of(log)),
        replace(log, period_names=("1", "2", "3", "4")),
        replace(log, periods=None, period_names=()),
    ]
    assert len({log.fingerprint(), *(other.fingerprint() for other in others)}) == 4
    assert others[-1].fingerprint() == random_log().fingerprint()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"periods": np.zeros(60)}, "flat array of integers"),
        ({"periods": np.zeros((60, 1), dtype=np.int64)}, "flat array of integers"),
        ({"periods": np.zeros(59, dtype=np.int64)}, "60 lists, but 59 periods"),
        ({"periods": np.full(60, 4)}, "must index the 4 names of periods"),
        ({"periods": np.full(60, -1)}, "must index the 4 names of periods"),
        ({"periods": None}, "4 names of periods, but no periods"),
    ],
)
def test_periods_that_do_not_fit_are_one_data_error(changed: dict[str, Integers], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        replace(timed_log(), **changed)  # type: ignore[arg-type]


def test_periods_that_do_not_sort_are_one_data_error() -> None:
    with pytest.raises(DataError, match="all numbers, all dates or all texts"):
        random_sessions(sessions=2, periods=[1, None])

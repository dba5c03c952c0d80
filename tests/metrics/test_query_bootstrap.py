"""Resamples of queries: sizes, draws and intervals by definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from ultr.data.click_log import ClickLog
from ultr.metrics.query_bootstrap import QueryBootstrap, percentiles, query_numbers, units_of
from ultr.metrics.student import percentile_tail


@pytest.mark.parametrize(("queries", "groups"), [(3, 3), (499, 499), (500, 500), (501, 500), (1_250, 500)])
def test_queries_are_drawn_in_at_most_500_groups_of_about_one_size(queries: int, groups: int) -> None:
    found = QueryBootstrap.draw(queries, samples=7, random=np.random.default_rng(0))
    assert found.count == groups
    sizes = np.bincount(found.groups)
    assert len(found.groups) == queries
    assert sizes.max() - sizes.min() <= 1
    assert found.times.shape == (7, groups)
    assert found.times.sum(axis=1).tolist() == [groups] * 7


def _log(queries: list[int]) -> ClickLog:
    count = len(queries)
    return ClickLog.of(
        features=np.zeros((count, 1)),
        documents=np.arange(count),
        offsets=np.arange(count + 1),
        clicks=np.ones(count, dtype=np.int64),
        queries=queries,
    )


def test_queries_that_occur_are_numbered_from_0() -> None:
    log = _log([5, 7, 5, 9]).select(np.array([1, 3]))
    assert query_numbers(log).tolist() == [0, 1]


@pytest.mark.parametrize("count", [29, 30])
def test_lists_are_drawn_where_there_are_fewer_than_30_queries(count: int) -> None:
    found = units_of(_log([*range(count), *range(count)])).tolist()
    assert len(set(found)) == (30 if count == 30 else 58)
    assert (found[:count] == found[count:]) is (count == 30)


@pytest.mark.parametrize("count", [2, 10, 1_000])
def test_percentiles_are_as_wide_as_students_interval(count: int) -> None:
    """The normal quantile of the draws reaches to sqrt(n / (n - 1)) t; NaN is left out."""
    tail = stats.norm.cdf(-np.sqrt(count / (count - 1)) * stats.t.ppf(0.975, count - 1))
    assert percentile_tail(0.95, count) == pytest.approx(tail, rel=1e-3)
    half = stats.norm.cdf(-np.sqrt(count / (count - 1)) * stats.t.ppf(0.75, count - 1))
    assert percentile_tail(0.5, count) == pytest.approx(half, rel=1e-3)
    draws = np.append(np.arange(10_001.0), np.nan)
    low, high = percentiles(draws, 0.95, count)
    assert (float(low), float(high)) == pytest.approx((10_000 * tail, 10_000 * (1 - tail)), rel=1e-3, abs=1e-6)


def test_one_unit_has_an_interval_of_everything() -> None:
    assert percentile_tail(0.95, 1) == 0.0

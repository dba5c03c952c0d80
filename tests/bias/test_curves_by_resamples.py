"""Intervals of curves, against the estimators on logs in which lists or queries are as often as a sample drew them."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from tests.bias.explored_world import THETA, Context, adjacent, expected_log

from ultr.arrays import Doubles, Integers
from ultr.bias import SWAP_ESTIMATORS, SwapTable, bias_curves, click_rate_propensities, fit_poisson
from ultr.bias.curves import CURVE_ESTIMATORS, _owners
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.errors import DataError, OptionError
from ultr.metrics.query_bootstrap import QueryBootstrap, percentiles, query_numbers
from ultr.seeding import generator

CURVES = import_module("ultr.bias.curves")


def _log(queries: int, *, shared: bool = False, seed: int = 0) -> ClickLog:
    """Three documents of each query in three orders, of which some have no click; with `shared`, the same for all.

    Documents 3 and 4 of a query never move, so that click rates are those of more documents than swaps have.
    """
    random = np.random.default_rng(seed)
    orders = np.array([[0, 1, 2, 3], [1, 2, 0, 4], [2, 0, 1, 3]])
    first = 0 if shared else 5 * np.arange(queries)[:, None, None]
    documents = (first + np.broadcast_to(orders, (queries, 3, 4))).reshape(-1)
    impressions = random.integers(5, 30, size=3 * queries)
    rates = np.array([0.6, 0.4, 0.2, 0.3, 0.0])[documents % 5] * np.tile([1.0, 0.6, 0.4, 0.3], 3 * queries)
    return ClickLog.of(
        features=np.arange(5.0 * queries)[:, None],
        documents=documents,
        offsets=np.arange(0, 12 * queries + 1, 4),
        clicks=random.binomial(np.repeat(impressions, 4), rates),
        impressions=impressions,
        queries=np.repeat([f"{query:03}" for query in range(queries)], 3),
    )


def drawn_log(log: ClickLog, times: Integers) -> ClickLog:
    """The log with each list so many times as often."""
    chosen = log.select(times > 0)
    often = times[times > 0]
    return replace(
        chosen, impressions=chosen.impressions * often, clicks=chosen.clicks * np.repeat(often, chosen.lengths)
    )


def estimate(name: str, log: ClickLog) -> Doubles:
    if name == "click-rate":
        return click_rate_propensities(log)
    cells = log.cells(fewest_positions=2)
    return fit_poisson(cells.choose(cells.moved())) if name == "em" else SWAP_ESTIMATORS[name](SwapTable.of(cells))


def _three_positions(log: ClickLog) -> ClickLog:
    """Without what stands at the last position, which no swap links."""
    kept = log.position.values < 3
    return ClickLog.of(
        features=log.features,
        documents=log.documents[kept],
        offsets=np.arange(0, 3 * log.lists + 1, 3),
        clicks=log.clicks[kept],
        impressions=log.impressions,
        queries=log.query_ids[log.queries],
    )


@pytest.mark.parametrize("name", CURVE_ESTIMATORS)
def test_few_queries_are_resampled_list_by_list(name: str) -> None:
    log = _three_positions(_log(5))
    found = bias_curves(log, estimators=(name,), samples=8, level=0.8, seed=3)
    draws, failed = [], 0
    for sample in range(8):
        drawn = generator(3, "bias curves", sample).integers(log.lists, size=log.lists)
        try:
            draws.append(estimate(name, drawn_log(log, np.bincount(drawn, minlength=log.lists))))
        except DataError:
            failed += 1
    (curve,) = found.curves
    low, high = percentiles(np.stack(draws), 0.8, log.lists)
    assert (found.units, found.count, found.level) == ("lists", 15, 0.8)
    assert curve.failed == pytest.approx(failed / 8)
    assert curve.values == pytest.approx(estimate(name, log), abs=1e-4)
    assert curve.low == pytest.approx(low, abs=2e-3 if name == "em" else 1e-6)
    assert curve.high == pytest.approx(high, abs=2e-3 if name == "em" else 1e-6)
    assert (found.explored, found.left_out) == (0, 0)


@pytest.mark.parametrize("name", CURVE_ESTIMATORS)
def test_many_queries_are_resampled_whole(name: str) -> None:
    log = _three_positions(_log(32))
    found = bias_curves(log, estimators=(name,), samples=8, level=0.8, seed=3)
    drawing = QueryBootstrap.draw(32, samples=8, random=generator(3, "bias curves"))
    groups = drawing.groups[query_numbers(log)]
    draws = [estimate(name, drawn_log(log, times[groups])) for times in drawing.times]
    (curve,) = found.curves
    low, high = percentiles(np.stack(draws), 0.8, 32)
    assert (found.units, found.count, curve.failed) == ("queries", 32, 0.0)
    # For em a sample is one step of Newton's method away, which is not quite the fit.
    assert curve.low == pytest.approx(low, abs=0.02 if name == "em" else 1e-6)
    assert curve.high == pytest.approx(high, abs=0.02 if name == "em" else 1e-6)
    assert (curve.high > curve.low).tolist() == [False, True, True]


def test_documents_of_several_queries_are_resampled_with_their_lists() -> None:
    log = _three_positions(_log(40, shared=True))
    found = bias_curves(log, estimators=("all-pairs", "click-rate"), samples=3)
    assert (found.units, found.count) == ("lists", log.lists)


@pytest.mark.parametrize("span", [2**18, 5])
def test_a_document_has_the_one_query_that_shows_it(span: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ragged, "SPAN", span)
    log = _log(3)
    owners = _owners(log, log.queries)
    assert owners is not None
    assert owners[log.documents].tolist() == np.repeat(log.queries, 4).tolist()
    assert _owners(_log(3, shared=True), log.queries) is None


def test_without_a_click_or_a_second_position_there_is_a_problem_and_no_curve() -> None:
    alone = ClickLog.of(features=np.zeros((2, 1)), documents=[0, 1], offsets=[0, 1, 2], clicks=[1, 0])
    found = bias_curves(alone, samples=2)
    assert [curve.estimator for curve in found.curves] == list(CURVE_ESTIMATORS)
    for curve in found.curves:
        assert curve.problem == "all documents were shown at one position; log some at others"
        assert np.isnan(curve.values).tolist() == [True]
        assert curve.failed == 1.0
    silent = _log(3)
    silent = replace(silent, clicks=np.zeros_like(silent.clicks))
    for curve in bias_curves(silent, samples=2).curves:
        assert curve.problem is not None
        assert np.isnan([*curve.values, *curve.low, *curve.high]).all()


@pytest.mark.parametrize("options", [{"samples": 0}, {"level": 0.0}, {"estimators": ("raw",)}])
def test_options_that_ask_for_nothing_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        bias_curves(_log(3), **options)


def test_a_log_without_documents_is_refused() -> None:
    with pytest.raises(DataError, match=r"^the click log shows no document$"):
        bias_curves(_log(3).select(np.array([], dtype=np.int64)))


@pytest.mark.parametrize("count", [6, 32])
def test_placements_of_exploration_are_resampled_in_the_place_of_documents(count: int) -> None:
    """Every query says the same exactly, so that no interval has a width; click rates are those of the log."""
    morning, evening = {"x": 0.8, "y": 0.4, "z": 0.1}, {"x": 0.1, "y": 0.2, "z": 0.4}
    contexts = [
        Context(morning if number % 2 else evening, adjacent(3, 0.1), pages=800, query=f"{number:02}")
        for number in range(count)
    ]
    log = expected_log(contexts)
    found = bias_curves(log, samples=6, seed=2)
    for name in ("adjacent-chain", "all-pairs", "em"):
        curve = found.of(name)
        assert curve.values == pytest.approx(THETA, rel=1e-6)
    units = query_numbers(log) if count == 32 else np.arange(log.lists)
    assert (found.units, found.count) == (("queries", 32) if count == 32 else ("lists", log.lists))
    assert (found.explored, found.left_out) == (800 * 3 * count, 0)
    drawing = QueryBootstrap.draw(int(units.max()) + 1, samples=6, random=generator(2, "bias curves"))
    draws = [click_rate_propensities(drawn_log(log, times[drawing.groups[units]])) for times in drawing.times]
    low, high = percentiles(np.stack(draws), 0.95, found.count)
    assert found.of("click-rate").low == pytest.approx(low)
    assert found.of("click-rate").high == pytest.approx(high)
    if count == 32:
        assert found.of("all-pairs").low == pytest.approx(THETA, rel=1e-6)


def test_samples_without_a_click_at_the_first_position_have_no_click_rates() -> None:
    """Two groups: the first shows both positions with clicks, the second has no click at the first one."""
    log = ClickLog.of(
        features=np.zeros((4, 1)),
        documents=[0, 1, 2, 3],
        offsets=[0, 2, 4],
        clicks=[2, 1, 0, 3],
        impressions=[4, 4],
        queries=["a", "b"],
    )
    drawing = QueryBootstrap(np.array([0, 1]), np.array([[2, 0], [1, 1], [0, 2]]))
    found = CURVES._click_rates(log, np.array([0, 1]), drawing)
    assert [each.tolist() for each in found] == [[1.0, 0.5], [1.0, 2.0]]

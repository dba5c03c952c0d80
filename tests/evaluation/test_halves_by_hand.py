"""Halves of the documents, in logs small enough to be counted by hand."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ultr.arrays import Floats, Integers
from ultr.data.click_log import ClickLog
from ultr.errors import DataError
from ultr.evaluation.halves import Half, Halves, ranked_halves

HALVES = import_module("ultr.evaluation.halves")


class By:
    def __init__(self, column: int) -> None:
        self.column = column

    def score(self, features: Floats, offsets: Integers) -> Floats:
        return features[:, self.column]


def swapped(queries: int = 4) -> ClickLog:
    """Three documents, the same for every query, in three orders that link all positions."""
    orders = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    random = np.random.default_rng(0)
    return ClickLog.of(
        features=np.eye(3),
        documents=np.tile(orders, (queries, 1)).ravel(),
        offsets=np.arange(0, 9 * queries + 1, 3),
        clicks=random.integers(1, 9, size=9 * queries),
        impressions=np.full(3 * queries, 10) + np.arange(3 * queries),
        queries=np.repeat(np.arange(queries), 3),
    )


@pytest.mark.parametrize("estimator", ["em", "all-pairs"])
def test_rates_are_the_clicks_that_half_the_documents_would_have_at_each_position(
    estimator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clicks of the half over its impressions weighted by propensities, times the propensity of the position."""
    monkeypatch.setattr(HALVES, "SAMPLES", 7)
    log, among = swapped(), np.array([True, False, True])
    half = Half.of(log, among, estimator, seed=3)
    known = half.propensities
    lists = np.repeat(np.arange(log.lists), 3)
    rows = np.flatnonzero(among[log.documents])

    def rates(theta: Any, times: Any) -> Any:
        often = times[log.queries[lists[rows]]]
        exposed = often * log.impressions[lists[rows]] * theta[log.position.values[rows]]
        return theta * (often * log.clicks[rows]).sum() / exposed.sum()

    np.testing.assert_allclose(half.rates, rates(known.estimate, np.ones(4)))
    assert half.draws.shape == (known.linked.sum(), 3)
    for found, theta, counts in zip(half.draws, known.draws, known.counts, strict=True):
        np.testing.assert_allclose(found, rates(theta, counts[known.groups]))


def with_failed(high: float, low: float, monkeypatch: pytest.MonkeyPatch) -> Halves | None:
    shares = iter((high, low))

    def half(log: ClickLog, among: Any, estimator: str, *, seed: int) -> Any:
        return SimpleNamespace(propensities=SimpleNamespace(failed=next(shares)))

    monkeypatch.setattr(Half, "of", half)
    return Halves.of((By(0),), swapped())


@pytest.mark.parametrize(
    ("high", "low", "told"),
    [(0.0, 0.0, True), (0.05, 0.05, True), (0.051, 0.0, False), (0.0, 0.051, False), (0.0, 0.049, True)],
)
def test_both_halves_must_link_all_positions_in_nearly_all_resamples(
    high: float,
    low: float,
    told: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert (with_failed(high, low, monkeypatch) is not None) is told


def test_a_half_without_swaps_leaves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(*_: Any, **__: Any) -> Half:
        raise DataError("no chain")

    monkeypatch.setattr(Half, "of", half)
    assert Halves.of((By(0),), swapped()) is None


def uneven() -> Halves:
    """Five draws of queries, of which either half told the propensities of three, and both of two: 0 and 3."""

    def half(linked: list[bool], draws: list[list[float]], rates: list[float]) -> Half:
        known: Any = SimpleNamespace(linked=np.array(linked))
        return Half(known, np.array(rates), np.array(draws))

    return Halves(
        half([True, True, False, True, False], [[4.0, 2.0], [9.0, 9.0], [6.0, 0.5]], [4.0, 1.5]),
        half([True, False, True, True, False], [[1.0, 1.0], [9.0, 9.0], [3.0, 1.0]], [2.0, 1.0]),
    )


def test_only_draws_that_told_both_halves_are_compared() -> None:
    halves = uneven()
    high, low = halves.common
    assert (high.tolist(), low.tolist()) == ([True, False, True], [True, False, True])
    clicks = np.array([0.75, 0.25])
    drawn = np.array([0.75 * np.log(4) + 0.25 * np.log(2), 0.75 * np.log(2) + 0.25 * np.log(0.5)])
    expected = (0.75 * np.log(2) + 0.25 * np.log(1.5)) / drawn.std()
    assert halves.separation(clicks) == pytest.approx(expected)


def test_lines_go_from_the_rates_of_the_low_half_to_those_of_the_high_one() -> None:
    """Theta is the difference, where it falls a hundredth of the steepest; beta is the rate of the low half."""
    theta, beta, drawn, floors = uneven().lines()
    assert theta.tolist() == [2.0, 0.5]
    assert beta.tolist() == [2.0, 1.0]
    assert drawn.tolist() == [[3.0, 1.0], [3.0, 0.03]]
    assert floors.tolist() == [[1.0, 1.0], [3.0, 1.0]]


def places() -> ClickLog:
    """Nine documents of two queries; the first three are shown first, the others second; row 9 is never shown.

    Document 5 has a single impression, documents 2 and 8 have no click, and document 0 belongs to both queries.
    """
    return ClickLog.of(
        features=np.array(
            [
                [9.0, 1.0],  # a, first
                [8.0, 1.0],
                [7.0, 1.0],
                [6.0, 1.0],  # a, second
                [5.0, 1.0],
                [4.0, 1.0],
                [3.0, 2.0],  # b, second
                [2.0, 2.0],
                [1.0, 2.0],
                [0.0, 0.0],
            ]
        ),
        documents=[0, 3, 1, 4, 2, 5, 0, 6, 0, 7, 0, 8],
        offsets=[0, 2, 4, 6, 8, 10, 12],
        clicks=[3, 3, 2, 2, 0, 1, 1, 1, 1, 1, 0, 0],
        impressions=[4, 4, 1, 4, 4, 4],
        queries=["a", "a", "a", "b", "b", "b"],
    )


def by_definition(log: ClickLog, columns: tuple[int, ...]) -> tuple[list[bool], list[bool]]:
    """Ranks summed over rankers and averaged over queries; at each mean position, the upper half of the clicks."""
    count = len(log.features)
    ranks: list[list[float]] = [[] for _ in range(count)]
    numbers = np.repeat(np.arange(log.lists), log.lengths)
    for query in np.unique(log.queries):
        documents = np.unique(log.documents[log.queries[numbers] == query])
        for document in documents:
            rank = 0.0
            for column in columns:
                scores = log.features[documents, column]
                own = log.features[document, column]
                rank += (scores > own).sum() + (scores == own).sum() / 2
            ranks[document].append(rank)
    mean = np.array([np.mean(each) if each else np.nan for each in ranks])
    often = log.impressions[numbers]
    shown, clicks, summed = (
        np.bincount(log.documents, values, minlength=count)
        for values in (often, log.clicks, often * log.position.values)
    )
    high = np.zeros(count, dtype=np.bool_)
    for place in range(len(log.position.levels)):
        here = [d for d in range(count) if shown[d] and round(summed[d] / shown[d]) == place]
        # The clicks that better ranks have, and half of those of this one, against half of all.
        total = clicks[here].sum()
        lowest = max(
            (
                mean[d]
                for d in here
                if clicks[d]
                and clicks[[e for e in here if mean[e] > mean[d]]].sum() * 2
                + clicks[[e for e in here if mean[e] == mean[d]]].sum()
                >= total
            ),
            default=-1.0,
        )
        high[here] = mean[here] <= lowest
    return high.tolist(), [bool(shown[d]) and not high[d] for d in range(count)]


@pytest.mark.parametrize("columns", [(0,), (1,), (0, 1), (1, 1)])
def test_documents_of_one_place_are_halved_by_rank_with_as_many_clicks_each(columns: tuple[int, ...]) -> None:
    log = places()
    high, low = ranked_halves([By(column) for column in columns], log)
    assert (high.tolist(), low.tolist()) == by_definition(log, columns)


def test_the_better_half_of_each_place_by_hand() -> None:
    """First: 0 has five of seven clicks, 1 has two, 2 none. Second, ranks 3 4 5 of a and 1 2 3 of b: 6, 7, then 3."""
    high, low = ranked_halves([By(0)], places())
    assert np.flatnonzero(high).tolist() == [0, 3, 6, 7, 8]
    assert np.flatnonzero(low).tolist() == [1, 2, 4, 5]

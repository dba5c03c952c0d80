"""Swaps, resamples, sets of values and over-dispersion, in cases that are counted by hand or by another library."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from ultr.arrays import Doubles
from ultr.bias import (
    ResampledPropensities,
    SwapTable,
    all_pairs,
    dispersion,
    document_dispersion,
    draw_clicks,
    group_dispersion,
    same_features,
)
from ultr.bias.position_based_fit import _add_likelihood, _is_small, _linked, poisson_relevance, poisson_resamples
from ultr.bias.resampled import estimates, of_tables, resampled_swaps
from ultr.bias.rigidity import _null_space, _product
from ultr.bias.swaps import _spans, check_linked, most_likely, reached, swaps_by_group
from ultr.bias.value_sets import ValueSets, value_sets
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.errors import DataError, OptionError
from ultr.metrics.query_bootstrap import QueryBootstrap

RIGIDITY = import_module("ultr.bias.rigidity")
FIT = import_module("ultr.bias.position_based_fit")


def _cells() -> Cells:
    """Document 0 at positions 1 and 2, document 1 at 1 and 3, document 2 at all of them."""
    return Cells.of(
        np.array([0, 0, 1, 1, 2, 2, 2]),
        np.array([0, 1, 0, 2, 0, 1, 2]),
        np.array([10, 30, 20, 20, 8, 8, 24]),
        np.array([5, 6, 4, 1, 4, 2, 3]),
        count=3,
    )


def test_swaps_of_groups_of_documents_by_hand() -> None:
    """Weights n m / (n + m), and clicks at a rate of c / n with that weight."""
    weights, clicks = swaps_by_group(_cells(), np.array([1, 0, 1]), count=2)
    pair, alone, corner = 10 * 30 / 40, 20 * 20 / 40, 8 * 24 / 32
    assert weights[0].tolist() == [[0, 0, alone], [0, 0, 0], [alone, 0, 0]]
    assert clicks[0].tolist() == [[0, 0, alone * 0.2], [0, 0, 0], [alone * 0.05, 0, 0]]
    expected = [[0, pair + 4, corner], [pair + 4, 0, corner], [corner, corner, 0]]
    np.testing.assert_allclose(weights[1], expected)
    rates = [
        [0, pair * 0.5 + 4 * 0.5, corner * 0.5],
        [pair * 0.2 + 4 * 0.25, 0, corner * 0.25],
        [corner * 0.125, corner * 0.125, 0],
    ]
    np.testing.assert_allclose(clicks[1], rates)
    whole = SwapTable.of(_cells())
    np.testing.assert_allclose(whole.weights, weights.sum(axis=0))
    np.testing.assert_allclose(whole.clicks, clicks.sum(axis=0))


def test_the_most_likely_propensities_solve_their_equations() -> None:
    """theta_j = sum_k c_jk / sum_k (c_jk + c_kj) / (theta_j + theta_k), up to the unit of the first."""
    clicks = np.array([[0.0, 7.0, 3.0], [4.0, 0.0, 2.0], [1.0, 1.5, 0.0]])
    theta = most_likely(clicks)
    both = clicks + clicks.T
    right = clicks.sum(axis=1) / (both / (theta[:, None] + theta)).sum(axis=1)
    np.testing.assert_allclose(theta, right / right[0], rtol=1e-8)
    assert theta[0] == 1.0


@pytest.mark.parametrize(
    ("links", "found", "alone"),
    [
        ([(0, 1), (1, 2), (2, 3)], [True] * 4, None),
        ([(0, 3), (3, 2), (2, 1)], [True] * 4, None),
        ([(0, 1), (2, 3)], [True, True, False, False], "3, 4"),
        ([(1, 2), (2, 3)], [True, False, False, False], "2 to 4"),
        ([], [True, False, False, False], "2 to 4"),
        ([(0, 2)], [True, False, True, False], "2, 4"),
    ],
)
def test_positions_that_no_chain_links_with_the_first_are_named(
    links: list[tuple[int, int]], found: list[bool], alone: str | None
) -> None:
    linked = np.zeros((4, 4), dtype=np.bool_)
    for first, second in links:
        linked[first, second] = linked[second, first] = True
    assert reached(linked).tolist() == found
    clicks = np.where(linked, 1.0, 0.0)
    apart = SwapTable(clicks, clicks).apart()
    assert apart[0].tolist() == [not each for each in found]
    if alone is None:
        check_linked(linked)
        return
    with pytest.raises(DataError) as caught:
        check_linked(linked)
    assert str(caught.value) == (
        f"no chain of clicked documents shown at two positions links position 1 with {alone}, so their bias cannot be "
        "compared; log some swaps between them, or give propensities"
    )


def test_chains_of_any_length_connect() -> None:
    for size in (2, 3, 5, 8, 9, 17):
        clicks = np.diag(np.ones(size - 1), 1) + np.diag(np.ones(size - 1), -1)
        assert not SwapTable(clicks, clicks).apart().any()


@pytest.mark.parametrize(
    ("numbers", "text"), [([2], "2"), ([2, 3], "2, 3"), ([2, 3, 4], "2 to 4"), ([1, 3, 4, 5, 9], "1, 3 to 5, 9")]
)
def test_runs_of_three_numbers_are_said_by_their_ends(numbers: list[int], text: str) -> None:
    assert _spans(np.array(numbers)) == text


def test_a_ratio_needs_a_click_at_the_other_position() -> None:
    table = SwapTable(np.ones((2, 2)), np.array([[0.0, 3.0], [0.0, 0.0]]))
    assert table.ratio(2, 1) == 0.0
    with pytest.raises(DataError) as caught:
        table.ratio(1, 2)
    assert str(caught.value) == (
        "no clicked document was shown at both position 2 and position 1, so their bias cannot be compared; use the "
        "estimator all-pairs, log some swaps between them, or give propensities"
    )


def test_each_table_of_a_resample_is_the_sum_of_what_was_drawn() -> None:
    cells, groups = _cells(), np.array([1, 0, 1])
    drawing = QueryBootstrap(np.array([0, 1]), np.array([[2, 0], [1, 1], [0, 2]]))
    weights, clicks = swaps_by_group(cells, groups, count=2)
    tables = resampled_swaps(cells, groups, drawing)
    for table, times in zip(tables, drawing.times, strict=True):
        np.testing.assert_allclose(table.weights, times[0] * weights[0] + times[1] * weights[1])
        np.testing.assert_allclose(table.clicks, times[0] * clicks[0] + times[1] * clicks[1])
    # The first sample links positions 1 and 3 alone.
    for name in ("all-pairs", "pivot"):
        found, linked = estimates(tables, name)
        assert linked.tolist() == [False, True, True]
        assert found.shape == (2, 3)
    np.testing.assert_allclose(estimates(tables, "all-pairs")[0][1], all_pairs(tables[2]), rtol=1e-7)
    nothing, linked = estimates(tables[:1], "all-pairs")
    assert (len(nothing), linked.tolist()) == (0, [False])
    assert [of_tables(name) for name in ("em", "pivot", "all-pairs")] == ["all-pairs", "pivot", "all-pairs"]


def test_five_hundred_resamples_are_the_default_and_none_is_refused() -> None:
    log = _swapped(4)
    assert ResampledPropensities.of_log(log).linked.shape == (500,)
    with pytest.raises(OptionError, match="samples must be an integer of at least 1"):
        ResampledPropensities.of_log(log, samples=0)
    with pytest.raises(OptionError, match="estimator must be one of"):
        ResampledPropensities.of_log(log, "click-rate")


def _swapped(queries: int) -> ClickLog:
    """Two documents of each query in both orders, with a click everywhere."""
    documents = (2 * np.arange(queries)[:, None, None] + np.array([[0, 1], [1, 0]])).reshape(-1)
    return ClickLog.of(
        features=np.zeros((2 * queries, 1)),
        documents=documents,
        offsets=np.arange(0, 4 * queries + 1, 2),
        clicks=np.tile([4, 1, 3, 2], queries),
        impressions=np.full(2 * queries, 8),
        queries=np.repeat([f"{query:02}" for query in range(queries)], 2),
    )


def test_a_log_of_which_no_resample_links_all_positions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    resampled = import_module("ultr.bias.resampled")
    monkeypatch.setattr(resampled, "estimates", lambda tables, name: (np.empty(0), np.zeros(len(tables), np.bool_)))
    with pytest.raises(DataError) as caught:
        ResampledPropensities.of_log(_swapped(4), samples=3)
    assert str(caught.value) == (
        "no resample of the log's queries links all positions by swaps, so their bias cannot be trusted; log some "
        "swaps, or give propensities"
    )


@pytest.mark.parametrize("dense", [2**20, 0])
def test_relevance_and_examination_solve_their_equations(dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """r_d = c_d / sum n theta and theta_p = c_p / sum n r, the largest theta being 1."""
    monkeypatch.setattr(FIT, "_DENSE", dense)
    cells = _cells()
    relevance, theta = poisson_relevance(cells, cells.clicks, tolerance=1e-12)
    for document in range(3):
        rows = cells.documents == document
        exposed = (cells.impressions[rows] * theta[cells.positions[rows]]).sum()
        assert relevance[document] == pytest.approx(cells.clicks[rows].sum() / exposed)
    for position in range(3):
        rows = cells.positions == position
        reach = (cells.impressions[rows] * relevance[cells.documents[rows]]).sum()
        assert theta[position] == pytest.approx(cells.clicks[rows].sum() / reach, rel=1e-6)
    assert theta.max() == 1.0
    silent, dark = poisson_relevance(cells, np.zeros(7))
    assert (silent.tolist(), dark.tolist()) == ([0.0] * 3, [0.0] * 3)


def test_score_and_information_are_derivatives_of_the_likelihood() -> None:
    """Of where the clicks of each document fell, by log theta, group by group."""
    cells, theta, groups = _cells(), np.array([1.0, 0.6, 0.3]), np.array([1, 0, 1])

    def likelihood(logs: Doubles, group: int) -> float:
        weight = cells.impressions * np.exp(logs)[cells.positions]
        share = weight / np.bincount(cells.documents, weight)[cells.documents]
        return float((cells.clicks * np.log(share))[groups[cells.documents] == group].sum())

    score, information = np.zeros((2, 3)), np.zeros((2, 3, 3))
    _add_likelihood(score, information, cells, theta, groups)
    step, at = 1e-4, np.log(theta)
    unit = np.eye(3) * step
    for group in range(2):
        for p in range(3):
            slope = (likelihood(at + unit[p], group) - likelihood(at - unit[p], group)) / (2 * step)
            assert score[group, p] == pytest.approx(slope, abs=1e-6)
            for q in range(3):
                mixed = [likelihood(at + a * unit[p] + b * unit[q], group) for a in (1, -1) for b in (1, -1)]
                curve = -(mixed[0] - mixed[1] - mixed[2] + mixed[3]) / (4 * step**2)
                assert information[group, p, q] == pytest.approx(curve, abs=1e-5)
    # One step of Newton's method in log theta, the first position being the unit.
    times = np.array([[1.0, 2.0], [1.0, 0.0]])
    curves, told = poisson_resamples(cells, theta, groups, times)
    assert told.tolist() == [True, False]
    total, matrix = score[0] + 2 * score[1], information[0] + 2 * information[1]
    change = np.linalg.solve(matrix[1:, 1:], total[1:])
    np.testing.assert_allclose(curves, [[1.0, *(theta[1:] * np.exp(change))]])


@pytest.mark.parametrize(("cells", "full", "small"), [(15, 16, True), (14, 16, False), (240, 1, True), (239, 1, False)])
def test_a_table_is_kept_with_its_zeros_if_it_is_full_enough(
    cells: int,
    full: int,
    small: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sixteen documents at fifteen positions have 240 entries."""
    monkeypatch.setattr(FIT, "_FULL", full)
    some: Any = type("Some", (), {"ids": np.arange(16), "count": 15, "documents": np.zeros(cells)})()
    assert _is_small(some) is small
    monkeypatch.setattr(FIT, "_DENSE", 239)
    assert not _is_small(some)


def test_positions_without_a_click_link_nothing() -> None:
    cells = Cells.of(np.array([0, 0, 0]), np.array([0, 1, 2]), np.full(3, 9), np.array([2, 0, 1]), count=3)
    assert np.argwhere(_linked(cells)).tolist() == [[0, 2], [2, 0]]


def test_sets_of_values_by_hand() -> None:
    seen = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 0], [1, 0, 1]], dtype=np.bool_)
    found = ValueSets(seen, np.array([1, 2, 3, 1]), np.array([5, 1, 2, 4])).merged()
    rows = sorted(zip(found.seen.tolist(), found.documents.tolist(), found.clicks.tolist(), strict=True))
    assert rows == [([False, True, True], 2, 1), ([True, False, True], 1, 4), ([True, True, False], 4, 7)]
    assert found.complete
    assert found.merged(3).complete
    few = found.merged(2)
    # Values 1 and 3 were seen together by one document, 2 and 3 by two, 1 and 2 by four.
    assert sorted(few.documents.tolist()) == [1, 2]
    assert not few.complete


def test_of_equally_rare_sets_the_larger_ones_are_kept() -> None:
    seen = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0], [0, 0, 0, 0, 1, 1]], dtype=np.bool_)
    found = ValueSets(seen, np.ones(3, dtype=np.int64), np.ones(3, dtype=np.int64))._rarest(1)
    assert found.seen.sum() == 3


def test_documents_need_a_click_and_two_values() -> None:
    log = ClickLog.of(
        features=np.zeros((4, 1)),
        documents=[0, 1, 2, 1, 0, 3, 3, 2],
        offsets=[0, 3, 6, 8],
        clicks=[1, 0, 2, 0, 0, 0, 0, 0],
        impressions=[3, 3, 3],
        queries=["a", "b", "c"],
    )
    found = value_sets(log)
    # 0 at 1 and 2 with a click, 1 there without one, 2 at 3 and 2 with two, 3 at 3 and 1 without one.
    rows = sorted(zip(found.seen.tolist(), found.documents.tolist(), found.clicks.tolist(), strict=True))
    assert rows == [([False, True, True], 1, 2), ([True, True, False], 1, 1)]
    assert found.dimension == 1


def test_vectors_that_a_matrix_maps_to_0() -> None:
    random = np.random.default_rng(0)
    prime = RIGIDITY._PRIME
    assert prime == 1_048_573
    assert all(prime % divisor for divisor in range(2, 1_024))
    for rows, columns, rank in ((2, 4, 2), (3, 3, 2), (4, 2, 1), (3, 5, 3), (2, 2, 2)):
        matrix = _product(random.integers(1, prime, (rows, rank)), random.integers(1, prime, (rank, columns)))
        basis = _null_space(matrix.copy())
        assert basis.shape == (columns, columns - rank)
        exact = [
            [sum(int(a) * int(b) for a, b in zip(row, col, strict=True)) % prime for col in basis.T] for row in matrix
        ]
        assert not np.any(exact)
        assert ((basis >= 0) & (basis < prime)).all()
    zero = _null_space(np.array([[0, 0, 0], [0, 0, 0]]))
    assert zero.tolist() == np.eye(3, dtype=int).tolist()
    assert _null_space(np.array([[0, 0], [0, 5]])).tolist() == [[1], [0]]


def test_rows_are_the_same_if_all_of_their_values_are() -> None:
    features = np.array([[1, 2], [2, 1], [1, 2], [1, 3], [0, 0], [-0.0, 0]], dtype=np.float32)
    assert same_features(features).tolist() == [0, 1, 0, 3, 4, 4]
    assert same_features(np.zeros((3, 0), dtype=np.float32)).tolist() == [0, 0, 0]
    assert same_features(np.zeros((0, 2), dtype=np.float32)).tolist() == []


def test_contexts_that_are_all_or_nothing_correlate_fully() -> None:
    cells, shown = np.repeat(np.arange(20), 2), np.full(40, 6)
    found = dispersion(cells, shown, np.tile([6, 0], 20))
    assert found.correlation == 0.999
    # And such that every context has as many clicks as it can expect.
    even = dispersion(cells, shown, np.full(40, 3))
    assert even.correlation < 0
    assert even.correlation >= -1.0
    lowest = dispersion(np.repeat(np.arange(20), 2), np.full(40, 2), np.full(40, 1))
    assert lowest.correlation == pytest.approx(-1.0)
    # One and three impressions with exactly half clicked: 0 = 1.5 + 0.75 rho has no answer above -1.
    assert dispersion(np.zeros(2, dtype=np.int64), np.array([1, 3]), np.array([0.5, 1.5])).correlation == -1.0


def test_cells_with_one_context_or_all_clicks_or_none_say_nothing() -> None:
    cells = np.array([0, 0, 1, 2, 2, 3, 3, 4, 4])
    shown = np.array([9, 9, 9, 9, 9, 9, 9, 1, 1])
    clicks = np.array([3, 5, 4, 0, 0, 9, 9, 1, 0])
    found = dispersion(cells, shown, clicks)
    assert (found.contexts, found.cells) == (2, 1)
    only = dispersion(cells[:2], shown[:2], clicks[:2])
    assert (found.correlation, found.phi) == (only.correlation, only.phi)


def test_blocks_of_contexts_decide_the_interval_alone() -> None:
    random = np.random.default_rng(0)
    cells, shown = np.repeat(np.arange(40), 3), random.integers(2, 9, size=120)
    clicks = random.binomial(shown, 0.4)
    by_cell, by_block = dispersion(cells, shown, clicks), dispersion(cells, shown, clicks, blocks=cells // 3)
    assert by_cell.correlation == by_block.correlation
    assert by_cell.low != by_block.low
    assert dispersion(cells, shown, clicks, blocks=cells).low == by_cell.low
    assert np.isnan(dispersion(cells, shown, clicks, blocks=cells % 9).low)
    assert np.isfinite(dispersion(cells, shown, clicks, blocks=cells % 10).low)


def test_documents_at_positions_are_the_cells_of_a_log_and_queries_its_blocks() -> None:
    log = _swapped(12)
    more = ClickLog.of(
        features=np.zeros((24, 1)),
        documents=np.tile(log.documents, 2),
        offsets=np.arange(0, 97, 2),
        clicks=np.concatenate([log.clicks, 8 - log.clicks]),
        impressions=np.full(48, 8),
        queries=np.tile(log.query_ids[log.queries], 2),
        device=np.repeat(["a", "b"], 48),
    )
    numbers = np.repeat(np.arange(48), 2)
    expected = dispersion(
        more.documents * 2 + more.position.values,
        more.impressions[numbers],
        more.clicks,
        blocks=more.queries[numbers],
    )
    assert document_dispersion(more) == expected
    assert expected.contexts == 96


def test_factors_of_groups_are_those_of_queries_within_them() -> None:
    """Each query has so many impressions of a group at a position, in one list or in several."""
    log = _swapped(12)
    groups = np.where(log.documents % 2, 1, -1)
    groups[log.documents < 6] = 0
    found, factors = group_dispersion(log, groups)
    numbers = np.repeat(np.arange(log.lists), 2)
    sums: dict[tuple[int, int, int], Any] = {}
    for row in np.flatnonzero(groups >= 0):
        key = int(groups[row]), int(log.position.values[row]), int(log.queries[numbers[row]])
        sums[key] = sums.get(key, np.zeros(2)) + np.array([log.impressions[numbers[row]], log.clicks[row]])
    keys = list(sums)
    shown, clicks = np.array(list(sums.values())).T
    expected = dispersion(
        np.array([2 * group + place for group, place, _ in keys]),
        shown,
        clicks,
        blocks=np.array([query for _, _, query in keys]),
    )
    assert found.correlation == pytest.approx(expected.correlation)
    assert found.contexts == expected.contexts
    for group in range(2):
        for place in range(2):
            often = np.array([sums[key][0] for key in keys if key[:2] == (group, place)])
            together = (often * (often - 1)).sum() / often.sum()
            assert factors[group, place] == pytest.approx(1 + max(found.correlation, 0) * together)


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_clicks_that_are_drawn_have_the_variance_that_is_asked_for(factor: float) -> None:
    drawn = draw_clicks(np.array([10.0]), np.array([0.3]), factor, np.random.default_rng(0), samples=20_000)
    assert drawn.shape == (20_000, 1)
    assert drawn.mean() == pytest.approx(3.0, abs=0.05)
    assert drawn.var() == pytest.approx(factor * 2.1, rel=0.05)


def test_rates_outside_of_0_to_1_and_factors_beyond_what_counts_can_vary_are_cut_off() -> None:
    random = np.random.default_rng(0)
    drawn = draw_clicks(np.array([4, 4, 4]), np.array([-0.5, 1.5, 0.5]), 100.0, random, samples=500)
    assert (drawn[:, 0].max(), drawn[:, 1].min()) == (0, 4)
    # All or nothing, but for one in a thousand.
    assert np.isin(drawn[:, 2], [0, 4]).mean() > 0.98
    assert draw_clicks(np.array([1]), np.array([0.5]), 9.0, random).max() <= 1

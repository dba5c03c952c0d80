"""What estimates of bias decide, from both sides of every threshold, with numbers from their definitions."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np
import pytest

from ultr.bias import RankTest, ResampledPropensities, ScalarTest, bias_curves, position_predictability, scalar_test
from ultr.bias.correction import Correction, correction
from ultr.bias.dispersion import Dispersion, dispersion
from ultr.bias.factorization import _misfit
from ultr.bias.identifiability import BiasGraph
from ultr.bias.linear_inputs import standardised
from ultr.bias.position_weights import click_weights
from ultr.bias.propensities import click_rate_propensities
from ultr.bias.rank_test import _p_values, _trusting, document_rank_test, rank_test
from ultr.bias.relevance_groups import click_groups, merge_small
from ultr.bias.rigidity import LARGEST, cut_dimensions, identified, largest_dimension
from ultr.bias.swaps import SwapTable, check_linked, pivot
from ultr.clicks.trust_bias import TrustBias
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.errors import DataError

SCALAR = import_module("ultr.bias.scalar_test")
CURVES = import_module("ultr.bias.curves")
RIGIDITY = import_module("ultr.bias.rigidity")


def _log(queries: int = 6, *, clicks: int = 1, features: Any = None, positions: int = 2) -> ClickLog:
    """Two lists a query, with its documents in one order and in the other."""
    documents = positions * np.arange(queries)[:, None, None] + np.array(
        [np.arange(positions), np.arange(positions)[::-1]]
    )
    count = positions * queries
    return ClickLog.of(
        features=np.random.default_rng(0).normal(size=(count, 3)) if features is None else features,
        documents=documents.ravel(),
        offsets=np.arange(0, 2 * count + 1, positions),
        clicks=np.full(2 * count, clicks),
        impressions=np.full(2 * queries, 4),
        queries=np.repeat(np.arange(queries), 2),
    )


def _test(dimension: int, power: float | None, grouping: str = "labels") -> ScalarTest:
    rank = RankTest(np.eye(2), (1.0,), (0.2,), dimension, 0.05, power)
    return ScalarTest(rank, grouping, 1, 1, 1, None, None, ())


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        (_test(1, 0.8), "yes"),
        (_test(1, 0.799), "cannot tell"),
        (_test(1, None), "cannot tell"),
        (_test(2, 0.0), "no"),
        (_test(3, None), "no"),
        (ScalarTest(None, None, 0, 0, 0, None, "why", ()), "cannot tell"),
    ],
)
def test_a_scalar_is_enough_only_where_more_would_have_been_found(found: ScalarTest, answer: str) -> None:
    assert found.answer == answer


@pytest.mark.parametrize(
    ("powers", "taken", "run"),
    [
        ([0.5, 0.8, 0.99], 1, 2),
        ([0.5, 0.79, 0.7], 1, 3),
        ([0.4, 0.4], 0, 2),
        ([None, 0.1], 1, 2),
        ([0.9], 0, 1),
        (["too few", 0.3], 1, 2),
    ],
)
def test_the_first_test_with_enough_power_is_taken_or_else_that_with_the_most(
    powers: list[Any], taken: int, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []

    def candidate(number: int) -> Any:
        def test(**options: Any) -> ScalarTest:
            ran.append(number)
            if isinstance(powers[number], str):
                raise DataError(powers[number])
            return _test(1, powers[number], f"grouping {number}")

        return test

    monkeypatch.setattr(SCALAR, "_candidates", lambda *_, **__: map(candidate, range(len(powers))))
    assert scalar_test(_log()).grouping == f"grouping {taken}"
    assert ran == list(range(run))


def test_where_no_test_can_be_run_the_first_reason_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(sentence: str) -> Any:
        def test(**options: Any) -> ScalarTest:
            raise DataError(sentence)

        return test

    monkeypatch.setattr(SCALAR, "_candidates", lambda *_, **__: map(failing, ["one", "two"]))
    found = scalar_test(_log())
    assert (found.reason, found.test, found.documents, found.impressions, found.clicks) == ("one", None, 0, 0, 0)


@pytest.mark.parametrize(("most", "queries"), [(24, 6), (23, 5), (4, 1), (1, 1)])
def test_a_large_log_is_tested_on_as_many_rows_as_are_allowed(
    most: int, queries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SCALAR, "MOST_ROWS", most)
    assert len(np.unique(SCALAR._largest_queries(_log()).queries)) == queries


def test_the_p_value_counts_ties_and_the_observed_one() -> None:
    """(1 + draws that gain as much) / (1 + draws)."""
    by_chance = np.array([0.5, 1.0, 2.0])
    assert _p_values(np.array([1.0, 3.0, 0.0]), by_chance).tolist() == [3 / 4, 1 / 4, 1.0]


def test_power_is_that_of_the_published_trust_bias() -> None:
    """Groups of equal impressions: clicks of each position stay, and the best group is all relevant."""
    model, positions = TrustBias(), np.arange(10)
    examination = 1 / (positions + 1.0)
    rates, shown = np.outer([0.1, 0.5], examination), np.full((2, 10), 100.0)
    found = _trusting(rates, shown, positions)
    np.testing.assert_allclose((shown * found).sum(axis=0), (shown * rates).sum(axis=0))
    taken = np.array(model.irrelevant_taken) / np.array(model.relevant_taken)
    # With a relevance x the group is clicked x + t (1 - x) as often as the best; by all of its clicks, as before.
    mean = (examination @ taken) / examination.sum()
    relevance = max((0.1 / 0.5 - mean) / (1 - mean), 0.0)
    np.testing.assert_allclose(found[0] / found[1], relevance + taken * (1 - relevance), rtol=1e-6)


@pytest.mark.parametrize(
    ("clicks", "merged"),
    [
        ([50, 50, 50], [0, 1, 2]),
        ([49, 60, 70], [0, 0, 1]),
        ([60, 49, 70], [0, 0, 1]),
        ([70, 49, 60], [0, 1, 1]),
        ([70, 60, 49], [0, 1, 1]),
        ([10, 10], [0, 1]),
    ],
)
def test_a_group_with_fewer_than_fifty_clicks_joins_its_smaller_neighbour(clicks: list[int], merged: list[int]) -> None:
    found = merge_small(np.arange(len(clicks)), np.array(clicks), fewest=SCALAR.FEWEST_CLICKS)
    assert found.tolist() == merged
    assert len(set(merge_small(np.arange(4), np.full(4, 10), fewest=50).tolist())) == 2


@pytest.mark.parametrize(("kept", "known"), [(5, True), (4, False), (10, True)])
def test_a_curve_has_an_interval_if_half_of_the_resamples_could_be_estimated(
    kept: int,
    known: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CURVES, "_by_lists", lambda *_, **__: {"all-pairs": [np.array([1.0, 0.5])] * kept})
    found = bias_curves(_log(clicks=2), estimators=("all-pairs",), samples=10)
    (curve,) = found.curves
    assert (found.units, found.count) == ("lists", 12)
    assert curve.failed == pytest.approx(1 - kept / 10)
    assert np.isfinite(curve.low).all() == known
    if known:
        assert (curve.low.tolist(), curve.high.tolist()) == ([1.0, 0.5], [1.0, 0.5])


@pytest.mark.parametrize("queries", [29, 30])
def test_queries_are_resampled_from_thirty_on(queries: int) -> None:
    found = bias_curves(_log(queries, clicks=2), estimators=("click-rate",), samples=2)
    assert (found.units, found.count) == (("lists", 58) if queries == 29 else ("queries", 30))


@pytest.mark.parametrize(
    ("reliable", "known", "new"),
    [(0.5, 0.6, 0.5 * (1 - 0.36)), (0.5, -0.6, 0.5 * (1 - 0.36)), (0.8, 1.2, 0.0), (0.8, 0.0, 0.8)],
)
def test_what_is_new_is_reliable_and_not_known(reliable: float, known: float, new: float) -> None:
    assert Correction(0.1, reliable, known, 0.5, 9, 9).new == pytest.approx(new)


def test_four_queries_and_two_features_are_enough_to_ask_what_debiasing_offers() -> None:
    random = np.random.default_rng(0)
    found = correction(_log(4, features=random.normal(size=(8, 2))))
    assert (found.queries, found.clicks) == (4, 16)
    for queries, said in ((3, "^3 queries cannot be halved"), (1, "^one query cannot be halved")):
        with pytest.raises(DataError, match=said):
            correction(_log(queries))
    constant = np.stack([random.normal(size=8), np.ones(8)], axis=1)
    one = (
        "by one feature a linear ranker orders documents in one way, or in the opposite one, so that linear rankers do "
        "not tell; a network or trees may change the order"
    )
    with pytest.raises(DataError, match=f"^{one}$"):
        correction(_log(4, features=constant))
    with pytest.raises(DataError, match=r"^no feature differs between documents; there is nothing to rank by$"):
        correction(_log(4, features=np.ones((8, 2))))


def test_lists_with_a_click_and_a_choice_are_learned_from() -> None:
    one = ClickLog.of(
        features=np.random.default_rng(0).normal(size=(9, 2)),
        documents=np.arange(9),
        offsets=[0, 2, 4, 6, 8, 9],
        clicks=[1, 0, 0, 0, 0, 0, 0, 0, 1],
        queries=np.arange(5),
    )
    with pytest.raises(DataError, match="fewer than two lists have a click and another document"):
        correction(one)


def test_features_are_standardised_and_cut_off_at_three_deviations() -> None:
    values = np.append(np.zeros(99), 50.0)
    log = ClickLog.of(
        features=np.stack([values, np.ones(100), np.arange(100.0)], axis=1),
        documents=np.arange(100),
        offsets=np.arange(101),
        clicks=np.zeros(100),
    )
    found = standardised(log.features, np.arange(100))
    assert found[-1, 0] == 3.0
    assert found[0, 0] == pytest.approx(-values.mean() / values.std(), rel=1e-4)
    assert not found[:, 1].any()
    assert (found[:, 2].mean(), found[:, 2].std()) == pytest.approx((0.0, 1.0), abs=1e-6)


@pytest.mark.parametrize("cells", [9, 10])
def test_the_interval_of_dispersion_by_hand(cells: int) -> None:
    """Two contexts of n impressions a cell: A = n / 2 and B = n (n - 1) / 2 for each of them."""
    n = 8.0
    clicks = np.array([[3, 5], [1, 6], [4, 4], [2, 2], [0, 7], [3, 3], [5, 6], [1, 1], [2, 6], [4, 7]], dtype=float)[
        :cells
    ]
    found = dispersion(np.repeat(np.arange(cells), 2), np.full(2 * cells, n), clicks.ravel())
    rate = clicks.sum(axis=1) / (2 * n)
    squared = ((clicks - n * rate[:, None]) ** 2).sum(axis=1)
    # rate (1 - rate) is below p (1 - p) by 1 / 2n + rho (2 n^2 / (2n)^2 - 1 / 2n).
    lost = 1 / (2 * n) + found.correlation * (0.5 - 1 / (2 * n))
    variance = rate * (1 - rate) / (1 - lost)
    plain, extra = n * variance, n * (n - 1) * variance
    assert found.correlation == pytest.approx((squared - plain).sum() / extra.sum(), abs=1e-6)
    left = squared - plain - found.correlation * extra
    error = np.sqrt(cells / (cells - 1) * (left**2).sum()) / extra.sum()
    ends = (found.correlation - 1.96 * error, found.correlation + 1.96 * error)
    assert (found.low, found.high) == pytest.approx(ends if cells == 10 else (np.nan, np.nan), nan_ok=True, abs=1e-6)
    assert (found.contexts, found.cells) == (2 * cells, cells)
    assert found.phi == pytest.approx(1 + found.correlation * (n - 1))


def test_clicks_that_repel_each_other_do_not_narrow_a_test() -> None:
    together = np.array([0.0, 5.0])
    assert Dispersion(0.9, -0.5, -0.6, -0.4, 9, 9).factors(together).tolist() == [1.0, 1.0]
    assert Dispersion(1.5, 0.1, 0.0, 0.2, 9, 9).factors(together).tolist() == [1.0, 1.5]


def test_a_position_without_a_click_weighs_like_one_that_is_always_clicked() -> None:
    """Weights rate^-1 are 2, 4 and 1; 50 + 25 clicks keep their sum of 75."""
    kept = 75 / (2 * 50 + 4 * 25)
    found = click_weights(np.array([100.0, 100.0, 100.0]), np.array([50.0, 25.0, 0.0]), 1.0)
    assert found.tolist() == pytest.approx([2 * kept, 4 * kept, kept])


@pytest.mark.parametrize(("queries", "units"), [(4, "lists"), (5, "queries")])
def test_queries_are_held_out_where_there_are_as_many_as_folds(queries: int, units: str) -> None:
    assert position_predictability(_log(queries), folds=5).units == units


def test_two_lists_are_needed_to_hold_one_out() -> None:
    log = _log(1)
    assert position_predictability(log, folds=2).units == "lists"
    with pytest.raises(DataError, match="one list cannot be cross-validated"):
        position_predictability(log.select(np.array([0])), folds=2)


def test_the_ceiling_is_one_where_documents_never_move_and_none_where_they_stand_anywhere() -> None:
    """Each document stood four times at either place, so that knowing it explains less than nothing."""
    log = _log(6)
    still = log.select(np.arange(0, log.lists, 2))
    assert position_predictability(still, folds=2).ceiling == 1.0
    # Within: all of 24 x 4 x 1/4; documents 12 of 96 impressions: 1 - (24 / 84) / (24 / 95).
    assert position_predictability(log, folds=2).ceiling == pytest.approx(1 - (24 / 84) / (24 / 95))


def test_click_rates_need_a_click_at_every_position() -> None:
    log = ClickLog.of(features=np.zeros((3, 1)), documents=[0, 1, 2], offsets=[0, 3], clicks=[4, 2, 0], impressions=[8])
    with pytest.raises(DataError, match="position 3 has no click"):
        click_rate_propensities(log)
    shown = ClickLog.of(features=np.zeros((2, 1)), documents=[0, 1], offsets=[0, 2], clicks=[4, 1], impressions=[8])
    assert click_rate_propensities(shown).tolist() == [1.0, 0.25]


def test_positions_are_linked_by_clicks_on_both_sides() -> None:
    clicks = np.array([[0.0, 3.0, 0.0], [2.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    table = SwapTable(np.ones((3, 3)), clicks)
    assert table.linked.tolist() == [[False, True, False], [True, False, False], [False, False, False]]
    with pytest.raises(DataError, match="links position 1 with 3, so"):
        check_linked(table.linked)
    assert table.ratio(2, 1) == pytest.approx(2 / 3)
    with pytest.raises(DataError, match="at both position 1 and position 3"):
        pivot(table)


def test_the_share_of_draws_that_failed() -> None:
    linked = np.array([True, True, True, False])
    found = ResampledPropensities(
        np.ones(2), np.ones((3, 2)), np.ones((3, 2), dtype=np.int64), np.array([0, 1, 1]), linked
    )
    assert found.failed == 0.25


@pytest.mark.parametrize(("values", "dimension"), [(2, 1), (3, 2), (6, LARGEST), (8, LARGEST)])
def test_documents_seen_everywhere_identify_one_dimension_less_than_values_and_five_at_most(
    values: int, dimension: int
) -> None:
    seen = np.ones((1, values), dtype=np.bool_)
    assert LARGEST == 5
    assert largest_dimension(seen, np.array([10])) == dimension


@pytest.mark.parametrize(("most", "dimension"), [(12, 2), (11, 1), (16, 3)])
def test_no_more_unknowns_are_looked_at_than_are_allowed(
    most: int, dimension: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four values: a dimension is asked for while the next one would still be allowed."""
    monkeypatch.setattr(RIGIDITY, "MOST_UNKNOWNS", most)
    assert largest_dimension(np.ones((1, 4), dtype=np.bool_), np.array([10])) == dimension


def test_one_resample_can_be_asked_for() -> None:
    assert ResampledPropensities.of_log(_log(6, clicks=2), samples=1).draws.tolist() == [[1.0, 1.0]]


def test_swaps_are_asked_for_first_where_both_places_have_the_most_impressions() -> None:
    graph = BiasGraph(
        names=("1", "2", "3", "4"),
        levels=np.arange(4)[:, None],
        impressions=np.array([100.0, 1.0, 50.0, 50.0]),
        click_rates=np.array([0.4, 0.3, 0.2, 0.1]),
        parts=np.arange(4),
        links=(),
    )
    assert graph.swaps() == ((2, 3), (0, 1), (1, 2))


def test_two_values_support_one_dimension_however_many_documents_there_are() -> None:
    seen, sides = np.ones((1, 2), dtype=np.bool_), np.array([[True], [False]])
    assert cut_dimensions(seen, np.array([10]), sides).tolist() == [1]
    assert [identified(seen, np.array([10]), dimension) for dimension in (1, 2)] == [True, False]


def test_documents_keep_their_numbers_where_the_other_half_has_none_of_them() -> None:
    """Every other document is always clicked, by which it is known again."""
    documents = np.repeat(np.arange(60), 2)
    cells = Cells.of(documents, np.tile([0, 1], 60), np.ones(120), documents % 2, count=2)
    groups, half = click_groups(cells, count=2)
    assert len(np.unique(half.documents)) < len(groups) == 60
    assert half.clicks.tolist() == (half.impressions * (half.documents % 2)).tolist()


@pytest.mark.parametrize("test", [rank_test, document_rank_test, scalar_test])
def test_the_level_is_a_twentieth(test: Any) -> None:
    assert signature(test).parameters["level"].default == 0.05


def test_no_trusting_user_clicks_more_often_than_always() -> None:
    found = _trusting(np.outer([0.2, 1.0], np.ones(10)), np.full((2, 10), 50.0), np.arange(10))
    assert found.max() == 1.0


def test_a_misfit_of_rank_one_is_found_with_its_directions() -> None:
    """Residuals in standard deviations, sqrt(100 x 0.5 x 0.5) = 5, are the product of the two."""
    up, down = np.array([1.0, -0.5]), np.array([1.0, 0.5, -1.0])
    clicks = (50 + 5 * np.outer(up, down))[None]
    found = [each[0] for each in _misfit(clicks, np.full((1, 2, 3), 100.0), np.full((1, 2, 3), 0.5))]
    np.testing.assert_allclose(np.outer(*found), np.outer(up, down), atol=1e-9)

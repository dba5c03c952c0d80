from __future__ import annotations

import numpy as np
import pytest

from ultr.arrays import Doubles
from ultr.bias import (
    ResampledPropensities,
    SwapTable,
    all_pairs,
    click_rate_propensities,
    estimate_propensities,
    fit_poisson,
    pivot,
)
from ultr.bias.swaps import most_likely
from ultr.clicks.model import EXAMINATION
from ultr.clicks.position_based import PositionBased
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.errors import DataError, OptionError
from ultr.simulation.log import simulate


def position_based(*, queries: int = 300, noise: float = 1.0, impressions: int = 40, seed: int = 0) -> ClickLog:
    random = np.random.default_rng(seed)
    judged = JudgedLists.of(
        features=random.normal(size=(4 * queries, 1)),
        labels=random.integers(5, size=4 * queries),
        offsets=np.arange(0, 4 * queries + 1, 4),
        max_label=4,
    )
    model = PositionBased(examination=EXAMINATION[:4])
    return simulate(
        judged,
        model,
        scores=random.normal(size=4 * queries),
        impressions=queries * impressions,
        rankings=4,
        noise=noise,
        seed=seed,
    )


def test_each_estimator_is_found_by_its_name() -> None:
    log = position_based()
    np.testing.assert_array_equal(estimate_propensities(log), all_pairs(SwapTable.of_log(log)))
    np.testing.assert_array_equal(estimate_propensities(log, "pivot"), pivot(SwapTable.of_log(log)))
    np.testing.assert_allclose(estimate_propensities(log, "em"), fit_poisson(log.cells()), rtol=1e-4)
    np.testing.assert_array_equal(estimate_propensities(log, "click-rate"), click_rate_propensities(log))
    with pytest.raises(OptionError, match="did you mean 'all-pairs'"):
        estimate_propensities(log, "all-pair")


def test_many_tables_are_fitted_at_once_as_each_on_its_own() -> None:
    tables = [SwapTable.of_log(position_based(seed=seed)) for seed in range(3)]
    together = most_likely(np.stack([table.clicks for table in tables]))
    np.testing.assert_allclose(together, [all_pairs(table) for table in tables], rtol=1e-7)


@pytest.mark.parametrize("estimator", ["all-pairs", "adjacent-chain", "em"])
def test_resamples_spread_as_far_as_the_estimates_of_other_logs(estimator: str) -> None:
    resampled = ResampledPropensities.of_log(position_based(), estimator, samples=200)
    others = [estimate_propensities(position_based(seed=seed), estimator) for seed in range(1, 61)]
    np.testing.assert_allclose(resampled.draws.std(axis=0)[1:], np.std(others, axis=0)[1:], rtol=0.4)
    np.testing.assert_allclose(resampled.draws.mean(axis=0), resampled.estimate, atol=0.03)
    assert resampled.failed == 0


def test_a_draw_is_the_estimate_of_the_queries_it_holds() -> None:
    log = position_based(queries=30)
    resampled = ResampledPropensities.of_log(log, samples=5)
    counts = resampled.counts[0][resampled.groups]
    assert counts.sum() == 30
    table = SwapTable(np.zeros((4, 4)), np.zeros((4, 4)))
    for query, times in enumerate(counts):
        own = SwapTable.of_log(log.select(log.queries == query))
        table = SwapTable(table.weights + times * own.weights, table.clicks + times * own.clicks)
    np.testing.assert_allclose(resampled.draws[0], all_pairs(table), rtol=1e-6)


def test_some_documents_have_the_propensities_of_a_log_of_them_alone() -> None:
    log = position_based(queries=60)
    among = np.arange(len(log.features)) < 120
    alone = log.select(log.queries < 30)
    for estimator in ("em", "all-pairs"):
        some = ResampledPropensities.of_log(log, estimator, among=among, samples=3)
        np.testing.assert_allclose(some.estimate, estimate_propensities(alone, estimator), rtol=1e-5)
        whole = ResampledPropensities.of_log(log, estimator, samples=3)
        np.testing.assert_array_equal(some.counts, whole.counts)
        assert np.abs(some.estimate - whole.estimate).max() > 0.01


def test_queries_are_drawn_in_groups_where_there_are_many() -> None:
    resampled = ResampledPropensities.of_log(position_based(queries=700), samples=3)
    assert resampled.counts.shape == (3, 500)
    assert np.bincount(resampled.groups).tolist() == [2] * 200 + [1] * 300


def _swaps_of(log: ClickLog, query: int) -> Doubles:
    return SwapTable.of_log(log.select(log.queries == query)).weights


def test_draws_whose_swaps_do_not_link_all_positions_are_counted() -> None:
    log = position_based(queries=30, impressions=4_000)
    # Only one query has swaps, and they link all positions; a draw misses it with a chance of (29/30)^30.
    one = next(query for query in range(30) if (np.diag(_swaps_of(log, query), 1) > 0).all())
    firsts = np.unique(log.queries, return_index=True)[1]
    few = log.select(np.unique(np.concatenate([np.flatnonzero(log.queries == one), firsts])))
    resampled = ResampledPropensities.of_log(few, samples=300)
    assert resampled.failed == pytest.approx((29 / 30) ** 30, abs=0.1)
    assert len(resampled.draws) == len(resampled.counts) == round(300 * (1 - resampled.failed))


def test_a_log_without_swaps_is_refused() -> None:
    with pytest.raises(DataError, match="no chain of clicked documents"):
        ResampledPropensities.of_log(position_based(noise=0.0))


def test_queries_that_the_log_has_no_list_of_are_drawn_some_at_a_time() -> None:
    whole = position_based(queries=60)
    part, other = whole.split(0.5)
    found = ResampledPropensities.of_log(part, samples=5)
    assert found.groups.shape == (60,)
    np.testing.assert_array_equal(np.unique(found.groups[np.unique(part.queries)]), np.arange(30))
    # As many queries as groups: chance puts them into most of these, and no group has many.
    dealt = np.bincount(found.groups[np.unique(other.queries)], minlength=30)
    assert dealt.sum() == 30
    assert dealt.max() <= 2

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.bias.test_resampled import position_based

from ultr import MLP, InversePropensity
from ultr.bias import ESTIMATORS, ResampledPropensities, bias_curves, estimate_propensities
from ultr.bias.used_positions import UsedPositions
from ultr.data.bias_factor import position_factor
from ultr.data.click_log import ClickLog
from ultr.diagnosis.position_bias import PositionBias
from ultr.errors import DataError
from ultr.methods.position_curve import PositionCurve


def moved(log: ClickLog, places: list[int]) -> ClickLog:
    """A log whose first position is called `places[0]`, the second `places[1]`, and so on."""
    return replace(log, factors=(position_factor(np.array(places)[log.position.values]),))


LOG = position_based(queries=60)
AROUND_AN_ADVERTISEMENT = moved(LOG, [1, 2, 4, 5])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_position_that_no_page_uses_changes_nothing_at_the_others(estimator: str) -> None:
    dense = estimate_propensities(LOG, estimator)
    found = estimate_propensities(AROUND_AN_ADVERTISEMENT, estimator)
    np.testing.assert_array_equal(found[[0, 1, 3, 4]], dense)
    assert found[2] == pytest.approx(np.sqrt(dense[1] * dense[2]))


@pytest.mark.parametrize("estimator", ["all-pairs", "em"])
def test_resamples_leave_it_out_too(estimator: str) -> None:
    dense = ResampledPropensities.of_log(LOG, estimator, samples=20)
    found = ResampledPropensities.of_log(AROUND_AN_ADVERTISEMENT, estimator, samples=20)
    np.testing.assert_array_equal(found.draws[:, [0, 1, 3, 4]], dense.draws)
    np.testing.assert_allclose(found.draws[:, 2], np.sqrt(dense.draws[:, 1] * dense.draws[:, 2]))
    np.testing.assert_array_equal(found.estimate, UsedPositions.of_log(AROUND_AN_ADVERTISEMENT).filled(dense.estimate))


def test_curves_say_nothing_of_it() -> None:
    dense, found = bias_curves(LOG, samples=20), bias_curves(AROUND_AN_ADVERTISEMENT, samples=20)
    for one, other in zip(dense.curves, found.curves, strict=True):
        assert other.problem is None
        for name in ("values", "low", "high"):
            np.testing.assert_array_equal(getattr(other, name)[[0, 1, 3, 4]], getattr(one, name))
            assert np.isnan(getattr(other, name)[2])


def test_the_doctor_compares_with_the_first_position_that_is_used() -> None:
    answer = PositionBias.of(moved(LOG, [2, 3, 5, 6]), samples=20).section().answer
    assert "position 6 is seen" in answer
    assert "as often as position 2 (95 % interval" in answer


def test_the_table_of_the_doctor_leaves_it_out() -> None:
    (table,) = PositionBias.of(AROUND_AN_ADVERTISEMENT, samples=20).section().tables
    assert [row["position"] for row in table.rows] == ["1", "2", "4", "5"]
    assert not any("nan" in text for row in table.rows for text in row.values())


def test_methods_and_rankers_that_need_propensities_fill_it_in() -> None:
    def trained(log: ClickLog) -> InversePropensity:
        return InversePropensity(smallest=1e-6, relevance=MLP(hidden=(8,), steps=1)).fit(log)

    dense, found = (trained(log).ranker_.objective.propensities.numpy() for log in (LOG, AROUND_AN_ADVERTISEMENT))
    np.testing.assert_allclose(found, UsedPositions.of_log(AROUND_AN_ADVERTISEMENT).filled(dense), rtol=1e-6)
    curve = PositionCurve.of(AROUND_AN_ADVERTISEMENT, trained(LOG).ranker_)
    assert curve.source == "swaps"
    np.testing.assert_array_equal(curve.values, estimate_propensities(AROUND_AN_ADVERTISEMENT))


def test_an_error_says_how_positions_are_counted() -> None:
    apart = ClickLog.of(features=[[0.1], [0.7]], documents=[0, 1], offsets=[0, 2], clicks=[1, 1], positions=[1, 3])
    with pytest.raises(DataError, match=r"links position 1 with 2.*\(positions are counted without 2, where"):
        estimate_propensities(apart)
    with pytest.raises(DataError, match="positions are counted without 2"):
        ResampledPropensities.of_log(apart)
    assert "positions are counted without 2" in str(bias_curves(apart, samples=2).of("all-pairs").problem)


def test_beyond_the_ends_counts_the_nearest() -> None:
    used = UsedPositions(np.isin(np.arange(6), [1, 3]))
    assert used.count == 2
    np.testing.assert_allclose(used.filled(np.array([1.0, 0.25])), [1, 1, 0.5, 0.25, 0.25, 0.25])
    np.testing.assert_allclose(used.filled(np.array([[1.0, 0.25], [1.0, 0.0]]))[1], [1, 1, 0, 0, 0, 0])
    assert used.numbers(np.array([1, 3, 1])).tolist() == [0, 1, 0]

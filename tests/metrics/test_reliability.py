"""Correlations by products, partial correlation and reliability, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from ultr.metrics.reliability import correlations, inverse_spreads, partial_correlation, reliability_of_mean


def _quantities() -> np.ndarray:
    random = np.random.default_rng(3)
    third = random.normal(size=500)
    first, second = (0.7 * third + random.normal(size=500) for _ in range(2))
    values = np.stack([first, second + 0.4 * first, third])
    centred: np.ndarray = values - values.mean(axis=1, keepdims=True)
    return centred


def test_correlations_are_those_of_numpy() -> None:
    values = _quantities()
    np.testing.assert_allclose(correlations(values @ values.T / 500), np.corrcoef(values), atol=1e-12)


def test_a_constant_quantity_correlates_with_nothing() -> None:
    products = np.array([[2.0, 0.0], [0.0, 0.0]])
    assert correlations(products).tolist() == [[pytest.approx(1.0), 0.0], [0.0, 0.0]]
    assert inverse_spreads(products).tolist() == [pytest.approx(2**-0.5), 0.0]


def test_a_partial_correlation_is_that_of_the_residuals_of_regressions_on_the_third() -> None:
    first, second, third = _quantities()
    residuals = [each - third * (each @ third) / (third @ third) for each in (first, second)]
    found = np.corrcoef([first, second, third])
    assert partial_correlation(found[0, 1], found[0, 2], found[1, 2]) == pytest.approx(np.corrcoef(residuals)[0, 1])


def test_nothing_is_left_beside_a_third_that_says_all() -> None:
    assert partial_correlation(0.3, 1.0, 0.3) == 0.0
    assert partial_correlation(0.5, 1.0, 0.3) == 0.0
    assert partial_correlation(0.5, 0.3, 1.0) == 0.0


@pytest.mark.parametrize("noise", [0.01, 1.0, 30.0])
def test_the_reliability_of_a_mean_is_the_slope_of_the_truth_on_it(noise: float) -> None:
    # Truth of variance 1 and two measurements of it: Cov(truth, mean) = 1, Var(mean) = 1 + noise / 2.
    assert reliability_of_mean(1 / (1 + noise)) == pytest.approx(1 / (1 + noise / 2))


def test_measurements_that_disagree_are_not_reliable() -> None:
    assert reliability_of_mean(-0.5) == 0.0

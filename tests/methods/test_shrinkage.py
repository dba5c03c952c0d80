"""What is kept of a correction: by its definition, and never to the harm of either parent."""

from __future__ import annotations

import numpy as np
import pytest

from ultr.methods.shrinkage import Shrinkage


def _shared_error(correction: float, noise: float) -> float:
    """The variance of an error that both halves share and that is k times the noise of their mean, C = k E / 2.

    With S = T + C and k = S / (S + E / 2), this is S^2 - T S - T E / 2 = 0.
    """
    return (correction + float(np.sqrt(correction**2 + 2 * correction * noise))) / 2 - correction


def _products(*, beta: float, correction: float, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Products of the scores of raw clicks, all queries and both halves; and of each of them with the truth.

    Raw clicks a have variance 1, the truth is u = beta a + c, a half is u + s + e with s an error that both share, and
    the fit on all queries has the mean of the halves' noise.
    """
    # Independent parts: a, c, s, e1, e2.
    parts = np.diag([1.0, correction, _shared_error(correction, noise), noise, noise])
    made_of = np.array([[1, 0, 0, 0, 0], [beta, 1, 1, 0.5, 0.5], [beta, 1, 1, 1, 0], [beta, 1, 1, 0, 1]])
    truth = np.array([beta, 1, 0, 0, 0])
    return made_of @ parts @ made_of.T, made_of @ parts @ truth


def _correlation(weights: np.ndarray, products: np.ndarray, with_truth: np.ndarray, truth: float) -> float:
    return float(weights @ with_truth / np.sqrt(weights @ products @ weights * truth))


@pytest.mark.parametrize("noise", [0.001, 0.1, 1.0, 10.0, 1_000.0])
@pytest.mark.parametrize("correction", [0.001, 0.3, 3.0])
@pytest.mark.parametrize("beta", [0.1, 1.0])
def test_scores_are_as_near_to_the_truth_as_the_better_of_raw_and_debiased_clicks(
    beta: float, correction: float, noise: float
) -> None:
    products, with_truth = _products(beta=beta, correction=correction, noise=noise)
    truth = beta**2 + correction
    found = Shrinkage.of(products)
    near = _correlation(np.array(found.weights), products, with_truth, truth)
    debiased, raw = (
        _correlation(np.array(weights), products, with_truth, truth) for weights in ([0, 1, 0, 0], [1, 0, 0, 0])
    )
    assert near >= max(debiased, raw) - 0.002
    if correction >= 0.3 and 0.1 <= noise <= 10:
        assert near > max(debiased, raw)


def test_the_kept_share_is_that_of_truth_in_the_mean_of_the_halves() -> None:
    products, _ = _products(beta=0.5, correction=0.25, noise=1.0)
    # Beside raw clicks a half is c + s + e with variances of 1/4, 1/4 and 1, and the mean of both halves has half the
    # noise: they agree by 1/3, are reliable by 1/2, and a quarter of their mean is truth.
    assert _shared_error(0.25, 1.0) == pytest.approx(1 / 4)
    assert Shrinkage.of(products).agreement == pytest.approx(1 / 3)
    assert Shrinkage.of(products).kept == pytest.approx(1 / 4)


@pytest.mark.parametrize("noise", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("correction", [0.2, 5.0])
def test_it_is_so_whatever_the_noise(correction: float, noise: float) -> None:
    products, _ = _products(beta=0.5, correction=correction, noise=noise)
    whole = correction + _shared_error(correction, noise) + noise / 2
    assert Shrinkage.of(products).kept == pytest.approx(correction / whole)


def test_without_noise_all_is_kept_and_raw_clicks_count_for_nothing() -> None:
    found = Shrinkage.of(_products(beta=0.5, correction=1.0, noise=1e-12)[0])
    assert found.kept == pytest.approx(1.0)
    assert found.weights[0] == pytest.approx(0.0, abs=1e-9)


def test_halves_that_do_not_agree_leave_raw_clicks_alone() -> None:
    products = _products(beta=0.5, correction=1.0, noise=1.0)[0]
    products[2, 3] = products[3, 2] = -0.5
    assert Shrinkage.of(products).weights == (1.0, 0.0, 0.0, 0.0)


def test_the_unit_of_a_fit_changes_nothing() -> None:
    products = _products(beta=0.5, correction=1.0, noise=1.0)[0]
    unit = np.array([50.0, 1.0, 3.0, 0.2])
    found, other = Shrinkage.of(products), Shrinkage.of(products * np.outer(unit, unit))
    assert other.kept == pytest.approx(found.kept)
    np.testing.assert_allclose(np.array(other.weights) * unit, found.weights)


def test_a_fit_that_scores_all_alike_has_no_weight() -> None:
    products = _products(beta=0.5, correction=1.0, noise=1.0)[0]
    products[2], products[:, 2] = 0.0, 0.0
    assert Shrinkage.of(products).weights == (1.0, 0.0, 0.0, 0.0)

from __future__ import annotations

import numpy as np
import pytest

from ultr.arrays import Doubles, ratio
from ultr.bias.factorization import fit_one_more, fit_rank_one, log_likelihood
from ultr.clicks import ClickMatrix, TrustBias
from ultr.clicks.independent import IndependentClicks

MODELS: dict[str, IndependentClicks] = {"trust": TrustBias(), "real": ClickMatrix()}


def _counts(seed: int, *, tables: int = 6, most: int = 60) -> tuple[Doubles, Doubles]:
    random = np.random.default_rng(seed)
    impressions = random.integers(0, most, size=(tables, 4, 6))
    clicks = random.binomial(impressions, random.uniform(0, 0.8, size=impressions.shape))
    return clicks.astype(np.float64), impressions.astype(np.float64)


def test_expected_counts_of_one_term_are_fitted_exactly() -> None:
    rates = np.outer([0.1, 0.9, 0.4], [1.0, 0.5, 0.2, 0.05])[None]
    impressions = np.random.default_rng(0).integers(50, 500, size=rates.shape).astype(np.float64)
    fit = fit_rank_one(impressions * rates, impressions, tolerance=1e-12)
    np.testing.assert_allclose(fit.rates, rates, rtol=1e-5)


def test_one_term_solves_the_score_equations_of_the_binomial_likelihood() -> None:
    clicks, impressions = _counts(1)
    rates = fit_rank_one(clicks, impressions, tolerance=1e-13).rates
    assert rates.max() < 0.99
    # The derivative by log a_g is the sum over positions of c - (n - c) P / (1 - P); by log b_p that over groups.
    score = clicks - (impressions - clicks) * rates / (1 - rates)
    np.testing.assert_allclose(score.sum(axis=1), 0, atol=1e-4)
    np.testing.assert_allclose(score.sum(axis=2), 0, atol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_expected_counts_of_trust_bias_need_two_terms_and_those_of_the_real_matrix_more(name: str) -> None:
    rates = MODELS[name].rates(4)[None]
    impressions = np.full(rates.shape, 1_000.0)
    clicks = impressions * rates
    whole = log_likelihood(clicks, impressions, ratio(clicks, impressions))
    one = fit_rank_one(clicks, impressions)
    two = fit_one_more(clicks, impressions, one, np.random.default_rng(0), rounds=3_000, tolerance=1e-6)
    assert whole - one.log_likelihood > 50
    if name == "trust":
        assert whole - two.log_likelihood < 0.05
    else:
        assert whole - two.log_likelihood > 50


def test_no_round_lowers_the_likelihood_and_no_probability_leaves_zero_to_one() -> None:
    clicks, impressions = _counts(2, most=6)
    assert (clicks == impressions).any()
    one = fit_rank_one(clicks, impressions)
    before = one.log_likelihood
    for rounds in range(10, 100, 10):
        two = fit_one_more(clicks, impressions, one, np.random.default_rng(0), starts=1, rounds=rounds, tolerance=0)
        assert (two.log_likelihood >= before - 1e-9).all()
        assert two.rates.min() >= 0
        assert two.rates.max() <= 1 + 1e-9
        before = two.log_likelihood


def test_one_term_more_is_never_worse_and_the_measured_rates_are_best() -> None:
    clicks, impressions = _counts(3)
    fit, whole = fit_rank_one(clicks, impressions), log_likelihood(clicks, impressions, ratio(clicks, impressions))
    for _ in range(2):
        more = fit_one_more(clicks, impressions, fit, np.random.default_rng(0))
        assert (more.log_likelihood >= fit.log_likelihood).all()
        assert (more.log_likelihood <= whole + 1e-9).all()
        fit = more


def test_tables_fitted_together_are_fitted_as_if_alone() -> None:
    clicks, impressions = _counts(4)
    together = fit_rank_one(clicks, impressions, tolerance=1e-12)
    alone = fit_rank_one(clicks[2:3], impressions[2:3], tolerance=1e-12)
    np.testing.assert_allclose(together.rates[2], alone.rates[0], rtol=1e-8)

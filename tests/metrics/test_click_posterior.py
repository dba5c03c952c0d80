from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ultr.arrays import Doubles
from ultr.errors import DataError, OptionError
from ultr.metrics.click_posterior import click_posterior, log_marginal

RATE, COUNT, POSITIVE = st.floats(0.01, 1), st.integers(0, 1_000), st.floats(0.1, 1_000)


def arrays(prior: float, clicks: float, exposure: float) -> tuple[Doubles, Doubles, Doubles]:
    return np.array([prior]), np.array([float(clicks)]), np.array([float(exposure)])


@given(RATE, COUNT, POSITIVE, POSITIVE)
def test_the_posterior_is_that_of_bayes_rule_on_a_grid(
    prior: float, clicks: int, exposure: float, strength: float
) -> None:
    found = click_posterior(*arrays(prior, clicks, exposure), strength)
    known = stats.gamma(strength * prior + clicks, scale=1 / (strength + exposure))
    assert found.mean[0] == pytest.approx(known.mean())
    assert [found.low[0], found.high[0]] == pytest.approx(known.interval(0.95), rel=1e-6, abs=1e-12)


def test_the_posterior_is_prior_times_likelihood() -> None:
    prior, clicks, exposure, strength = 0.2, 7, 30.0, 12.0
    rates = np.linspace(1e-5, 1.5, 200_001)
    weights = stats.gamma.pdf(rates, strength * prior, scale=1 / strength) * stats.poisson.pmf(clicks, exposure * rates)
    found = click_posterior(*arrays(prior, clicks, exposure), strength)
    assert found.mean[0] == pytest.approx((rates * weights).sum() / weights.sum(), rel=1e-4)
    step = rates[1] - rates[0]
    marginal = log_marginal(*arrays(prior, clicks, exposure), strength)[0]
    assert marginal == pytest.approx(np.log(weights.sum() * step), rel=1e-4)


def test_the_marginal_is_a_negative_binomial_distribution() -> None:
    strength, prior, exposure = 5.0, 0.3, 40.0
    counts = np.arange(400.0)
    found = log_marginal(np.full(400, prior), counts, np.full(400, exposure), strength)
    known = stats.nbinom.logpmf(counts, strength * prior, strength / (strength + exposure))
    np.testing.assert_allclose(found, known, rtol=1e-9, atol=1e-9)


def test_the_mean_is_that_of_beta_and_binomial_where_every_impression_counts() -> None:
    prior, clicks, shown, strength = 0.3, 7, 20, 10.0
    known = stats.beta(strength * prior + clicks, strength * (1 - prior) + shown - clicks)
    found = click_posterior(*arrays(prior, clicks, shown), strength)
    assert found.mean[0] == pytest.approx(known.mean())
    assert found.low[0] < known.interval(0.95)[0]
    assert found.high[0] > known.interval(0.95)[1]


def test_a_hundred_of_a_hundred_beats_nine_thousand_of_ten_thousand_only_where_the_prior_is_weak() -> None:
    prior, clicks, exposure = np.full(2, 0.5), np.array([100.0, 9_000.0]), np.array([100.0, 10_000.0])
    few, many = click_posterior(prior, clicks, exposure, 50.0).mean
    assert few < many
    few, many = click_posterior(prior, clicks, exposure, 1.0).mean
    assert few > many


def test_without_clicks_the_prior_stays_and_with_many_the_rate_is_their_own() -> None:
    prior = np.array([0.2])
    assert click_posterior(prior, np.zeros(1), np.zeros(1), 10.0).mean[0] == pytest.approx(0.2)
    found = click_posterior(prior, np.array([7e6]), np.array([1e7]), 10.0)
    assert found.mean[0] == pytest.approx(0.7, rel=1e-4)
    assert found.high[0] - found.low[0] < 0.002


def test_numbers_that_are_no_rates_or_counts_are_refused() -> None:
    with pytest.raises(DataError, match="prior rates must be above 0"):
        click_posterior(*arrays(0.0, 1, 1), 1.0)
    for wrong in range(3):
        prior, clicks, exposure = (np.array([0.5, -1.0 if place == wrong else 0.5]) for place in range(3))
        with pytest.raises(DataError, match="prior rates must be above 0, clicks and exposures at least 0"):
            log_marginal(prior, clicks, exposure, 1.0)
    with pytest.raises(DataError, match="1 prior rates, but 2 clicks"):
        click_posterior(np.ones(1), np.ones(2), np.ones(2), 1.0)
    with pytest.raises(OptionError, match="the strength of a prior must be"):
        click_posterior(*arrays(0.5, 1, 1), 0.0)

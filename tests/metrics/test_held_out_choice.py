from __future__ import annotations

import numpy as np
import pytest

from ultr.errors import DataError
from ultr.metrics import Lead, list_log_likelihoods, paired_lead, smallest_not_beaten


def test_the_error_of_a_lead_is_the_spread_of_leads_over_fresh_queries() -> None:
    random = np.random.default_rng(0)
    leads = []
    for _ in range(2_000):
        sizes = random.integers(1, 9, size=60).astype(np.float64)
        second = random.normal(size=60) * sizes
        leads.append(paired_lead(second + 0.3 * sizes + random.normal(size=60), second, sizes))
    means, errors = (np.array([getattr(lead, name) for lead in leads]) for name in ("mean", "error"))
    assert means.mean() == pytest.approx(0.3, abs=0.002)
    assert errors.mean() == pytest.approx(means.std(), rel=0.05)


def test_what_two_models_share_does_not_blur_the_lead() -> None:
    difficulty = np.random.default_rng(0).normal(scale=1e3, size=50)
    assert paired_lead(difficulty + 1, difficulty, np.ones(50)).mean == pytest.approx(1)
    assert paired_lead(difficulty + 1, difficulty, np.ones(50)).error < 1e-9


def test_queries_of_no_size_count_for_nothing() -> None:
    first, second, sizes = np.array([3.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0]), np.array([1.0, 2.0, 0.0])
    assert paired_lead(first, second, sizes) == paired_lead(first[:2], second[:2], sizes[:2])


def test_a_larger_model_that_is_no_better_is_seldom_taken() -> None:
    random = np.random.default_rng(0)
    taken = [smallest_not_beaten(list(random.normal(size=(2, 100))), np.ones(100)) for _ in range(2_000)]
    # One-sided at 1.64 standard errors: 5 %.
    assert 0.035 < np.mean(taken) < 0.068


def test_the_smallest_of_those_that_are_as_good_is_taken() -> None:
    noise = 0.01 * np.random.default_rng(0).normal(size=(4, 50))
    assert smallest_not_beaten(list(np.array([[0.0], [1.0], [2.0], [2.0]]) + noise), np.ones(50)) == 2
    # A worse one in between does not hide a better one behind it.
    assert smallest_not_beaten(list(np.array([[1.0], [0.0], [2.0], [1.0]]) + noise), np.ones(50)) == 2
    assert smallest_not_beaten(list(np.array([[2.0], [1.0], [0.0], [1.0]]) + noise), np.ones(50)) == 0


def test_a_lead_that_is_sure_but_small_does_not_count() -> None:
    noise = 1e-6 * np.random.default_rng(0).normal(size=(2, 50))
    totals = list(np.array([[0.0], [1e-4]]) + noise)
    assert smallest_not_beaten(totals, np.ones(50)) == 1
    assert smallest_not_beaten(totals, np.ones(50), least=2e-4) == 0
    assert smallest_not_beaten(totals, np.ones(50), least=0.5e-4) == 1


def test_one_query_cannot_tell_noise() -> None:
    with pytest.raises(DataError, match="at least two queries"):
        paired_lead(np.ones(2), np.zeros(2), np.array([1.0, 0.0]))
    with pytest.raises(DataError, match="needs the same queries, got 2, 3 and 2"):
        paired_lead(np.ones(2), np.zeros(3), np.ones(2))


def test_likelihoods_in_lists_add_up_to_their_mean_and_stay_finite() -> None:
    shares, clicks = np.array([0.7, 0.2, 0.1]), np.array([3, 0, 2])
    total = list_log_likelihoods(shares, clicks).sum()
    assert total / 5 == pytest.approx(np.average(np.log(shares), weights=clicks))
    assert np.isfinite(list_log_likelihoods(np.zeros(3), clicks)).all()
    with pytest.raises(DataError, match="do not fit clicks"):
        list_log_likelihoods(shares[:2], clicks)


@pytest.mark.parametrize(("mean", "beyond"), [(1.64, False), (1.6401, True), (-5.0, False)])
def test_a_lead_is_beyond_noise_above_1_64_standard_errors(mean: float, beyond: bool) -> None:  # noqa: FBT001
    assert Lead(mean, 1.0).beyond_noise is beyond


def test_two_queries_are_enough_for_a_lead() -> None:
    lead = paired_lead(np.array([3.0, 0.0]), np.array([0.0, 1.0]), np.array([1.0, 3.0]))
    # r = 2 / 4, rests 3 - 0.5 and -1 - 1.5; 2 / 1 times their squares over 4 squared.
    assert (lead.mean, lead.error) == pytest.approx((0.5, np.sqrt(2 * (2.5**2 + 2.5**2) / 16)))


@pytest.mark.parametrize(("tried", "errors"), [(1, 1.6449), (2, 1.96), (5, 2.3263), (50, 3.0902)])
def test_the_best_of_many_must_lead_by_what_the_best_of_them_has_by_chance(tried: int, errors: float) -> None:
    for error in (0.2, 1.0, 3.0):
        assert Lead((errors + 0.001) * error, error).beyond_noise_of(tried)
        assert not Lead((errors - 0.001) * error, error).beyond_noise_of(tried)


def test_a_sure_lead_of_no_more_than_the_least_does_not_count() -> None:
    totals, sizes = [np.zeros(4), np.array([0.5, 0.5, 0.5, 0.5])], np.ones(4)
    assert smallest_not_beaten(totals, sizes, least=0.5) == 0
    assert smallest_not_beaten(totals, sizes, least=0.499) == 1

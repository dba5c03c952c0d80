"""Every click model against its exact pattern distribution (`oracle`)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clicks.oracle import CASES, MAX_LABEL, Case, Pattern

from ultr.arrays import Doubles, Integers
from ultr.clicks import CLICK_MODELS, ClickModel, click_model

LISTS: tuple[Pattern, ...] = ((4, 0, 2), (0, 1, 3, 4), (2, 4, 0, 3, 1))
CLOSE = 5.0  # standard errors; one z-value in two million is farther out

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name} {sorted(case.options)}")
every_list = pytest.mark.parametrize("labels", LISTS, ids=str)


def model_of(case: Case) -> ClickModel:
    return click_model(case.name, **case.options)


def repeated(labels: Pattern, times: int) -> Integers:
    return np.tile(labels, (times, 1))


def assert_drawn_from(draws: Integers, chances: dict[Pattern, float]) -> None:
    """Every outcome as often as its chance says, and the whole table by a chi-square bound."""
    seen, counts = np.unique(draws, axis=0, return_counts=True)
    observed = {tuple(row): count for row, count in zip(seen.tolist(), counts.tolist(), strict=True)}
    assert all(chances.get(outcome, 0) > 0 for outcome in observed), "an impossible outcome was drawn"
    common = {outcome: p for outcome, p in chances.items() if p * len(draws) >= 10}
    p = np.array(list(common.values()))
    n = np.array([observed.get(outcome, 0) for outcome in common])
    expected = p * len(draws)
    z = (n - expected) / np.sqrt(expected * np.maximum(1 - p, 1e-12))
    assert np.abs(z).max() < CLOSE
    chi_square, freedom = ((n - expected) ** 2 / expected).sum(), len(p)
    assert chi_square < freedom + CLOSE * np.sqrt(2 * freedom)


def standard_errors(samples: Doubles, expected: Doubles) -> Doubles:
    """How many standard errors the mean of the samples is away; a constant must be hit exactly."""
    error = samples.std(axis=0) / np.sqrt(len(samples))
    distance = samples.mean(axis=0) - expected
    away: Doubles = np.where(error > 1e-9, distance / np.maximum(error, 1e-9), distance * 1e9)
    return away


def test_every_registered_model_has_a_case() -> None:
    assert {case.name for case in CASES} == set(CLICK_MODELS)


@every_case
@every_list
def test_pattern_probabilities_of_the_oracle_sum_to_one(case: Case, labels: Pattern) -> None:
    chances = np.array(list(case.patterns(labels).values()))
    assert chances.min() >= 0
    assert chances.sum() == pytest.approx(1, abs=1e-12)


@every_case
@given(lists=st.lists(st.lists(st.integers(0, MAX_LABEL), min_size=4, max_size=4), min_size=1, max_size=3))
def test_probabilities_are_the_exact_marginals(case: Case, lists: list[list[int]]) -> None:
    expected = [case.moments(tuple(labels))[0] for labels in lists]
    marginals = model_of(case).probabilities(np.array(lists), max_label=MAX_LABEL)
    np.testing.assert_allclose(marginals, expected, rtol=0, atol=1e-12)


@every_case
@every_list
def test_counts_have_the_exact_mean_variance_and_covariance(case: Case, labels: Pattern) -> None:
    lists, impressions = 20_000, 40
    generator = np.random.default_rng(1)
    counts = model_of(case).counts(repeated(labels, lists), np.full(lists, impressions), generator, max_label=MAX_LABEL)
    mean, covariance = case.moments(labels)
    centred = counts - impressions * mean
    assert np.abs(standard_errors(counts.astype(float), impressions * mean)).max() < CLOSE
    products = centred[:, :, None] * centred[:, None, :]
    assert np.abs(standard_errors(products, impressions * covariance)).max() < CLOSE


@every_case
@pytest.mark.parametrize("sessions", [1, 2, 3])
def test_counts_of_few_sessions_have_the_exact_joint_distribution(case: Case, sessions: int) -> None:
    labels, lists = (2, 0, 3), 100_000
    generator = np.random.default_rng(2)
    counts = model_of(case).counts(repeated(labels, lists), np.full(lists, sessions), generator, max_label=MAX_LABEL)
    assert_drawn_from(counts, case.patterns(labels, sessions))


@every_case
@every_list
def test_sessions_have_the_exact_pattern_distribution(case: Case, labels: Pattern) -> None:
    generator = np.random.default_rng(3)
    clicks = model_of(case).sessions(repeated(labels, 100_000), generator, max_label=MAX_LABEL)
    assert_drawn_from(clicks.astype(np.int64), case.patterns(labels))

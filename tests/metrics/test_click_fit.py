from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import log_loss

from ultr.arrays import Doubles, Integers
from ultr.errors import DataError
from ultr.metrics.click_fit import list_log_likelihood, log_likelihood, perplexity, perplexity_by_position

rows = st.lists(
    st.tuples(st.floats(0.001, 0.999), st.integers(0, 6), st.integers(0, 6), st.integers(1, 4)),
    min_size=1,
    max_size=8,
).filter(lambda rows: any(clicked + skipped for _, clicked, skipped, _ in rows))
Rows = list[tuple[float, int, int, int]]


def separate(collapsed: Rows) -> Rows:
    """Each impression as a row of its own."""
    return [
        (probability, int(i < clicked), int(i >= clicked), position)
        for probability, clicked, skipped, position in collapsed
        for i in range(clicked + skipped)
    ]


def columns(rows: Rows) -> tuple[Doubles, Integers, Integers, Integers]:
    probabilities, clicked, skipped, positions = (np.array(column) for column in zip(*rows, strict=True))
    return probabilities, clicked, clicked + skipped, positions


@given(rows)
@settings(deadline=None)
def test_a_collapsed_row_gives_the_same_as_its_separate_impressions(collapsed: Rows) -> None:
    probabilities, clicks, impressions, positions = columns(collapsed)
    p, c, n, k = columns(separate(collapsed))
    assert log_likelihood(probabilities, clicks, impressions) == pytest.approx(log_likelihood(p, c, n), rel=1e-12)
    assert perplexity(probabilities, clicks, impressions) == pytest.approx(perplexity(p, c, n), rel=1e-12)
    together = perplexity_by_position(probabilities, clicks, impressions, positions=positions)
    apart = perplexity_by_position(p, c, n, positions=k)
    np.testing.assert_allclose(together[: len(apart)], apart, rtol=1e-12)


@given(rows)
@settings(deadline=None)
def test_the_log_likelihood_is_the_negative_log_loss_of_scikit_learn(collapsed: Rows) -> None:
    probabilities, clicks, _, _ = columns(separate(collapsed))
    theirs = log_loss(clicks, probabilities, labels=[0, 1])
    assert log_likelihood(*columns(collapsed)[:3]) == pytest.approx(-theirs)


@given(rows)
@settings(deadline=None)
def test_the_perplexity_is_a_power_of_the_mean_likelihood_in_bits(collapsed: Rows) -> None:
    impressions = separate(collapsed)
    bits = [np.log2(p if clicked else 1 - p) for p, clicked, _, _ in impressions]
    assert perplexity(*columns(collapsed)[:3]) == pytest.approx(2 ** -np.mean(bits))


@given(rows)
@settings(deadline=None)
def test_the_perplexity_of_a_position_is_the_perplexity_of_its_rows(collapsed: Rows) -> None:
    probabilities, clicks, impressions, positions = columns(collapsed)
    found = perplexity_by_position(probabilities, clicks, impressions, positions=positions)
    assert len(found) == positions.max()
    for position, value in enumerate(found, start=1):
        here = positions == position
        if impressions[here].sum():
            expected = perplexity(probabilities[here], clicks[here], impressions[here])
            assert value == pytest.approx(expected)
        else:
            assert np.isnan(value)


def test_the_true_click_rates_fit_best() -> None:
    clicks, impressions = np.array([30, 5]), np.array([100, 50])
    best = log_likelihood(clicks / impressions, clicks, impressions)
    for error in [-0.05, 0.05]:
        assert log_likelihood(clicks / impressions + error, clicks, impressions) < best


def test_perfect_and_impossible_predictions_stay_finite() -> None:
    certain, clicks, impressions = np.array([1.0, 0.0]), np.array([3, 0]), np.array([3, 4])
    assert perplexity(certain, clicks, impressions) == pytest.approx(1.0, abs=1e-5)
    assert log_likelihood(1 - certain, clicks, impressions) == pytest.approx(log(1e-6))
    assert log_likelihood(certain.astype(np.float32), clicks, impressions) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, np.nan, np.inf])
def test_what_is_not_a_probability_raises(wrong: float) -> None:
    with pytest.raises(DataError, match=r"probabilities must lie in \[0, 1\]"):
        log_likelihood(np.array([0.5, wrong]), np.array([0, 1]), np.array([1, 1]))


def test_counts_that_cannot_be_raise() -> None:
    half = np.array([0.5])
    with pytest.raises(DataError, match="more clicks than impressions"):
        perplexity(half, np.array([2]), np.array([1]))
    with pytest.raises(DataError, match="fewer than no clicks"):
        perplexity(half, np.array([-1]), np.array([1]))
    with pytest.raises(DataError, match="at least one impression"):
        perplexity(half, np.array([0]), np.array([0]))
    with pytest.raises(DataError, match="must have one shape"):
        perplexity(half, np.array([0, 0]), np.array([1, 1]))
    with pytest.raises(DataError, match="positions must be one number of at least 1"):
        perplexity_by_position(half, np.array([0]), np.array([1]), positions=np.array([0]))


def test_the_list_log_likelihood_is_the_mean_over_separate_clicks() -> None:
    probabilities = np.array([0.7, 0.2, 0.1, 0.4, 0.6])
    clicks = np.array([3, 0, 1, 2, 0])
    expected = (3 * log(0.7) + log(0.1) + 2 * log(0.4)) / 6
    assert list_log_likelihood(np.log(probabilities), clicks) == pytest.approx(expected)


def test_a_document_that_cannot_be_clicked_counts_only_when_it_is() -> None:
    impossible = np.array([0.0, -np.inf])
    assert list_log_likelihood(impossible, np.array([2, 0])) == 0.0
    assert list_log_likelihood(impossible, np.array([2, 1])) == -np.inf


def test_log_probabilities_and_clicks_that_cannot_be_raise() -> None:
    for wrong in [0.5, np.nan]:
        with pytest.raises(DataError, match="log-probabilities must be numbers of at most 0"):
            list_log_likelihood(np.array([wrong]), np.array([1]))
    with pytest.raises(DataError, match="at least one click"):
        list_log_likelihood(np.array([-1.0]), np.array([0]))
    with pytest.raises(DataError, match="do not fit clicks"):
        list_log_likelihood(np.array([-1.0]), np.array([1, 1]))

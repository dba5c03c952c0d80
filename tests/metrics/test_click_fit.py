from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss

from ultr.arrays import Doubles, Integers
from ultr.errors import DataError
from ultr.metrics.click_fit import list_log_likelihoods, log_likelihoods

rows = st.lists(
    st.tuples(st.floats(0.001, 0.999), st.integers(0, 6), st.integers(0, 6)),
    min_size=1,
    max_size=8,
).filter(lambda rows: any(clicked + skipped for _, clicked, skipped in rows))
Rows = list[tuple[float, int, int]]


def separate(collapsed: Rows) -> Rows:
    """Each impression as a row of its own."""
    return [
        (probability, int(i < clicked), int(i >= clicked))
        for probability, clicked, skipped in collapsed
        for i in range(clicked + skipped)
    ]


def columns(rows: Rows) -> tuple[Doubles, Integers, Integers]:
    probabilities, clicked, skipped = (np.array(column) for column in zip(*rows, strict=True))
    return probabilities, clicked, clicked + skipped


def mean(probabilities: Doubles, clicks: Integers, impressions: Integers) -> float:
    return float(log_likelihoods(probabilities, clicks, impressions).sum() / impressions.sum())


@given(rows)
def test_a_collapsed_row_gives_the_same_as_its_separate_impressions(collapsed: Rows) -> None:
    assert mean(*columns(collapsed)) == pytest.approx(mean(*columns(separate(collapsed))), rel=1e-12)


@given(rows)
def test_the_log_likelihood_is_the_negative_log_loss_of_scikit_learn(collapsed: Rows) -> None:
    probabilities, clicks, _ = columns(separate(collapsed))
    assert mean(*columns(collapsed)) == pytest.approx(-log_loss(clicks, probabilities, labels=[0, 1]))


def test_the_true_click_rates_fit_best() -> None:
    clicks, impressions = np.array([30, 5]), np.array([100, 50])
    best = mean(clicks / impressions, clicks, impressions)
    for error in [-0.05, 0.05]:
        assert mean(clicks / impressions + error, clicks, impressions) < best


def test_perfect_and_impossible_predictions_stay_finite() -> None:
    certain, clicks, impressions = np.array([1.0, 0.0]), np.array([3, 0]), np.array([3, 4])
    assert mean(1 - certain, clicks, impressions) == pytest.approx(log(1e-6))
    assert mean(certain.astype(np.float32), clicks, impressions) == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, np.nan, np.inf])
def test_what_is_not_a_probability_raises(wrong: float) -> None:
    with pytest.raises(DataError, match=r"probabilities must lie in \[0, 1\]"):
        log_likelihoods(np.array([0.5, wrong]), np.array([0, 1]), np.array([1, 1]))


def test_counts_that_cannot_be_raise() -> None:
    half, halves = np.array([0.5]), np.array([0.5, 0.5])
    with pytest.raises(DataError, match="more clicks than impressions"):
        log_likelihoods(halves, np.array([2, 1]), np.array([1, 1]))
    with pytest.raises(DataError, match="fewer than no clicks"):
        log_likelihoods(halves, np.array([-1, 1]), np.array([1, 1]))
    with pytest.raises(DataError, match="more clicks than impressions"):
        log_likelihoods(half, np.array([2]), np.array([1]))
    with pytest.raises(DataError, match="fewer than no clicks"):
        log_likelihoods(half, np.array([-1]), np.array([1]))
    with pytest.raises(DataError, match="at least one impression"):
        log_likelihoods(half, np.array([0]), np.array([0]))
    with pytest.raises(DataError, match="must have one shape"):
        log_likelihoods(half, np.array([0, 0]), np.array([1, 1]))


def test_the_log_likelihood_in_lists_is_the_sum_over_separate_clicks() -> None:
    shares = np.array([0.7, 0.2, 0.1, 0.4, 0.6])
    clicks = np.array([3, 0, 1, 2, 0])
    expected = [3 * log(0.7), 0, log(0.1), 2 * log(0.4), 0]
    assert list_log_likelihoods(shares, clicks).tolist() == pytest.approx(expected)


def test_a_document_that_cannot_be_clicked_counts_only_when_it_is() -> None:
    impossible = np.array([1.0, 0.0])
    assert list_log_likelihoods(impossible, np.array([2, 0])).tolist() == [0, 0]
    assert list_log_likelihoods(impossible, np.array([2, 1]))[1] < -700


def test_shares_and_clicks_that_cannot_be_raise() -> None:
    for wrong in [-0.1, 1.5, np.nan]:
        with pytest.raises(DataError, match=r"must lie in \[0, 1\], got"):
            list_log_likelihoods(np.array([0.5, wrong]), np.array([1, 1]))
    with pytest.raises(DataError, match="do not fit clicks"):
        list_log_likelihoods(np.array([0.5]), np.array([1, 1]))
    with pytest.raises(DataError, match="fewer than no clicks"):
        list_log_likelihoods(np.array([0.5, 0.5]), np.array([-1, 2]))


def test_a_softmax_may_be_rounded_above_1_by_a_ten_thousandth() -> None:
    assert list_log_likelihoods(np.array([1 + 0.99e-4]), np.array([1])) == pytest.approx(np.log1p(0.99e-4))
    with pytest.raises(DataError, match=r"must lie in \[0, 1\]"):
        list_log_likelihoods(np.array([1 + 1.01e-4]), np.array([1]))


def test_a_document_may_be_clicked_every_time_or_never() -> None:
    found = log_likelihoods(np.array([0.5, 0.5]), np.array([3, 0]), np.array([3, 0]))
    assert found.tolist() == pytest.approx([3 * log(0.5), 0.0])

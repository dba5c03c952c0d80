from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from ultr.metrics import kendall_tau, same_top


@given(st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=0, max_size=12), max_size=4))
def test_it_is_that_of_scipy_in_each_list(lists: list[list[tuple[int, int]]]) -> None:
    scores, others = (np.array([pair[side] for each in lists for pair in each], dtype=float) for side in (0, 1))
    offsets = np.cumsum([0, *map(len, lists)])
    found = kendall_tau(scores, others, offsets)
    for tau, start, end in zip(found, offsets[:-1], offsets[1:], strict=True):
        one, other = scores[start:end], others[start:end]
        if len(set(one)) < 2 or len(set(other)) < 2:
            assert np.isnan(tau)
        else:
            assert tau == pytest.approx(kendalltau(one, other).statistic)


@given(st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=0, max_size=12), max_size=4))
def test_the_top_is_the_same_if_whatever_one_puts_there_is_best_by_the_other(
    lists: list[list[tuple[int, int]]],
) -> None:
    scores, others = (np.array([pair[side] for each in lists for pair in each], dtype=float) for side in (0, 1))
    offsets = np.cumsum([0, *map(len, lists)])
    for same, each in zip(same_top(scores, others, offsets), lists, strict=True):
        if len(each) < 2:
            assert np.isnan(same)
        else:
            best, other_best = (max(pair[side] for pair in each) for side in (0, 1))
            assert same == all(score == best for score, other in each if other == other_best)


def test_ties_count_in_neither_order_and_a_single_candidate_has_none() -> None:
    """By hand: the first scoring ties one pair of three, the second none: 2 / sqrt(2 * 3), and (1 - 1) / sqrt(6)."""
    found = kendall_tau(np.array([3.0, 2, 2, 3, 2, 2, 5]), np.array([3.0, 1, 2, 2, 1, 3, 5]), np.array([0, 3, 6, 7]))
    np.testing.assert_allclose(found, [2 / np.sqrt(6), 0.0, np.nan])
    assert found[0] == pytest.approx(kendalltau([3, 2, 2], [3, 1, 2]).statistic)

"""Lists in the order of a ranker, worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ultr.arrays import ratio
from ultr.errors import DataError
from ultr.metrics import average_precision, expected_reciprocal_rank, precision, rank_lists, reciprocal_rank

OFFSETS = np.array([0, 3, 3, 5])
RANKED = rank_lists(np.array([0.1, 0.9, 0.9, 2.0, 3.0]), np.array([2, 1, 0, 0, 0]), OFFSETS)
"""Three documents, of which two are tied; none; two that are not relevant."""


def test_ranks_lists_and_labels() -> None:
    assert RANKED.labels.tolist() == [0, 1, 2, 0, 0]
    assert RANKED.lists.tolist() == [0, 0, 0, 2, 2]
    assert RANKED.ranks.tolist() == [1, 2, 3, 1, 2]
    assert RANKED.queries == 3
    assert RANKED.relevant.tolist() == [False, True, True, False, False]
    assert RANKED.relevant_so_far().tolist() == [0, 1, 2, 0, 0]
    assert RANKED.total(np.arange(1.0, 6.0)).tolist() == [6.0, 0.0, 9.0]


def test_relevant_documents_are_counted_from_the_top_of_each_list() -> None:
    ranked = rank_lists(np.array([2.0, 1.0, 2.0, 1.0]), np.array([1, 1, 0, 3]), np.array([0, 2, 4]))
    assert ranked.relevant_so_far().tolist() == [1, 2, 0, 1]


@pytest.mark.parametrize(("cutoff", "counts"), [(None, [1, 1, 1, 1, 1]), (2, [1, 1, 0, 1, 1]), (1, [1, 0, 0, 1, 0])])
def test_ranks_up_to_the_cutoff_count(cutoff: int | None, counts: list[int]) -> None:
    assert RANKED.up_to(cutoff).tolist() == [bool(count) for count in counts]


def test_lists_without_a_relevant_document_have_no_value() -> None:
    np.testing.assert_array_equal(RANKED.where_judged(np.array([1.0, 2.0, 3.0])), [1.0, np.nan, np.nan])
    np.testing.assert_array_equal(ratio(np.array([1.0, 2.0]), np.array([4.0, 0.0]), otherwise=np.nan), [0.25, np.nan])


@pytest.mark.parametrize(
    ("scores", "labels", "said"),
    [
        (np.ones((2, 1)), np.zeros((2, 1), dtype=int), "do not fit labels"),
        (np.ones(2), np.zeros(1, dtype=int), "do not fit labels"),
        (np.ones(2), np.zeros(2), "labels must be integers of at least 0"),
        (np.ones(2), np.array([0, -1]), "labels must be integers of at least 0"),
        (np.array([1.0, np.nan]), np.array([0, 1]), r"the scores of query 0 \(counted from 0\) contain NaN"),
    ],
)
def test_scores_and_labels_that_give_no_order_are_refused(scores: Any, labels: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        rank_lists(scores, labels, np.array([0, 2]))


def test_measures_of_a_list_worked_out_by_hand() -> None:
    """In the order of the scores the labels are 0, 1, 0, 2."""
    arrays = np.array([4.0, 3.0, 2.0, 1.0]), np.array([0, 1, 0, 2]), np.array([0, 4])
    for cutoff, first, mean, share in (
        (None, 1 / 2, (1 / 2 + 2 / 4) / 2, None),
        (1, 0.0, 0.0, 0.0),
        (2, 1 / 2, 1 / 2 / 2, 1 / 2),
        (3, 1 / 2, 1 / 2 / 2, 1 / 3),
        (8, 1 / 2, (1 / 2 + 2 / 4) / 2, 2 / 8),
    ):
        assert reciprocal_rank(*arrays, cutoff=cutoff).tolist() == [first]
        assert average_precision(*arrays, cutoff=cutoff).tolist() == [mean]
        if cutoff is not None:
            assert precision(*arrays, cutoff=cutoff).tolist() == [share]
    # Satisfied with 1 / 4 at rank 2 and 3 / 4 at rank 4, of a highest grade of 2.
    for cutoff, value in (
        (None, 1 / 4 / 2 + 3 / 4 * 3 / 4 / 4),
        (4, 1 / 4 / 2 + 3 / 4 * 3 / 4 / 4),
        (3, 1 / 4 / 2),
        (1, 0),
    ):
        assert expected_reciprocal_rank(*arrays, max_label=2, cutoff=cutoff).tolist() == [value]

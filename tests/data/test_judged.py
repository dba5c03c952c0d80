from __future__ import annotations

import numpy as np
import pytest

from ultr.data.judged import JudgedLists, concatenate
from ultr.errors import DataError


def three_queries() -> JudgedLists:
    return JudgedLists.of(
        features=np.arange(12).reshape(6, 2),
        labels=[0, 2, 0, 0, 1, 0],
        offsets=[0, 3, 4, 6],
        query_ids=["one", "two", "three"],
        max_label=4,
    )


def test_select_takes_queries_in_the_order_asked_for() -> None:
    chosen = three_queries().select(np.array([2, 0]))
    assert chosen.query_ids.tolist() == ["three", "one"]
    assert chosen.labels.tolist() == [1, 0, 0, 2, 0]
    assert chosen.offsets.tolist() == [0, 2, 5]
    assert chosen.features[:, 0].tolist() == [8, 10, 0, 2, 4]
    assert chosen.max_label == 4


def test_select_understands_a_mask() -> None:
    mask = np.array([True, False, True])
    assert three_queries().select(mask).fingerprint() == three_queries().select(np.array([0, 2])).fingerprint()


def test_queries_without_a_relevant_document_can_be_dropped() -> None:
    assert three_queries().with_relevant().query_ids.tolist() == ["one", "three"]


def test_queries_and_features_are_numbered_by_default() -> None:
    lists = JudgedLists.of(features=np.eye(2), labels=[0, 3], offsets=[0, 1, 2])
    assert lists.query_ids.tolist() == ["1", "2"]
    assert lists.feature_names == ("1", "2")
    assert lists.max_label == 3
    assert (lists.queries, lists.documents, lists.lengths.tolist()) == (2, 2, [1, 1])


def test_joined_parts_give_the_whole_back() -> None:
    whole = three_queries()
    parts = [whole.select(np.array([0])), whole.select(np.array([1, 2]))]
    assert concatenate(parts).fingerprint() == whole.fingerprint()


def test_lists_with_other_features_cannot_be_joined() -> None:
    other = JudgedLists.of(features=np.eye(3), labels=[0, 1, 2], offsets=[0, 3])
    with pytest.raises(DataError, match="2 and 3 features"):
        concatenate([three_queries(), other])


def test_the_fingerprint_changes_with_the_labels() -> None:
    lists = three_queries()
    other = JudgedLists.of(
        features=lists.features, labels=lists.labels[::-1], offsets=lists.offsets, query_ids=lists.query_ids.tolist()
    )
    assert other.fingerprint() != lists.fingerprint()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"features": np.eye(2)}, "one row for each of 3 labels"),
        ({"features": np.zeros(3)[:, None, None]}, "one row for each"),
        ({"offsets": [0, 2]}, "end with 3"),
        ({"query_ids": ["one"]}, "2 queries, but 1 query ids"),
        ({"feature_names": ["a"]}, "3 features, but 1 feature names"),
        ({"labels": [0, -1, 0]}, r"labels must lie in 0\.\.0"),
        ({"max_label": 1}, r"labels must lie in 0\.\.1"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change: dict[str, object], sentence: str) -> None:
    arguments: dict[str, object] = {"features": np.eye(3), "labels": [0, 2, 1], "offsets": [0, 2, 3]}
    with pytest.raises(DataError, match=sentence):
        JudgedLists.of(**(arguments | change))  # type: ignore[arg-type]

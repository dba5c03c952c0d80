from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.errors import DataError
from ultr.methods import ClickBaseline, InversePropensity
from ultr.relevance import MLP

PLAIN: dict[str, Any] = {"features": np.eye(3), "documents": [0, 1, 2], "offsets": [0, 3], "clicks": [0, 1, 0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"positions": [1, 2, 10**9]}, "position 1,000,000,000, but positions end at 10,000"),
        ({"positions": [1, 2, 10**30]}, r"positions of a click log must be whole numbers below 2\^63"),
        (
            {"positions": [1, 2, 2.5]},
            r"positions of a click log must be whole numbers below 2\^63; row 2 \(from 0\) has 2.5",
        ),
        ({"clicks": [0, 0.5, 0]}, "clicks of a click log must be whole numbers"),
        ({"clicks": [0, np.nan, 0]}, r"clicks of a click log must be whole numbers below 2\^63; row 1 .* is missing"),
        ({"impressions": [2**63]}, "impressions of a click log must be whole numbers"),
        ({"impressions": [2**62]}, r"1.38e\+19 shown documents in all, which is more than sums can hold"),
        ({"signals": {"cart": [2**62, 2**62, 0]}}, r"9.22e\+18 signal 'cart' in all"),
        ({"feature_names": ["a", "b", "a"]}, "two features are called 'a'; give each a name of its own"),
        ({"feature_names": ["a", "b", "\ud800"]}, r"'\\ud800' among the features is no valid Unicode text"),
        ({"device": ["a", "b", "a\0"]}, r"'a\\x00' among the levels of 'device' ends with a NUL character"),
        ({"queries": ["a\0"]}, "among the queries ends with a NUL character"),
        ({"device": ["a", "b", "\ud800"]}, "among the levels of 'device' is no valid Unicode"),
    ],
)
def test_values_that_no_log_has_end_in_a_sentence(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        ClickLog.of(**PLAIN | change)


def test_a_list_of_a_million_documents_is_refused() -> None:
    count = 10**6
    with pytest.raises(DataError, match="position 1,000,000, but positions end at 10,000; cut such lists"):
        ClickLog.of(features=np.zeros((1, 1)), documents=np.zeros(count), offsets=[0, count], clicks=np.zeros(count))


def test_impressions_of_many_lists_are_added_up() -> None:
    lists: dict[str, Any] = {"features": np.eye(2), "documents": [0, 1], "offsets": [0, 1, 2], "clicks": [0, 1]}
    assert ClickLog.of(**lists, impressions=[2**59, 2**59]).impressions.sum() == 2**60
    with pytest.raises(DataError, match="more than sums can hold"):
        ClickLog.of(**lists, impressions=[2**59, 2**59 + 2**10])


def test_judged_lists_have_each_feature_once() -> None:
    with pytest.raises(DataError, match="two features are called 'a'"):
        JudgedLists.of(features=np.eye(2), labels=[1, 0], offsets=[0, 2], feature_names=["a", "a"])


def test_a_constant_column_as_large_as_floats_go_is_trained_on_and_saved(tmp_path: Any) -> None:
    features = np.stack([np.arange(4), np.full(4, 3e38)], axis=1)
    log = ClickLog.of(features=features, documents=[0, 1, 2, 3], offsets=[0, 2, 4], clicks=[0, 1, 1, 0])
    fitted = ClickBaseline(relevance=MLP(hidden=(4,), steps=2)).fit(log)
    assert fitted.ranker_.scaling.typical[1] == np.float32(3e38)
    assert np.isfinite(fitted.score(features)).all()
    fitted.save(tmp_path / "model")


def test_lists_of_one_document_are_named_as_the_reason() -> None:
    log = ClickLog.of(features=np.eye(4), documents=range(4), offsets=range(5), clicks=[0, 1, 1, 0])
    with pytest.raises(DataError, match="every list of the log shows one document"):
        InversePropensity(relevance=MLP(hidden=(4,), steps=2)).fit(log)

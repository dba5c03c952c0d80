"""The features that moved documents, in the order in which the documents were given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ultr.reporting import reasons as module
from ultr.reporting.reasons import in_words, reasons
from ultr.scoring.explanation import EXACT, Explanation
from ultr.train.bounded import Bounded


def _explained() -> Explanation:
    """Two documents, of which the second is the better one and so explained first."""
    contributions = np.array([[0.5, -2.0, 0.25], [0.125, 0.0, 0.0]])
    zeros = np.zeros(2)
    return Explanation(
        ("price", "age", "size"), EXACT, np.array([1, 0]), np.zeros(2, dtype=np.int64), np.array([1, 2]), zeros, zeros,
        contributions, None, zeros,
    )  # fmt: skip


def _asked(monkeypatch: pytest.MonkeyPatch, ranking: object) -> tuple[list[dict[str, float]], list[Any]]:
    """The reasons for two rows of a log by a model that ranks like this, and the features that were explained."""
    asked: list[Any] = []

    def fake(ranker: Any, features: Any) -> Explanation:
        asked.append(features.tolist())
        return _explained()

    monkeypatch.setattr(module, "explain", fake)
    log: Any = SimpleNamespace(features=np.array([[1.0], [2.0], [3.0]]))
    model: Any = SimpleNamespace(ranker=SimpleNamespace(model=SimpleNamespace(ranking=ranking)))
    return reasons(model, log, np.array([2, 0])), asked


def test_the_two_features_that_moved_a_document_most_are_named_with_their_signs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, asked = _asked(monkeypatch, object())
    assert asked == [[[3.0], [1.0]]]
    assert found == [{"price": 0.125}, {"age": -2.0, "price": 0.5}]
    assert [in_words(each) for each in found] == ["price +0.12", "age -2, price +0.5"]


def test_the_order_of_a_safe_ranker_has_no_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    found, asked = _asked(monkeypatch, object.__new__(Bounded))
    assert (found, asked) == ([{}, {}], [])
    assert in_words(found[0]) == ""

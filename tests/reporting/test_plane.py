"""Documents as dots of a plane: whose they are, and what shades them."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.reporting.fakes import LOG

from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.reporting import plane as module
from ultr.reporting.plane import _documents, plane


def _inputs(*dimensions: int | None, **change: Any) -> Any:
    def embeddings(dimension: int) -> Any:
        return SimpleNamespace(
            relevance=lambda features: np.ones((len(features), dimension)) * np.arange(1, dimension + 1),
            observation=lambda: {"position": 1 + np.eye(3)[:, :dimension]},
            base_vectors=lambda features, offsets: np.ones((len(offsets) - 1, dimension)),
        )

    models = [
        SimpleNamespace(name=f"model {number}", embeddings=None if each is None else embeddings(each))
        for number, each in enumerate(dimensions)
    ]
    given = {"models": models, "log": LOG, "log_name": "the log", "judged": None, "judged_name": "the test part"}
    return SimpleNamespace(**(given | change))


@pytest.mark.parametrize(
    ("dimensions", "shown"),
    [((2,), ["model 0"]), ((None, 3, 2), ["model 1", "model 2"]), ((1, 3), ["model 1"])],
)
def test_models_with_vectors_of_two_dimensions_or_more_are_drawn(
    dimensions: tuple[int | None, ...], shown: list[str]
) -> None:
    found = plane(_inputs(*dimensions))
    assert found is not None
    assert list(found.figures) == shown
    # All documents lie in one direction.
    assert [found.numbers[name]["share_of_two_directions"] for name in shown] == pytest.approx([1.0] * len(shown))


@pytest.mark.parametrize("dimensions", [(1,), (None,), ()])
def test_without_such_vectors_there_is_no_section(dimensions: tuple[int | None, ...]) -> None:
    assert plane(_inputs(*dimensions)) is None


def test_without_documents_they_are_asked_for() -> None:
    found = plane(_inputs(2, log=None))
    assert found is not None
    assert (found.advice, found.figures) == ("This needs documents: give --log or --data.", {})


def test_more_dimensions_are_shown_in_two_directions_and_said_to() -> None:
    found = plane(_inputs(3))
    assert found is not None
    (drawing,) = found.drawings().values()
    assert drawing.description.endswith("The two directions hold 100% of the documents' sum of squares.")
    assert found.answer.startswith("Each dot is a document of the log, shaded by its click rate.")
    flat = plane(_inputs(2))
    assert flat is not None
    (drawing,) = flat.drawings().values()
    assert drawing.description.endswith("°.")


def test_base_vectors_of_more_dimensions_point_up_and_to_the_right() -> None:
    found = plane(_inputs(3))
    assert found is not None
    for drawn in found.figures.values():
        assert isinstance(drawn, partial)
        base = drawn.args[-1].mean(axis=0)
        assert base.min() > -1e-9
        assert base.max() > 1


def test_documents_of_a_log_are_shaded_by_their_click_rate() -> None:
    found = _documents(_inputs())
    assert found is not None
    source, features, offsets, values, name = found
    assert (source, name) == ("the log", "click rate")
    assert features[:, 0].tolist() == [4, 3, 2, 1, 2, 3, 4, 1]
    assert offsets.tolist() == [0, 3, 5, 8]
    assert values.tolist() == pytest.approx([0.5, 0.2, 0.1, 0.6, 0.2, 0.2, 0.2, 0.1])


@pytest.mark.parametrize(
    ("grades", "values", "name"),
    [
        (["0", "1", "2", "3"], [0, 1, 2], "grade"),
        ([None, "1", "2", "3"], [0.5, 0.2, 0.1], "click rate"),
        (["0", "1", "2", None], [0, 1, 2], "grade"),
    ],
)
def test_grades_shade_where_every_shown_document_has_one(
    grades: list[str | None], values: list[float], name: str
) -> None:
    log = ClickLog.of(
        features=np.eye(4), documents=[0, 1, 2], offsets=[0, 3], clicks=[5, 2, 1], impressions=[10], grades=grades
    )
    found = _documents(_inputs(log=log))
    assert found is not None
    assert found[3].tolist() == pytest.approx(values)
    assert found[4] == name


@pytest.mark.parametrize(("most", "queries"), [(1, 1), (2, 2), (3, 2)])
def test_of_many_queries_some_are_shown(most: int, queries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert module.MOST_QUERIES == 500
    monkeypatch.setattr(module, "MOST_QUERIES", most)
    judged = JudgedLists.of(features=np.eye(4), labels=[0, 1, 2, 0], offsets=[0, 2, 4])
    found = _documents(_inputs(judged=judged))
    assert found is not None
    assert (found[0], found[4], len(found[2]) - 1) == ("the test part", "grade", queries)
    assert found[3].tolist() == [0, 1, 2, 0][: 2 * queries]


def test_of_a_large_log_the_most_frequent_lists_are_shown_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_QUERIES", 2)
    found = _documents(_inputs())
    assert found is not None
    assert found[1][:, 0].tolist() == [4, 3, 2, 3, 4, 1]  # hats with 10 and socks with 20 impressions

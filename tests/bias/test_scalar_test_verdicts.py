"""What a test of the scalar rests on: which candidates there are, in which order, and what each says beside itself."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from ultr.bias import GROUPINGS, RankTest, ScalarTest, document_dispersion, group_dispersion, group_table, scalar_test
from ultr.bias.dispersion import Dispersion
from ultr.bias.grouped_documents import GroupedDocuments
from ultr.data.click_log import ClickLog
from ultr.errors import DataError

MODULE = import_module("ultr.bias.scalar_test")
PLAIN = Dispersion(1.0, 0.0, -0.1, 0.1, 9, 9)


def _log(queries: int = 8, *, lists: int = 4, clicks: bool = True) -> ClickLog:
    """Three documents of each query in as many orders as there are lists."""
    random = np.random.default_rng(0)
    orders = np.array([[0, 1, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])[:lists]
    documents = (3 * np.arange(queries)[:, None, None] + orders).reshape(-1)
    rates = np.array([0.7, 0.5, 0.3])[documents % 3] * np.tile([1.0, 0.6, 0.4], lists * queries)
    return ClickLog.of(
        features=np.arange(3.0 * queries)[:, None],
        documents=documents,
        offsets=np.arange(0, 3 * lists * queries + 1, 3),
        clicks=random.binomial(20, rates) if clicks else np.zeros(len(documents)),
        impressions=np.full(lists * queries, 20),
        queries=np.repeat([f"{query:02}" for query in range(queries)], lists),
    )


def _rank(dimension: int = 1) -> RankTest:
    return RankTest(np.eye(2), (1.0,), (0.2,), dimension, 0.05, 0.9)


@pytest.mark.parametrize(
    ("low", "dimension", "caveats"),
    [
        (-0.1, 1, []),
        (0.0, 2, []),
        (0.001, 2, ["clicks on a document at a position differ between lists more than chance makes them; "]),
        (0.0, 3, ["beyond 2 the dimension is an upper bound: with very many impressions it comes out too large "]),
        (0.001, 3, ["clicks on a document at a position differ ", "beyond 2 the dimension is an upper bound"]),
    ],
)
def test_caveats_follow_the_dispersion_and_the_dimension(
    low: float, dimension: int, caveats: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def test(counted: GroupedDocuments, **options: Any) -> RankTest:
        asked.append((counted, options))
        return _rank(dimension)

    monkeypatch.setattr(MODULE, "document_rank_test", test)
    log = _log()
    cells = log.cells()
    dispersion = Dispersion(1.5, 0.1, low, 0.2, 9, 9)
    found = MODULE._by_documents("documents by label", np.arange(24) % 3, cells, dispersion, level=0.05, samples=9)
    ((counted, options),) = asked
    assert options == {"power": True, "level": 0.05, "samples": 9}
    assert [len(text) for text in found.caveats] == [len(text) for text in found.caveats if text]
    assert len(found.caveats) == len(caveats)
    assert all(said.startswith(start) for said, start in zip(found.caveats, caveats, strict=True))
    assert (found.documents, found.impressions, found.clicks) == (24, 20 * 96, int(log.clicks.sum()))
    assert (found.grouping, found.reason, found.dispersion) == ("documents by label", None, dispersion)
    # Impressions of one list share their luck: 19 others of 20.
    plain = GroupedDocuments.of(cells, np.arange(24) % 3, most_cells=100, dispersion=1 + 0.1 * cells.together)
    np.testing.assert_allclose(counted.dispersion, plain.dispersion)


def _names(log: ClickLog, labels: Any = None, scores: Any = None) -> list[Any]:
    """The candidates by name: the grouping, or which function makes the test."""
    found = []
    for candidate in MODULE._candidates(log, labels, scores, seed=0):
        assert isinstance(candidate, partial)
        found.append(candidate.args[0] if candidate.func is MODULE._by_documents else candidate.func.__name__)
    return found


LABELS = np.arange(24) % 3


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["_by_halves"]),
        ({"labels": LABELS}, ["documents by label", "_by_halves", "_by_labels"]),
        ({"labels": np.where(np.arange(24) == 5, 0, -1)}, ["documents by label", "_by_halves", "_by_labels"]),
        ({"labels": np.full(24, -1)}, ["_by_halves"]),
        ({"scores": LABELS + 0.5}, ["documents by score", "_by_halves"]),
        (
            {"labels": LABELS, "scores": LABELS + 0.5},
            ["documents by label", "documents by score", "_by_halves", "_by_labels"],
        ),
    ],
)
def test_the_most_trustworthy_test_comes_first(options: dict[str, Any], names: list[str]) -> None:
    assert _names(_log(), **options) == names


def test_without_a_click_there_is_nothing_to_test() -> None:
    assert _names(_log(clicks=False)) == []
    found = scalar_test(_log(clicks=False))
    assert (found.reason, found.answer) == ("the log has no clicks", "cannot tell")


def test_labels_with_few_clicks_are_made_one_before_they_are_tested() -> None:
    """Clicks of labelled documents alone count; a label without any joins its neighbour."""
    log = _log()
    labels = np.where(LABELS == 2, 9, LABELS)
    labels[:3] = -1
    first = next(MODULE._candidates(log, labels, None, seed=0))
    grades = first.args[1]
    assert grades[:3].tolist() == [-1, -1, -1]
    clicks = [int(log.clicks[labels[log.documents] == label].sum()) for label in (0, 1, 9)]
    assert min(clicks) >= 50
    assert grades[3:].tolist() == (LABELS[3:]).tolist()


def test_scores_are_grouped_by_impressions() -> None:
    log, scores = _log(), np.arange(24.0)
    first = next(MODULE._candidates(log, None, scores, seed=0))
    # 24 documents with as many impressions each, in five groups.
    assert np.bincount(first.args[1]).tolist() == [5, 5, 4, 5, 5]


@pytest.mark.parametrize(("lists", "by_lists"), [(4, True), (2, False), (1, False)])
def test_impressions_are_halved_where_lists_cannot_be(
    lists: int,
    by_lists: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With two lists a query each half has one, in which no document stands at two positions."""
    made: list[str] = []
    for name in ("list_click_groups", "click_groups"):
        real = getattr(MODULE, name)

        def noted(*args: Any, real: Any = real, name: str = name, **options: Any) -> Any:
            made.append(f"{name} {options['seed']}")
            return real(*args, **options)

        monkeypatch.setattr(MODULE, name, noted)
    (halves,) = MODULE._candidates(_log(lists=lists), None, None, seed=7)
    assert len(halves.args[0]) == MODULE.SPLITS == 9
    expected = [f"list_click_groups {7 + number}" for number in range(9)]
    assert made == expected + ([] if by_lists else [f"click_groups {7 + number}" for number in range(9)])


def test_of_the_halves_the_middle_one_is_asked_for_its_power() -> None:
    asked: list[tuple[float, dict[str, Any]]] = []

    def half(p: float, **options: Any) -> ScalarTest:
        asked.append((p, options))
        rank = RankTest(np.eye(2), (1.0,), (p, 0.7), 2, options["level"], 0.9)
        return ScalarTest(rank, "documents by clicks", 1, 1, 1, None, None, ())

    found = MODULE._by_halves([partial(half, p) for p in (0.9, 0.3, 0.1, 0.2, 0.4)], level=0.1, samples=9).test
    assert found.p_values == (0.6, 1.0)
    assert [p for p, _ in asked] == [0.9, 0.3, 0.1, 0.2, 0.4, 0.3]
    assert asked[0][1] == {"level": 0.05, "power": False, "largest": 2, "samples": 9}
    assert asked[-1][1] == {"level": 0.05, "samples": 9}
    assert found.level == 0.1


def test_labels_and_positions_are_tested_as_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def test(clicks: Any, shown: Any, **options: Any) -> RankTest:
        asked.append((clicks, shown, options))
        return _rank()

    monkeypatch.setattr(MODULE, "rank_test", test)
    log = _log()
    labels = np.where(log.documents < 3, -1, log.documents % 3)
    found = MODULE._by_labels(log, labels, level=0.05)
    ((clicks, shown, options),) = asked
    expected, factors = group_table(log, labels), group_dispersion(log, labels)
    np.testing.assert_array_equal(clicks, expected[0])
    np.testing.assert_array_equal(shown, expected[1])
    np.testing.assert_array_equal(options["dispersion"], factors[1])
    assert (options["power"], options["level"]) == (True, 0.05)
    assert (found.documents, found.grouping) == (21, "labels")
    assert (found.impressions, found.clicks) == (21 * 80, int(log.clicks[labels >= 0].sum()))
    assert found.caveats[0].startswith("documents of one label count as equally relevant: ")


@pytest.mark.parametrize("name", ["labels", "scores"])
def test_a_number_is_needed_for_each_document(name: str) -> None:
    wrong: dict[str, Any] = {name: np.zeros(23)}
    with pytest.raises(DataError) as caught:
        scalar_test(_log(), **wrong)
    assert str(caught.value) == f"{name} must have one number for each of 24 documents of the log"


def test_groupings_are_named_from_the_most_trustworthy() -> None:
    assert GROUPINGS == ("documents by label", "documents by score", "documents by clicks", "labels")


def test_of_a_large_log_the_queries_with_the_most_impressions_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    log = ClickLog.of(
        features=np.zeros((10, 1)),
        documents=np.arange(10),
        offsets=[0, 2, 5, 6, 10],
        clicks=np.ones(10),
        impressions=[5, 9, 7, 1],
        queries=["a", "b", "c", "d"],
    )
    for most, taken in (
        (10, [0, 1, 2, 3]),
        (9, [0, 1, 2]),
        (6, [0, 1, 2]),
        (5, [1, 2]),
        (4, [1, 2]),
        (3, [1]),
        (2, [1]),
    ):
        monkeypatch.setattr(MODULE, "MOST_ROWS", most)
        assert MODULE._largest_queries(log).queries.tolist() == taken


def test_the_dispersion_of_the_whole_log_is_that_of_its_documents() -> None:
    log = _log()
    first = next(MODULE._candidates(log, LABELS, None, seed=0))
    assert first.args[3] == document_dispersion(log)


def test_a_document_that_did_not_move_is_not_kept() -> None:
    cells = _log(lists=1).cells()
    groups, kept = MODULE._moved(np.arange(24), cells)
    assert (len(groups), len(kept.documents)) == (24, 0)

"""Predictability against a ridge regression of the rows themselves."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from ultr.arrays import Doubles, Integers
from ultr.bias import Predictability, position_predictability
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.errors import DataError, OptionError

MODULE = import_module("ultr.bias.predictability")
PENALTIES = 10.0 ** np.arange(-6, 3)


def _log(queries: int = 12, *, seed: int = 0, alone: bool = True, noise: float = 1.0) -> ClickLog:
    """Lists of two to four documents with impressions of their own, some of them with a gap between positions.

    Features have very different units. With `alone`, some queries also have lists of one document.
    """
    random = np.random.default_rng(seed)
    features = random.normal(size=(5 * queries, 3)) * np.array([1e-3, 1.0, 1e3])
    scores = features @ np.array([1e3, 0.5, 0.0]) + noise * random.normal(size=len(features))
    pages: list[tuple[int, list[int], list[int]]] = []
    for query in range(queries):
        for _ in range(3):
            chosen = 5 * query + random.permutation(5)[: random.integers(2, 5)]
            order = chosen[np.argsort(-(scores[chosen] + noise * random.normal(size=len(chosen))))]
            places = np.sort(random.permutation(6)[: len(order)]) + 1
            pages.append((query, order.tolist(), places.tolist()))
        if alone and query % 3 == 0:
            pages.append((query, [5 * query], [1 + query % 2]))
    impressions = random.integers(1, 9, size=len(pages))
    return ClickLog.of(
        features=features,
        documents=[document for _, documents, _ in pages for document in documents],
        offsets=ragged.from_lengths(np.array([len(documents) for _, documents, _ in pages])),
        clicks=np.zeros(sum(len(documents) for _, documents, _ in pages)),
        positions=[place for _, _, places in pages for place in places],
        impressions=impressions,
        queries=[f"{query:03}" for query, _, _ in pages],
    )


def _rows(log: ClickLog) -> list[tuple[int, Integers]]:
    """The lists with two documents or more, and their rows."""
    return [
        (number, np.arange(log.offsets[number], log.offsets[number + 1]))
        for number in range(log.lists)
        if log.lengths[number] > 1
    ]


def _centred(values: Doubles) -> Doubles:
    centred: Doubles = values - values.mean(axis=0)
    return centred


def _ridge(x: Doubles, y: Doubles, weights: Doubles, penalty: float) -> Doubles:
    """Least squares with the penalty as further rows."""
    root = np.sqrt(weights)
    scaled = x * root[:, None]
    alpha = penalty * (scaled**2).sum() / x.shape[1]
    matrix = np.vstack([scaled, np.sqrt(alpha) * np.eye(x.shape[1])])
    found: Doubles = np.linalg.lstsq(matrix, np.append(y * root, np.zeros(x.shape[1])), rcond=None)[0]
    return found


def by_rows(log: ClickLog, *, folds: int, seed: int = 0) -> Predictability:
    lists = _rows(log)
    units, fold_of = MODULE._folds(log, np.array([number for number, _ in lists]), folds=folds, seed=seed)
    x = np.concatenate([_centred(log.features[log.documents[rows]].astype(np.float64)) for _, rows in lists])
    y = np.concatenate([_centred(log.positions[rows].astype(np.float64)) for _, rows in lists])
    lengths = [len(rows) for _, rows in lists]
    weights = np.repeat([log.impressions[number] for number, _ in lists], lengths).astype(np.float64)
    fold = np.repeat(fold_of, lengths)
    size = np.sqrt((weights[:, None] * x**2).sum(axis=0))
    x = x / np.where(size > 0, size, 1)
    predicted = np.zeros(len(y))
    count = int(fold.max()) + 1
    for held in range(count):
        others = [number for number in range(count) if number != held]
        best = PENALTIES[4]
        if len(others) > 1:
            lost = np.zeros(len(PENALTIES))
            for inner in others:
                train, test = (fold != held) & (fold != inner), fold == inner
                for number, penalty in enumerate(PENALTIES):
                    error = y[test] - x[test] @ _ridge(x[train], y[train], weights[train], penalty)
                    lost[number] += weights[test] @ error**2
            best = PENALTIES[lost.argmin()]
        train = fold != held
        predicted[~train] = x[~train] @ _ridge(x[train], y[train], weights[train], best)
    return Predictability(float(1 - weights @ (y - predicted) ** 2 / (weights @ y**2)), _ceiling(log), units)


def _ceiling(log: ClickLog) -> float:
    """One minus the mean square within documents over that of all, impressions one by one."""
    places: dict[int, list[float]] = {}
    for number, rows in _rows(log):
        middle = log.positions[rows].mean()
        for row in rows:
            places.setdefault(int(log.documents[row]), []).extend(
                [float(log.positions[row] - middle)] * int(log.impressions[number])
            )
    every = np.concatenate([np.array(each) for each in places.values()])
    within = sum(((np.array(each) - np.mean(each)) ** 2).sum() for each in places.values())
    return float(1 - within / (len(every) - len(places)) / ((every**2).sum() / (len(every) - 1)))


@pytest.mark.parametrize(("folds", "noise"), [(2, 1.0), (3, 0.3), (5, 1.0), (5, 5.0), (9, 1.0)])
def test_every_number_is_that_of_the_rows_themselves(folds: int, noise: float) -> None:
    log = _log(noise=noise)
    found, expected = position_predictability(log, folds=folds), by_rows(log, folds=folds)
    assert found.units == expected.units == "queries"
    for name in ("r_squared", "ceiling"):
        assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-6)


def test_few_queries_are_held_out_list_by_list() -> None:
    log = _log(2)
    found, expected = position_predictability(log, folds=4), by_rows(log, folds=4)
    assert found.units == "lists"
    assert found.r_squared == pytest.approx(expected.r_squared, abs=1e-6)


def test_five_folds_are_the_default_and_one_is_none() -> None:
    log = _log()
    assert position_predictability(log) == position_predictability(log, folds=5)
    assert position_predictability(log) != position_predictability(log, folds=6)
    with pytest.raises(OptionError, match="folds must be an integer of at least 2"):
        position_predictability(log, folds=1)


def test_lists_of_one_document_change_nothing() -> None:
    log = _log()
    assert (log.lengths == 1).any()
    assert position_predictability(log) == position_predictability(log.select(log.lengths > 1))


@pytest.mark.parametrize(
    ("queries", "folds", "sizes"), [(12, 5, [2, 2, 2, 3, 3]), (5, 5, [1] * 5), (7, 2, [3, 4]), (9, 3, [3, 3, 3])]
)
def test_folds_have_as_many_queries_as_they_can_and_whole_ones(queries: int, folds: int, sizes: list[int]) -> None:
    log = _log(queries, alone=False)
    lists = np.arange(log.lists)
    units, fold_of = MODULE._folds(log, lists, folds=folds, seed=0)
    assert units == "queries"
    of_query = [set(fold_of[log.queries == query].tolist()) for query in range(queries)]
    assert all(len(each) == 1 for each in of_query)
    assert sorted(np.bincount([each.pop() for each in of_query]).tolist()) == sizes
    assert fold_of.tolist() != MODULE._folds(log, lists, folds=folds, seed=1)[1].tolist()


def test_two_lists_are_two_folds_however_many_are_asked_for() -> None:
    log = _log(1, alone=False).select(np.array([0, 1]))
    units, fold_of = MODULE._folds(log, np.arange(2), folds=5, seed=0)
    assert (units, sorted(fold_of.tolist())) == ("lists", [0, 1])


def test_of_many_lists_so_many_are_chosen_and_none_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    log = _log()
    chosen: list[Any] = []
    folds = MODULE._folds

    def remember(log: ClickLog, lists: Integers, **options: Any) -> Any:
        chosen.append(lists.tolist())
        return folds(log, lists, **options)

    monkeypatch.setattr(MODULE, "_folds", remember)
    several = int((log.lengths > 1).sum())
    whole = position_predictability(log)
    assert position_predictability(log, most_lists=several) == whole
    fewer = position_predictability(log, most_lists=several - 1)
    few = position_predictability(log, most_lists=20)
    assert fewer.ceiling == few.ceiling == whole.ceiling
    assert [len(set(lists)) for lists in chosen] == [len(lists) for lists in chosen]
    assert [len(lists) for lists in chosen] == [several, several, several - 1, 20]
    assert all(lists == sorted(lists) for lists in chosen)
    assert (log.lengths[chosen[-1]] > 1).all()
    position_predictability(log, folds=2, most_lists=2)
    with pytest.raises(OptionError, match="most_lists must be an integer of at least 2"):
        position_predictability(log, most_lists=1)


def test_a_feature_that_never_differs_within_a_list_is_left_out() -> None:
    log = _log()
    constant = np.column_stack([log.features, np.ones(len(log.features))])
    found = position_predictability(
        ClickLog.of(
            features=constant,
            documents=log.documents,
            offsets=log.offsets,
            clicks=log.clicks,
            positions=log.positions,
            impressions=log.impressions,
            queries=log.query_ids[log.queries],
        )
    )
    assert np.isfinite(found.r_squared)


@pytest.mark.parametrize("chunk", [2**22, 7, 1])
@pytest.mark.parametrize("block", [2**20, 10])
def test_numbers_do_not_depend_on_what_is_held_at_once(chunk: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    log = _log()
    whole = position_predictability(log)
    monkeypatch.setattr(MODULE, "_CHUNK", chunk)
    monkeypatch.setattr(ragged, "SPAN", block)
    monkeypatch.setattr("ultr.data.row_blocks.BLOCK", block)
    found = position_predictability(log)
    for name in ("r_squared", "ceiling"):
        assert getattr(found, name) == pytest.approx(getattr(whole, name))


def test_a_log_without_features_is_refused() -> None:
    log = _log()
    bare = ClickLog.of(
        features=np.zeros((len(log.features), 0)),
        documents=log.documents,
        offsets=log.offsets,
        clicks=log.clicks,
        positions=log.positions,
        impressions=log.impressions,
        queries=log.query_ids[log.queries],
    )
    with pytest.raises(DataError, match=r"^the log has no features$"):
        position_predictability(bare)

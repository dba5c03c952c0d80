"""Importance of features, against what all exchanges of few values give on average."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from ultr.arrays import Floats, Integers
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.errors import DataError
from ultr.explanation import importance_by_clicks, importance_by_labels
from ultr.metrics.agreement import kendall_tau
from ultr.metrics.ranking import ndcg

QUERIES, LENGTH = 40, 3


class Weighted:
    """Scores 2 a + b; the third feature counts for nothing."""

    feature_names = ("a", "b", "c")

    def score(self, features: Floats, offsets: Integers) -> Floats:
        return (2 * features[:, 0] + features[:, 1]).astype(np.float32)


def _lists() -> JudgedLists:
    random = np.random.default_rng(0)
    features = random.normal(size=(QUERIES * LENGTH, 3)).astype(np.float32)
    labels = np.argsort(np.argsort(features[:, 0].reshape(QUERIES, LENGTH), axis=1), axis=1).ravel()
    offsets = np.arange(0, QUERIES * LENGTH + 1, LENGTH)
    return JudgedLists.of(features=features, labels=labels, offsets=offsets, feature_names=Weighted.feature_names)


def _exchanged(lists: JudgedLists, column: int) -> list[Floats]:
    """The scores after each of the six exchanges, the same in every list."""
    found = []
    for order in permutations(range(LENGTH)):
        features = lists.features.copy()
        features[:, column] = features[:, column].reshape(QUERIES, LENGTH)[:, list(order)].ravel()
        found.append(Weighted().score(features, lists.offsets))
    return found


def test_the_loss_is_the_mean_over_exchanges_within_a_list() -> None:
    lists = _lists()
    own = Weighted().score(lists.features, lists.offsets)
    before = ndcg(own, lists.labels, lists.offsets, cutoff=10)
    found = importance_by_labels(Weighted(), lists, repeats=400)
    for column, name in enumerate(("a", "b")):
        after = [ndcg(scores, lists.labels, lists.offsets, cutoff=10) for scores in _exchanged(lists, column)]
        expected = (before - np.mean(after, axis=0)).mean()
        spread = np.std(after, axis=0).mean() / np.sqrt(400 * QUERIES)
        assert abs(found.losses[name].mean - expected) < 4 * spread
    assert list(found.losses) == sorted(found.losses, key=lambda name: -found.losses[name].mean)
    assert found.losses["c"].mean == found.losses["c"].low == found.losses["c"].high == 0
    assert found.queries == QUERIES
    assert next(iter(found.losses)) == "a"
    assert found.losses["a"].low > 0


def _log(lists: JudgedLists) -> ClickLog:
    return ClickLog.of(
        features=lists.features,
        documents=np.arange(lists.documents),
        offsets=lists.offsets,
        impressions=np.full(QUERIES, 10),
        clicks=np.ones(lists.documents, dtype=np.int64),
        queries=np.arange(QUERIES),
        feature_names=lists.feature_names,
    )


def test_without_labels_it_is_the_agreement_with_the_rankers_own_order_that_is_lost() -> None:
    lists = _lists()
    own = Weighted().score(lists.features, lists.offsets)
    found = importance_by_clicks(Weighted(), _log(lists), repeats=400)
    for column, name in enumerate(("a", "b")):
        after = [1 - kendall_tau(scores, own, lists.offsets) for scores in _exchanged(lists, column)]
        spread = np.std(after, axis=0).mean() / np.sqrt(400 * QUERIES)
        assert abs(found.losses[name].mean - np.mean(after)) < 4 * spread
    assert found.losses["c"].mean == 0


class OnlyFirst(Weighted):
    def score(self, features: Floats, offsets: Integers) -> Floats:
        return features[:, 0]


def test_a_feature_that_is_all_there_is_loses_all_order() -> None:
    found = importance_by_clicks(OnlyFirst(), _log(_lists()), repeats=100)
    assert found.losses["a"].mean == pytest.approx(1, abs=0.05)


def test_a_feature_that_is_the_same_for_a_whole_list_cannot_lose_anything() -> None:
    lists = _lists()
    lists.features[:, 1] = np.repeat(np.arange(QUERIES), LENGTH)
    assert importance_by_labels(Weighted(), lists).losses["b"].mean == 0


def test_the_features_are_left_as_they_were_and_the_seed_decides() -> None:
    lists = _lists()
    before = lists.features.copy()
    first, again, other = (importance_by_labels(Weighted(), lists, repeats=1, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(lists.features, before)
    assert first == again
    assert first != other


def test_of_many_lists_some_are_drawn() -> None:
    assert importance_by_labels(Weighted(), _lists(), most=7).queries == 7
    assert importance_by_clicks(Weighted(), _log(_lists()), most=7).queries == 7


class Indifferent(Weighted):
    def score(self, features: Floats, offsets: Integers) -> Floats:
        return np.zeros(len(features), dtype=np.float32)


def test_where_nothing_can_be_lost_it_says_so() -> None:
    with pytest.raises(DataError, match="no order to lose"):
        importance_by_clicks(Indifferent(), _log(_lists()))
    nothing = _lists()
    nothing.labels[:] = 0
    with pytest.raises(DataError, match="no judged query has a relevant document"):
        importance_by_labels(Weighted(), nothing)


def test_features_are_matched_by_name() -> None:
    lists = _lists()
    turned = lists.with_features(("c", "b", "a"))
    rows = np.arange(QUERIES * LENGTH)
    clicks: dict[str, Any] = {"documents": rows, "offsets": lists.offsets, "clicks": rows % 2}
    logs = [ClickLog.of(features=each.features, feature_names=each.feature_names, **clicks) for each in (lists, turned)]
    assert importance_by_clicks(Weighted(), logs[1]) == importance_by_clicks(Weighted(), logs[0])
    assert importance_by_labels(Weighted(), turned) == importance_by_labels(Weighted(), lists)
    other = ClickLog.of(features=lists.features, feature_names=("a", "b", "d"), **clicks)
    with pytest.raises(DataError, match="lacks 1 of the 3 features of the ranker: 'c'"):
        importance_by_clicks(Weighted(), other)

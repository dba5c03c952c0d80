"""Which features a ranker goes by: what exchanging the values of a feature costs its rankings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Floats, Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.frequent_lists import frequent_lists
from ultr.data.judged import JudgedLists
from ultr.errors import DataError
from ultr.evaluation.evidence import check_codes
from ultr.evaluation.judged import RankerLike
from ultr.metrics import Interval, bootstrap_interval
from ultr.metrics.agreement import kendall_tau
from ultr.metrics.ranking import ndcg
from ultr.seeding import generator

REPEATS = 5
"""Times that the values of a feature are exchanged."""
MOST_LISTS = 2_000
"""Most lists that are looked at."""
LABELS, ORDER = "loss in nDCG@10", "loss in Kendall's tau with its own order"


@dataclass(frozen=True)
class Importance:
    """The loss when the values of each feature are exchanged between the documents of a list."""

    measure: str
    """Measure of the loss, such as nDCG@10."""
    queries: int
    losses: dict[str, Interval]
    """By feature, the largest first: mean and 95 % interval over queries."""


def importance_by_labels(
    ranker: RankerLike, judged: JudgedLists, *, repeats: int = REPEATS, most: int = MOST_LISTS, seed: int = 0
) -> Importance:
    """The loss in nDCG@10 on judged lists with a relevant document; of more than `most`, some are drawn."""
    lists = judged.with_features(_names(ranker, judged.feature_names)).with_relevant()
    if not lists.queries:
        raise DataError("no judged query has a relevant document, so nothing can be lost; give other judged lists")
    if lists.queries > most:
        drawn = generator(seed, "lists of an importance").choice(lists.queries, most, replace=False)
        lists = lists.select(np.sort(drawn))
    before = ndcg(ranker.score(lists.features, lists.offsets), lists.labels, lists.offsets, cutoff=10)

    def loss(scores: Floats) -> Doubles:
        return before - ndcg(scores, lists.labels, lists.offsets, cutoff=10)

    losses = _losses(ranker, loss, lists.features, lists.offsets, repeats=repeats, seed=seed)
    return _importance(LABELS, losses, lists.feature_names)


def importance_by_clicks(
    ranker: RankerLike, log: ClickLog, *, repeats: int = REPEATS, most: int = MOST_LISTS, seed: int = 0
) -> Importance:
    """The loss in agreement with the ranker's own order, 1 - Kendall's tau, on the most frequent list of each query.

    It needs no labels, and says what the ranker goes by, not whether it is right.
    """
    log = log.with_features(_names(ranker, log.feature_names))
    check_codes(ranker, log)
    lists = frequent_lists(log, most=most)
    features, offsets = log.features[lists.documents], lists.offsets
    own = ranker.score(features, offsets)

    def loss(scores: Floats) -> Doubles:
        lost: Doubles = 1 - kendall_tau(scores, own, offsets)
        # All alike agrees with nothing; where the ranker's own scores are, there is no order to lose.
        spread = np.maximum.reduceat(own, offsets[:-1]) > np.minimum.reduceat(own, offsets[:-1])
        return np.where(np.isnan(lost) & spread, 1.0, lost)

    losses = _losses(ranker, loss, features, offsets, repeats=repeats, seed=seed)
    return _importance(ORDER, losses, log.feature_names)


def _names(ranker: RankerLike, otherwise: Sequence[str]) -> Sequence[str]:
    """The features that a ranker knows, in its order; those of the data for a ranker that names none."""
    names: Sequence[str] = getattr(getattr(ranker, "ranker_", ranker), "feature_names", otherwise)
    return names


def _losses(
    ranker: RankerLike,
    loss: Callable[[Floats], Doubles],
    features: Floats,
    offsets: Integers,
    *,
    repeats: int,
    seed: int,
) -> list[Doubles]:
    """The mean loss of each list over the repeats, for each feature, [features][lists]."""
    checks.integer("repeats", repeats, at_least=1)
    numbers = ragged.list_numbers(offsets)
    matrix = np.array(features, dtype=np.float32)
    found = []
    for column in range(matrix.shape[1]):
        random, values = generator(seed, "exchanged values", column), matrix[:, column].copy()
        total: Doubles = np.zeros(len(offsets) - 1)
        for _ in range(repeats):
            matrix[:, column] = values[np.lexsort((random.random(len(values)), numbers))]
            total += loss(ranker.score(matrix, offsets))
        matrix[:, column] = values
        found.append(total / repeats)
    return found


def _importance(measure: str, losses: Sequence[Doubles], names: Sequence[str]) -> Importance:
    if np.isnan(losses[0]).all():
        raise DataError("the ranker gives all documents of a list the same score, so there is no order to lose")
    intervals = {name: bootstrap_interval(each) for name, each in zip(names, losses, strict=True)}
    ordered = sorted(intervals, key=lambda name: -intervals[name].mean)
    counted = int(np.count_nonzero(~np.isnan(losses[0])))
    return Importance(measure, counted, {name: intervals[name] for name in ordered})

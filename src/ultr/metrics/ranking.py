"""Measures of a ranking against graded relevance, one value for each query.

What holds for all of them:

- **Relevant** means a label of at least 1.
- **Ties are counted against the ranker.** Among documents with equal scores the less relevant one is counted
  first, so the value is the worst of all orders of the tied documents: nobody gains from a tie, and a ranker
  that gives every document the same score gets the worst value there is.
- **A query without a relevant document says nothing** about a ranker and gets NaN, also if it is empty.
- A `cutoff` keeps only the ranks up to it; a list may be shorter.
- A score that is NaN is an error, because no rank follows from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ultr import checks
from ultr.arrays import Doubles, Integers, Mask
from ultr.data import ragged
from ultr.errors import DataError

Scores: TypeAlias = npt.NDArray[np.floating[Any]]


def ndcg(scores: Scores, labels: Integers, offsets: Integers, *, cutoff: int | None = None) -> Doubles:
    """Normalised discounted cumulative gain: DCG / DCG of the ideal order, both at the cutoff.

    DCG = sum over ranks r of (2^y_r - 1) / log2(r + 1)   (Järvelin and Kekäläinen 2002; Burges et al. 2005)

    >>> ndcg(np.array([0.1, 0.9]), np.array([1, 0]), np.array([0, 2])).round(4).tolist()
    [0.6309]
    """
    ranking = _rank(scores, labels, offsets)
    inside = ranking.up_to(cutoff)
    ideal = ranking.labels[np.lexsort((-ranking.labels, ranking.lists))]
    discounts = np.where(inside, 1 / np.log2(ranking.ranks + 1), 0.0)
    return _ratio(
        ranking.total((np.exp2(ranking.labels) - 1) * discounts),
        ranking.total((np.exp2(ideal) - 1) * discounts),
    )


def reciprocal_rank(scores: Scores, labels: Integers, offsets: Integers, *, cutoff: int | None = None) -> Doubles:
    """1 / rank of the first relevant document, 0 if it is beyond the cutoff; its mean over queries is MRR.

    >>> reciprocal_rank(np.array([3.0, 2.0, 1.0]), np.array([0, 2, 1]), np.array([0, 3])).tolist()
    [0.5]
    """
    ranking = _rank(scores, labels, offsets)
    first = ranking.relevant & (ranking.relevant_so_far() == 1) & ranking.up_to(cutoff)
    return ranking.where_judged(ranking.total(first / ranking.ranks))


def average_precision(scores: Scores, labels: Integers, offsets: Integers, *, cutoff: int | None = None) -> Doubles:
    """The mean precision at the ranks of the relevant documents; its mean over queries is MAP.

    AP@k = sum over relevant ranks r <= k of P@r / number of relevant documents

    The number counts the relevant documents beyond the cutoff too, as trec_eval does.

    >>> average_precision(np.array([3.0, 2.0, 1.0]), np.array([1, 0, 1]), np.array([0, 3])).round(4).tolist()
    [0.8333]
    """
    ranking = _rank(scores, labels, offsets)
    precisions = ranking.relevant_so_far() / ranking.ranks
    counted = ranking.relevant & ranking.up_to(cutoff)
    return _ratio(ranking.total(precisions * counted), ranking.total(ranking.relevant))


def expected_reciprocal_rank(
    scores: Scores, labels: Integers, offsets: Integers, *, max_label: int, cutoff: int | None = None
) -> Doubles:
    """The expected 1 / rank at which a user who reads from the top is satisfied (Chapelle et al. 2009).

    ERR = sum over ranks r of 1/r * R_r * product over i < r of (1 - R_i),   R = (2^y - 1) / 2^max_label

    `max_label` is the highest grade of the whole data set, not of these lists.

    >>> scores, labels, offsets = np.array([2.0, 1.0]), np.array([1, 1]), np.array([0, 2])
    >>> expected_reciprocal_rank(scores, labels, offsets, max_label=1).tolist()
    [0.625]
    """
    ranking = _rank(scores, labels, offsets)
    top = checks.integer("max_label", max_label, at_least=1)
    if ranking.labels.max(initial=0) > top:
        raise DataError(f"labels must not exceed max_label = {top}, got {ranking.labels.max()}")
    satisfaction = (np.exp2(ranking.labels) - 1) / 2.0**top
    lengths = np.bincount(ranking.lists[ranking.up_to(cutoff)], minlength=ranking.queries)
    value, unsatisfied = np.zeros(ranking.queries), np.ones(ranking.queries)
    # Rank by rank through all lists at once: a padded matrix would be as wide as the longest list.
    for rank in range(1, int(lengths.max(initial=0)) + 1):
        lists = np.flatnonzero(lengths >= rank)
        here = satisfaction[ranking.offsets[lists] + rank - 1]
        value[lists] += unsatisfied[lists] * here / rank
        unsatisfied[lists] *= 1 - here
    return ranking.where_judged(value)


def average_relevance_position(scores: Scores, labels: Integers, offsets: Integers) -> Doubles:
    """The mean rank of the documents, weighted by relevance; lower is better.

    ARP = sum of rank * y / sum of y   (as in TF-Ranking, Pasumarthi et al. 2019)

    It is about the whole list, so it has no cutoff.

    >>> average_relevance_position(np.array([3.0, 2.0, 1.0]), np.array([1, 0, 1]), np.array([0, 3])).tolist()
    [2.0]
    """
    ranking = _rank(scores, labels, offsets)
    return _ratio(ranking.total(ranking.ranks * ranking.labels), ranking.total(ranking.labels))


def precision(scores: Scores, labels: Integers, offsets: Integers, *, cutoff: int) -> Doubles:
    """The share of relevant documents among the ranks up to the cutoff.

    P@k = number of relevant documents up to rank k / k, even when the list is shorter, as in trec_eval

    >>> precision(np.array([3.0, 2.0, 1.0]), np.array([1, 0, 1]), np.array([0, 3]), cutoff=5).tolist()
    [0.4]
    """
    ranking = _rank(scores, labels, offsets)
    return ranking.where_judged(ranking.total(ranking.relevant & ranking.up_to(cutoff)) / cutoff)


@dataclass(frozen=True, eq=False)
class _Ranking:
    """The documents of each list in the order of the ranker."""

    labels: Integers
    lists: Integers
    ranks: Integers
    offsets: Integers

    @property
    def queries(self) -> int:
        return len(self.offsets) - 1

    @property
    def relevant(self) -> Mask:
        return self.labels >= 1

    def up_to(self, cutoff: int | None) -> Mask:
        if cutoff is None:
            return np.ones(len(self.ranks), dtype=np.bool_)
        return self.ranks <= checks.integer("cutoff", cutoff, at_least=1)

    def total(self, values: npt.NDArray[Any]) -> Doubles:
        return np.bincount(self.lists, weights=values, minlength=self.queries).astype(np.float64, copy=False)

    def relevant_so_far(self) -> Integers:
        """How many relevant documents the list has down to each rank."""
        counts = np.concatenate([[0], np.cumsum(self.relevant)])
        so_far: Integers = counts[1:] - counts[self.offsets[:-1]][self.lists]
        return so_far

    def where_judged(self, values: Doubles) -> Doubles:
        """NaN for the lists without a relevant document."""
        return np.where(self.total(self.relevant) > 0, values, np.nan)


def _rank(scores: Scores, labels: Integers, offsets: Integers) -> _Ranking:
    scores, labels, offsets = np.asarray(scores, dtype=np.float64), np.asarray(labels), np.asarray(offsets)
    if scores.ndim != 1 or scores.shape != labels.shape:
        raise DataError(f"scores of shape {scores.shape} do not fit labels of shape {labels.shape}")
    if labels.dtype.kind not in "iu" or labels.min(initial=0) < 0:
        raise DataError("labels must be integers of at least 0; shift or clip negative grades first")
    ragged.check_offsets(offsets, len(scores), what="scored documents")
    lists = ragged.list_numbers(offsets)
    unknown = np.isnan(scores)
    if unknown.any():
        raise DataError(f"the scores of query {lists[unknown][0]} (counted from 0) contain NaN; no rank follows")
    labels = labels.astype(np.int64)
    # The label as the least important key is what makes ties pessimistic.
    order = np.lexsort((labels, -scores, lists))
    ranks = np.arange(len(scores)) - offsets[:-1][lists] + 1
    return _Ranking(labels[order], lists, ranks, offsets)


def _ratio(numerators: Doubles, denominators: Doubles) -> Doubles:
    """NaN where the denominator is 0: a query without a relevant document."""
    ratios = np.full(len(numerators), np.nan)
    np.divide(numerators, denominators, out=ratios, where=denominators > 0)
    return ratios

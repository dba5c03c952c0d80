"""Measures of a ranking against graded relevance, one value for each query.

Each is a function of `(scores, labels, offsets)`. Those that have a cutoff take it as the keyword `cutoff`, without a
default where it is needed; those that must know the highest grade of the whole data set take it as `max_label`.

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

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers, ratio
from ultr.errors import DataError
from ultr.metrics.ranked_lists import Scores, rank_lists

Metric = TypeVar("Metric", bound=Callable[..., Doubles])


def lower_is_better(metric: Metric) -> Metric:
    """Mark a metric whose better rankers have lower values."""
    metric.higher_is_better = False  # type: ignore[attr-defined]
    return metric


def ndcg(scores: Scores, labels: Integers, offsets: Integers, *, cutoff: int | None = None) -> Doubles:
    """Normalised discounted cumulative gain: DCG / DCG of the ideal order, both at the cutoff.

    DCG = sum over ranks r of (2^y_r - 1) / log2(r + 1)   (Järvelin and Kekäläinen 2002; Burges et al. 2005)

    >>> ndcg(np.array([0.1, 0.9]), np.array([1, 0]), np.array([0, 2])).round(4).tolist()
    [0.6309]
    """
    ranked = rank_lists(scores, labels, offsets)
    inside = ranked.up_to(cutoff)
    ideal = ranked.labels[np.lexsort((-ranked.labels, ranked.lists))]
    discounts = np.where(inside, 1 / np.log2(ranked.ranks + 1), 0.0)
    return ratio(
        ranked.total((np.exp2(ranked.labels) - 1) * discounts),
        ranked.total((np.exp2(ideal) - 1) * discounts),
        otherwise=np.nan,
    )


def reciprocal_rank(scores: Scores, labels: Integers, offsets: Integers, *, cutoff: int | None = None) -> Doubles:
    """1 / rank of the first relevant document, 0 if it is beyond the cutoff; its mean over queries is MRR.

    >>> reciprocal_rank(np.array([3.0, 2.0, 1.0]), np.array([0, 2, 1]), np.array([0, 3])).tolist()
    [0.5]
    """
    ranked = rank_lists(scores, labels, offsets)
    first = ranked.relevant & (ranked.relevant_so_far() == 1) & ranked.up_to(cutoff)
    return ranked.where_judged(ranked.total(first / ranked.ranks))


def average_precision(scores: Scores, labels: Integers, offsets: Integers, *, cutoff: int | None = None) -> Doubles:
    """The mean precision at the ranks of the relevant documents; its mean over queries is MAP.

    AP@k = sum over relevant ranks r <= k of P@r / number of relevant documents

    The number counts the relevant documents beyond the cutoff too, as trec_eval does.

    >>> average_precision(np.array([3.0, 2.0, 1.0]), np.array([1, 0, 1]), np.array([0, 3])).round(4).tolist()
    [0.8333]
    """
    ranked = rank_lists(scores, labels, offsets)
    precisions = ranked.relevant_so_far() / ranked.ranks
    counted = ranked.relevant & ranked.up_to(cutoff)
    return ratio(ranked.total(precisions * counted), ranked.total(ranked.relevant), otherwise=np.nan)


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
    ranked = rank_lists(scores, labels, offsets)
    top = checks.integer("max_label", max_label, at_least=0)
    if ranked.labels.max(initial=0) > top:
        raise DataError(f"labels must not exceed max_label = {top}, got {ranked.labels.max()}")
    satisfaction = (np.exp2(ranked.labels) - 1) / 2.0**top
    lengths = np.bincount(ranked.lists[ranked.up_to(cutoff)], minlength=ranked.queries)
    value, unsatisfied = np.zeros(ranked.queries), np.ones(ranked.queries)
    # Rank by rank through all lists at once: a padded matrix would be as wide as the longest list.
    for rank in range(1, int(lengths.max(initial=0)) + 1):
        lists = np.flatnonzero(lengths >= rank)
        here = satisfaction[ranked.offsets[lists] + rank - 1]
        value[lists] += unsatisfied[lists] * here / rank
        unsatisfied[lists] *= 1 - here
    return ranked.where_judged(value)


@lower_is_better
def average_relevance_position(scores: Scores, labels: Integers, offsets: Integers) -> Doubles:
    """The mean rank of the documents, weighted by relevance; lower is better.

    ARP = sum of rank * y / sum of y   (as in TF-Ranking, Pasumarthi et al. 2019)

    It is about the whole list, so it has no cutoff.

    >>> average_relevance_position(np.array([3.0, 2.0, 1.0]), np.array([1, 0, 1]), np.array([0, 3])).tolist()
    [2.0]
    """
    ranked = rank_lists(scores, labels, offsets)
    return ratio(ranked.total(ranked.ranks * ranked.labels), ranked.total(ranked.labels), otherwise=np.nan)


def precision(scores: Scores, labels: Integers, offsets: Integers, *, cutoff: int) -> Doubles:
    """The share of relevant documents among the ranks up to the cutoff.

    P@k = number of relevant documents up to rank k / k, even when the list is shorter, as in trec_eval

    >>> precision(np.array([3.0, 2.0, 1.0]), np.array([1, 0, 1]), np.array([0, 3]), cutoff=5).tolist()
    [0.4]
    """
    ranked = rank_lists(scores, labels, offsets)
    return ranked.where_judged(ranked.total(ranked.relevant & ranked.up_to(cutoff)) / cutoff)

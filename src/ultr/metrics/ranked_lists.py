"""The documents of each list in the order of a ranker, which is what measures of rankings are made of."""

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


@dataclass(frozen=True, eq=False)
class RankedLists:
    """The documents of each list in the order of the ranker."""

    labels: Integers
    """[documents], the grade at each rank, one list after the other."""
    lists: Integers
    """[documents], the number of the list, from 0."""
    ranks: Integers
    """[documents], the rank in the list, from 1."""
    offsets: Integers
    """[lists + 1]."""

    @property
    def queries(self) -> int:
        """The number of lists."""
        return len(self.offsets) - 1

    @property
    def relevant(self) -> Mask:
        """True where the label is at least 1."""
        return self.labels >= 1

    def up_to(self, cutoff: int | None) -> Mask:
        """True for the ranks that count: all of them without a cutoff."""
        if cutoff is None:
            return np.ones(len(self.ranks), dtype=np.bool_)
        return self.ranks <= checks.integer("cutoff", cutoff, at_least=1)

    def total(self, values: npt.NDArray[Any]) -> Doubles:
        """The sum of the values of each list."""
        return np.bincount(self.lists, weights=values, minlength=self.queries).astype(np.float64, copy=False)

    def relevant_so_far(self) -> Integers:
        """The number of relevant documents that the list has down to each rank."""
        counts = np.concatenate([[0], np.cumsum(self.relevant)])
        so_far: Integers = counts[1:] - counts[self.offsets[:-1]][self.lists]
        return so_far

    def where_judged(self, values: Doubles) -> Doubles:
        """NaN for the lists without a relevant document."""
        return np.where(self.total(self.relevant) > 0, values, np.nan)


def rank_lists(scores: Scores, labels: Integers, offsets: Integers) -> RankedLists:
    """The lists in the order of their scores, of tied documents the less relevant one first.

    >>> rank_lists(np.array([0.1, 0.9, 0.9]), np.array([2, 1, 0]), np.array([0, 3])).labels.tolist()
    [0, 1, 2]
    """
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
    return RankedLists(labels[order], lists, ranks, offsets)

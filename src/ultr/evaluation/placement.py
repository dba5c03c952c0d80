"""Where candidates are put, by a ranker or by a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ultr.arrays import Doubles, Floats, Integers
from ultr.errors import DataError
from ultr.evaluation.evidence import Evidence


class Placement(Protocol):
    """Where candidates are put."""

    def weights(self, by_rank: Doubles) -> Doubles:
        """The mean weight of the ranks that each candidate gets, [candidates], from the weight of each rank."""
        ...


@dataclass(frozen=True, eq=False)
class Ranking:
    """Candidates in the order of their scores."""

    order: Integers
    """[candidates], the best of each query first."""
    ranks: Integers
    """[candidates], the rank of each of `order`, from 0."""
    ties: Integers
    """[candidates], the number of the group of equal scores that each of `order` is in."""

    @classmethod
    def of(cls, scores: Floats | Doubles, evidence: Evidence) -> Ranking:
        """The ranking of the evidence's candidates by these scores."""
        scores = np.asarray(scores, dtype=np.float64)
        if scores.shape != evidence.documents.shape or np.isnan(scores).any():
            raise DataError(f"scores must be a number for each of {len(evidence.documents)} candidates")
        queries = evidence.queries
        order = np.lexsort((-scores, queries))
        new = np.ones(len(scores), dtype=np.bool_)
        new[1:] = (scores[order][1:] != scores[order][:-1]) | (queries[1:] != queries[:-1])
        return cls(order, np.arange(len(scores)) - evidence.offsets[:-1][queries], np.cumsum(new) - 1)

    def weights(self, by_rank: Doubles) -> Doubles:
        """The weight of the rank of each candidate; tied ones get the mean of theirs."""
        counted = np.where(self.ranks < len(by_rank), by_rank[np.minimum(self.ranks, len(by_rank) - 1)], 0.0)
        means = np.bincount(self.ties, counted) / np.bincount(self.ties)
        weights = np.empty(len(self.order))
        weights[self.order] = means[self.ties]
        return weights


@dataclass(frozen=True, eq=False)
class AsShown:
    """Candidates where the log showed them."""

    evidence: Evidence

    def weights(self, by_rank: Doubles) -> Doubles:
        """The mean over its query's impressions of the weight of each candidate's position, 0 where not shown."""
        weights = np.zeros(max(self.evidence.positions, len(by_rank)))
        weights[: len(by_rank)] = by_rank
        total: Doubles = self.evidence.shown_at @ weights[: self.evidence.positions]
        return total / self.evidence.impressions[self.evidence.queries]

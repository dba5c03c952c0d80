"""The places that a ranker or a log gives to candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ultr.arrays import Doubles, Floats, Integers
from ultr.data import ragged
from ultr.data.gathering import gather, new_array
from ultr.errors import DataError
from ultr.evaluation.evidence import Evidence, EvidencePart
from ultr.evaluation.judged import RankerLike

_VALUES = 2**22
"""Feature values that are scored at once."""


def scores_of(ranker: RankerLike, evidence: Evidence) -> Doubles:
    """The scores of the evidence's candidates, [candidates]; some queries are scored at a time."""
    scores: Doubles = new_array(len(evidence.documents), np.float64)
    most = max(_VALUES // max(evidence.features.shape[1], 1), 1)
    for span in ragged.spans(evidence.offsets, most=most):
        matrix = evidence.features[evidence.documents[span.rows]]
        scores[span.rows] = ranker.score(matrix, ragged.from_lengths(span.lengths))
    return scores


class Placement(Protocol):
    """The places of candidates."""

    def weights(self, part: EvidencePart) -> Callable[[Doubles], Doubles]:
        """A function that takes the weight of each rank and gives each candidate its mean weight.

        The mean is over the impressions of the query: a rank weighs nothing where the page did not go so far.
        """
        ...


@dataclass(frozen=True, eq=False)
class Ranking:
    """Candidates in the order of their scores; those that tie share their ranks."""

    first: Integers
    """[candidates], the first rank that a candidate shares, from 0."""
    ties: Integers
    """[candidates], how many share it, itself included."""

    @classmethod
    def of(cls, scores: Floats | Doubles, evidence: Evidence) -> Ranking:
        """The ranking of the evidence's candidates by these scores."""
        if scores.shape != evidence.documents.shape:
            raise DataError(f"scores must be a number for each of {len(evidence.documents)} candidates")
        first, ties = (new_array(len(scores), np.int64) for _ in range(2))
        for span in ragged.spans(evidence.offsets):
            values = scores[span.rows].astype(np.float64)
            if np.isnan(values).any():
                raise DataError(f"scores must be a number for each of {len(evidence.documents)} candidates")
            query = np.repeat(np.arange(len(span.lengths)), span.lengths)
            order = np.lexsort((-values, query))
            new = np.ones(len(values), dtype=np.bool_)
            new[1:] = (values[order][1:] != values[order][:-1]) | (query[1:] != query[:-1])
            number, starts = np.cumsum(new) - 1, np.flatnonzero(new)
            ranks = np.arange(len(values)) - (np.cumsum(span.lengths) - span.lengths)[query]
            first[span.rows.start + order] = ranks[starts][number]
            ties[span.rows.start + order] = np.diff(starts, append=len(values))[number]
        return cls(first, ties)

    @classmethod
    def by(cls, ranker: RankerLike, evidence: Evidence) -> Ranking:
        """The ranking of the evidence's candidates by a ranker."""
        return cls.of(scores_of(ranker, evidence), evidence)

    def same_as(self, other: Ranking) -> bool:
        """True if both put every candidate at the same rank."""
        return np.array_equal(self.first, other.first) and np.array_equal(self.ties, other.ties)

    def within(self, evidence: Evidence, part: Evidence) -> Ranking:
        """The ranking for a part of the evidence: some of its queries, each with the same candidates."""
        places = np.searchsorted(evidence.query_numbers, part.query_numbers)
        return Ranking(*gather([self.first, self.ties], places, evidence.offsets)[1])

    def weights(self, part: EvidencePart) -> Callable[[Doubles], Doubles]:
        """The weight of the rank of each candidate; tied ones get the mean of theirs."""
        first, ties, query = self.first[part.candidates], self.ties[part.candidates], part.of_query

        def mean(by_rank: Doubles) -> Doubles:
            last = min(len(by_rank), part.places.shape[1])
            # The sum over ranks first to first + ties, of which those beyond the last that counts weigh nothing.
            sums = np.zeros((len(part.places), last + 1))
            np.cumsum(part.places[:, :last] * by_rank[:last], axis=1, out=sums[:, 1:])
            begin, end = np.minimum(first, last), np.minimum(first + ties, last)
            weights: Doubles = (sums[query, end] - sums[query, begin]) / ties
            return weights

        return mean


@dataclass(frozen=True)
class AsShown:
    """Candidates where the log showed them."""

    def weights(self, part: EvidencePart) -> Callable[[Doubles], Doubles]:
        """The mean over its query's impressions of the weight of each candidate's position, 0 where not shown."""
        last = int(part.positions.max(initial=0))
        return lambda by_rank: part.mean(np.pad(by_rank, (0, last)))

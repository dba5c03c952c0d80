"""The places that a ranker or a log gives to candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Floats, Integers
from ultr.data import ragged
from ultr.data.cells import Cells
from ultr.data.gathering import collect, new_array, take
from ultr.errors import DataError
from ultr.evaluation.evidence import Evidence, EvidencePart, shares_by_position, weighted
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


@dataclass(frozen=True, eq=False)
class Placement:
    """Candidates at places of pages, each in some impressions."""

    candidates: Integers
    """[cells], never falling."""
    positions: Integers
    """[cells], where a candidate is put, from 0."""
    times: Doubles
    """[cells], in how many of its query's impressions."""

    @classmethod
    def as_shown(cls, evidence: Evidence) -> Placement:
        """The candidates where the log showed them."""
        return cls(evidence.cells.documents, evidence.cells.positions, evidence.cells.impressions)

    @classmethod
    def ranked(cls, scores: Floats | Doubles, evidence: Evidence) -> Placement:
        """The candidates of each query in the order of their scores, each where its rank stood on the query's pages.

        A rank beyond the end of a page is nowhere on it. Those that tie share their ranks.
        """
        places, longest = evidence.places, evidence.longest
        place_keys, (first, ties) = take(places.ids, places.documents), ranks_of(scores, evidence)

        def put() -> Iterator[tuple[Integers, Integers, Doubles]]:
            for span in ragged.spans(evidence.offsets):
                # Of n that tie, each has each of their n ranks in 1 / n of the impressions.
                shared = np.clip(longest - first[span.rows], 0, ties[span.rows])
                each = span.rows.start + np.repeat(np.arange(len(shared)), shared)
                rank = first[each] + ragged.ranks(ragged.from_lengths(shared))
                keys = np.repeat(span.spread(evidence.query_numbers), shared) * longest + rank
                begin, end = np.searchsorted(place_keys, [keys, keys + 1])
                cells = np.repeat(begin, end - begin) + ragged.ranks(ragged.from_lengths(end - begin))
                each = np.repeat(each, end - begin)
                yield each, places.positions[cells], places.impressions[cells] / ties[each]

        return cls(*collect(put(), (np.int64, np.int64, np.float64)))

    @classmethod
    def reordered(cls, scores: Floats | Doubles, evidence: Evidence) -> Placement:
        """The documents of each page in the order of the candidates' scores, at the places that the page had.

        No document comes onto a page that did not show it: it may have been out of stock there, or filtered out, or
        have had other features. Those that tie share their places.
        """
        pages = evidence.pages
        assert pages is not None, "there must be pages"

        def put() -> Iterator[tuple[Integers, Integers, Doubles]]:
            for span in ragged.spans(pages.offsets):
                candidates, places = evidence.numbers(span), pages.position.values[span.rows]
                order, first, ties = in_order(scores[candidates], span.lengths)
                # Of n that tie, each stands at each of their n places in 1 / n of the impressions.
                each = np.repeat(np.arange(len(order)), ties)
                place = first[each] + np.arange(len(each)) - (np.cumsum(ties) - ties)[each]
                times = span.spread(pages.impressions) / ties
                yield candidates[order][each], places[place], times[each]

        candidates, positions, times = collect(put(), (np.int64, np.int64, np.float64))
        clicks = np.broadcast_to(0.0, candidates.shape)
        cells = Cells.of(candidates, positions, times, clicks, count=evidence.positions)
        return cls(take(cells.ids, cells.documents), cells.positions, cells.impressions)

    def same_as(self, other: Placement) -> bool:
        """True if both put every candidate at the same places equally often."""
        return all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("candidates", "positions", "times")
        )

    def weights(self, part: EvidencePart) -> Callable[[Doubles], Doubles]:
        """A function that takes the weight of each rank and gives each candidate its mean weight.

        The mean is over the impressions of the query: a candidate weighs nothing on pages without it. [candidates]
        from [ranks], or [draws, candidates] from [draws, ranks]; ranks beyond the last weigh nothing.
        """
        wanted = part.candidates
        ends = np.searchsorted(self.candidates, (wanted[0], wanted[-1] + 1)) if len(wanted) else (0, 0)
        some = slice(*ends)
        number = np.searchsorted(wanted, self.candidates[some])
        known = wanted[number] == self.candidates[some] if len(wanted) else np.zeros(0, dtype=np.bool_)
        positions, times = self.positions[some][known], self.times[some][known]
        shares = shares_by_position(number[known], positions, times, part.impressions)
        return lambda by_rank: weighted(by_rank, shares)


def placement_of(scores: Floats | Doubles, evidence: Evidence) -> Placement:
    """The places that candidates have by these scores: on each page, or among the candidates that were given."""
    missing = any(np.isnan(scores[part]).any() for part in ragged.slices(len(scores)))
    if missing or scores.shape != evidence.documents.shape:
        raise DataError(f"scores must be a number for each of {len(evidence.documents)} candidates")
    return (Placement.ranked if evidence.pages is None else Placement.reordered)(scores, evidence)


def placement_by(ranker: RankerLike, evidence: Evidence) -> Placement:
    """The places that candidates have by a ranker."""
    return placement_of(scores_of(ranker, evidence), evidence)


def ranks_of(scores: Floats | Doubles, evidence: Evidence) -> tuple[Integers, Integers]:
    """The first rank that each candidate shares by its score, from 0, and how many share it, [candidates] each."""
    first, ties = (new_array(len(scores), np.int64) for _ in range(2))
    for span in ragged.spans(evidence.offsets):
        order, starts, together = in_order(scores[span.rows], span.lengths)
        first[span.rows.start + order] = starts - np.repeat(np.cumsum(span.lengths) - span.lengths, span.lengths)
        ties[span.rows.start + order] = together
    return first, ties


def in_order(scores: Floats | Doubles, lengths: Integers) -> tuple[Integers, Integers, Integers]:
    """Rows of lists from the highest score down: which rows, and for each the first row and the number of its tie.

    >>> [each.tolist() for each in in_order(np.array([1.0, 3.0, 3.0, 5.0]), np.array([3, 1]))]
    [[1, 2, 0, 3], [0, 0, 2, 3], [2, 2, 1, 1]]
    """
    lists = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((-scores.astype(np.float64), lists))
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (scores[order][1:] != scores[order][:-1]) | (lists[1:] != lists[:-1])
    number, starts = np.cumsum(new) - 1, np.flatnonzero(new)
    return order, starts[number], np.diff(starts, append=len(order))[number]

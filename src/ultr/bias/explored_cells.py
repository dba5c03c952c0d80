"""Clicks on documents that exploration placed by chance, counted with the propensities that it logged.

On page i exploration shows the document that stood at base position b at position k with the logged probability
e_i(b, k), whatever the page is about. Let gamma_i be the relevance of that document to that page; it may differ from
page to page, and the ranking may know it. Under the position-based model, over the pages of a stratum s, those with
the same b and documents at the same positions, so that the same were possible,

    E[ sum over i placed at k of c_i / e_i(b, k) ] = theta_k sum over i of gamma_i
    E[ sum over i placed at k of 1 / e_i(b, k) ]   = number of pages

so that the rate R_sk, the first sum over the second, estimates theta_k times a mean relevance that is the same for all
k. The ratio of two rates of a stratum is the ratio of two thetas: no document must be seen twice, and a ranking that
moves a document where it is more relevant does no harm. R_sk is as sure as one of n_sk = (sum 1/e)^2 / sum 1/e^2
impressions. Where all placements of a stratum at k have the same e, it cancels: R_sk is the plain click rate and n_sk
the number of impressions.

Documents with e = 1 could stand nowhere else and say nothing. Where base positions were not logged, all documents of a
page must have been possible at each of its positions: then the mean of 1 / e is the number of documents. Placements of
which it is not are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ultr.arrays import Doubles, Integers, Mask, ratio
from ultr.data import ragged
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.data.gathering import new_array
from ultr.data.placements import Placements
from ultr.seeding import generator

BEYOND_CHANCE = 4.0
"""Standard errors by which the mean of 1 / e may be below the number of documents."""
_SMALLEST = 1e-100
"""The square of the inverse of smaller probabilities is no finite number."""


@dataclass(frozen=True, eq=False)
class ExploredCells:
    """Sums over the placements of each stratum at each position, for groups of lists that can be drawn anew."""

    strata: Integers
    """[cells], never falling."""
    positions: Integers
    """[cells], from 0."""
    sums: Doubles
    """[groups, 3, cells]: of 1 / e, of 1 / e^2 and of c / e."""
    count: int
    """The number of positions."""
    used: int
    """Placements that were counted."""
    left_out: int
    """Placements by chance of which it is not known where else the document could have stood."""

    @classmethod
    def of_log(
        cls, log: ClickLog, groups: Integers | None = None, *, group_count: int = 1, among: Mask | None = None
    ) -> ExploredCells | None:
        """The placements of a log; None if exploration placed nothing.

        `groups` has the group of each list, below `group_count`; `among` says which rows of the features count.
        """
        placements, count = log.placements, len(log.position.levels)
        if placements is None or not placements.explored.any():
            return None
        shapes = page_shapes(log.position.values, log.offsets, count=count)
        everywhere = _possible_everywhere(_parts(log, placements, shapes), int(log.lengths.max()))
        # A cell for each shape of a page, base position and position, in this order.
        widest = int(placements.bases.max()) + 1
        keys: Integers = np.empty(0, dtype=np.int64)
        left_out = 0.0
        for part in _parts(log, placements, shapes):
            usable = (part.bases > 0) | everywhere[part.lengths]
            left_out += float(part.shown[~usable].sum())
            keys = np.union1d(keys, part.keys(widest, count)[usable])
        sums = np.zeros((3, group_count * len(keys)))
        used = 0.0
        for part in _parts(log, placements, shapes):
            usable = (part.bases > 0) | everywhere[part.lengths]
            if among is not None:
                usable &= among[log.documents[part.rows]]
            cell = np.searchsorted(keys, part.keys(widest, count)[usable])
            if groups is not None:
                cell = groups[part.lists[usable]].astype(np.int64) * len(keys) + cell
            weights = 1 / part.chances[usable]
            shown, clicked = part.shown[usable], part.clicked[usable]
            used += float(shown.sum())
            for total, values in zip(sums, (shown * weights, shown * weights**2, clicked * weights), strict=True):
                total += np.bincount(cell, values, minlength=len(total))
        return cls(
            strata=np.unique(keys // count, return_inverse=True)[1],
            positions=keys % count,
            sums=np.moveaxis(sums.reshape(3, group_count, len(keys)), 0, 1),
            count=count,
            used=round(used),
            left_out=round(left_out),
        )

    def cells(self, times: Doubles | None = None) -> Cells:
        """n_sk impressions with R_sk n_sk clicks of each stratum at each position, strata in the place of documents.

        `times` says how often each group counts, by default once.
        """
        weights, squares, clicked = self.sums.sum(axis=0) if times is None else np.tensordot(times, self.sums, axes=1)
        shown = ratio(weights**2, squares)
        rates = ratio(clicked, weights)
        return Cells(
            documents=self.strata.astype(np.int64),
            positions=self.positions.astype(np.int64),
            impressions=shown,
            clicks=shown * rates,
            count=self.count,
            ids=np.arange(int(self.strata[-1]) + 1 if len(self.strata) else 0),
            together=np.zeros(len(shown)),
        )


class _Part(NamedTuple):
    """Explored rows of some lists, one value for each."""

    rows: Integers
    lists: Integers
    lengths: Integers
    """Number of documents of the page."""
    shapes: Integers
    """A number for the set of positions that the page has documents at."""
    bases: Integers
    positions: Integers
    chances: Doubles
    shown: Doubles
    clicked: Doubles

    def keys(self, widest: int, count: int) -> Integers:
        """The cell of each row, as one number."""
        return (self.shapes * widest + self.bases) * count + self.positions


def page_shapes(positions: Integers, offsets: Integers, *, count: int) -> Integers:
    """[lists], a number for the set of positions, from 0 and below `count`, that each has documents at.

    >>> page_shapes(np.array([0, 1, 0, 2, 0, 1]), np.array([0, 2, 4, 6]), count=3).tolist() in ([0, 1, 0], [1, 0, 1])
    True
    """
    # Sums of random 64-bit numbers, one for each position, tell two sets apart but for a chance of 2^-64.
    codes = generator(0, "page shapes").integers(2**64, size=count, dtype=np.uint64)
    sums = new_array(len(offsets) - 1, np.uint64)
    for span in ragged.spans(offsets):
        up_to = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(codes[positions[span.rows]])])
        bounds = ragged.from_lengths(span.lengths)
        sums[span.lists] = up_to[bounds[1:]] - up_to[bounds[:-1]]
    return np.unique(sums, return_inverse=True)[1]


def _parts(log: ClickLog, placements: Placements, shapes: Integers) -> Iterator[_Part]:
    """The rows that exploration might have put elsewhere, a span of lists at a time."""
    for span in ragged.spans(log.offsets):
        chances = placements.propensities[span.rows]
        rows = np.flatnonzero(chances < 1)
        lists = np.repeat(np.arange(span.lists.start, span.lists.stop), span.lengths)[rows]
        there = span.rows.start + rows
        yield _Part(
            rows=there,
            lists=lists,
            lengths=span.lengths[lists - span.lists.start],
            shapes=shapes[lists],
            bases=placements.bases[there].astype(np.int64),
            positions=log.position.values[there].astype(np.int64),
            chances=np.maximum(chances[rows], _SMALLEST),
            shown=log.impressions[lists].astype(np.float64),
            clicked=log.clicks[there].astype(np.float64),
        )


def _possible_everywhere(parts: Iterable[_Part], longest: int) -> Mask:
    """[lengths], true if all documents of pages of a length were possible at each position.

    One document of a page stands at a position, and the mean of its 1 / e is the number of those that might have.
    """
    sums = np.zeros((3, longest + 1))
    for part in parts:
        unknown = np.where(part.bases > 0, 0.0, part.shown)
        for total, values in zip(sums, (unknown, unknown / part.chances, unknown / part.chances**2), strict=True):
            total += np.bincount(part.lengths, values, minlength=longest + 1)
    pages, weights, squares = sums
    mean = ratio(weights, pages)
    variance = ratio(squares, pages) - mean**2
    error = np.sqrt(np.maximum(variance, 0) / np.maximum(pages, 1))
    fits: Mask = mean + BEYOND_CHANCE * error >= np.arange(longest + 1) * (1 - 1e-9)
    return fits

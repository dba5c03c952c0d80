"""How often each document was shown under each level of its bias, and clicked: the table that bias is learned from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Counts, Doubles, Integers, Mask, ratio
from ultr.data import ragged, row_blocks
from ultr.data.gathering import collect, computed, new_array, take

_COLUMNS = (np.int64, np.int64, np.float64, np.float64, np.float64, np.int64)


@dataclass(frozen=True, eq=False)
class Cells:
    """How often each document was shown at each of its positions, and clicked: one cell for each of the two.

    Where another bias factor, or a combination of several, is counted by, its levels stand in the place of positions.
    """

    documents: Integers
    """int64 [cells], never falling: the documents numbered from 0."""
    positions: Integers
    """int64 [cells], from 0."""
    impressions: Doubles
    """[cells]."""
    clicks: Doubles
    """[cells]."""
    count: int
    """The number of positions."""
    ids: Integers
    """int64 [documents], ascending: what each document is called in the log, mostly its row of the features."""
    together: Doubles
    """[cells], how many other impressions share the list of an impression, on average.

    Clicks of one list may share their luck (see `ultr.bias.dispersion`), and then a cell of few lists is less sure.
    """

    @classmethod
    def of(
        cls,
        documents: Integers,
        positions: Integers,
        impressions: Counts,
        clicks: Counts,
        *,
        count: int,
        offsets: Integers | None = None,
        fewest_positions: int = 1,
        fewest_clicks: int = 0,
    ) -> Cells:
        """The cells of shown documents: which, where (from 0, of `count` positions), how often, with how many clicks.

        `impressions` has one number for each list of the `offsets`; by default each shown document is a list of its
        own. Documents with fewer positions or clicks than asked for are left out. Rows are read some documents at a
        time, and a large table is put into temporary files, so that memory does not grow with it.
        """

        def blocks() -> Iterator[tuple[Counts, ...]]:
            known = 0
            for rows in row_blocks.row_blocks(documents):
                often = impressions[rows if offsets is None else row_blocks.lists_of(rows, offsets)].astype(np.float64)
                keys, cell = np.unique(documents[rows].astype(np.int64) * count + positions[rows], return_inverse=True)
                shown, clicked, pairs = (
                    np.bincount(cell, values, minlength=len(keys)).astype(np.float64, copy=False)
                    for values in (often, clicks[rows], often * (often - 1))
                )
                ids, number = np.unique(keys // count, return_inverse=True)
                used = (np.bincount(number) >= fewest_positions) & (np.bincount(number, clicked) >= fewest_clicks)
                kept = used[number]
                numbers = known + (np.cumsum(used) - 1)[number[kept]]
                known += int(used.sum())
                together = ratio(pairs, shown)
                yield numbers, (keys % count)[kept], shown[kept], clicked[kept], together[kept], ids[used]

        numbers, places, shown, clicked, together, ids = collect(blocks(), _COLUMNS)
        return cls(numbers, places, shown, clicked, count, ids, together)

    def moved(self) -> Integers:
        """The cells of documents with a click that were shown at several positions; those never shown are left out."""
        found = ([part.start + np.flatnonzero(self._moved(part))] for part in self.parts())
        return collect(found, [np.int64])[0]

    def _moved(self, part: slice) -> Mask:
        numbers, shown = self.documents[part] - self.documents[part.start], self.impressions[part] > 0
        several = np.bincount(numbers, shown) > 1
        moved: Mask = shown & (several & (np.bincount(numbers, self.clicks[part]) > 0))[numbers]
        return moved

    def choose(self, cells: Integers, *, renumber: bool = True) -> Cells:
        """Only these cells, in order; the documents are numbered anew, or keep their numbers."""
        numbers, ids = take(self.documents, cells), self.ids
        if renumber:
            before, numbers = numbers, renumbered(numbers)
            ids = new_array(int(numbers[-1]) + 1 if len(numbers) else 0, np.int64)
            for part in ragged.slices(len(numbers)):
                ids[numbers[part]] = self.ids[before[part]]
        positions, shown, clicks, together = (
            take(each, cells) for each in (self.positions, self.impressions, self.clicks, self.together)
        )
        return Cells(numbers, positions, shown, clicks, self.count, ids, together)

    def part(self, part: slice) -> Cells:
        """The cells of one of the `parts`, with their documents numbered anew."""
        those = self.documents_of(part)
        return Cells(
            self.documents[part] - those.start,
            self.positions[part],
            self.impressions[part],
            self.clicks[part],
            self.count,
            self.ids[those],
            self.together[part],
        )

    def documents_of(self, part: slice) -> slice:
        """The numbers of the documents of one of the `parts`."""
        return slice(int(self.documents[part.start]), int(self.documents[part.stop - 1]) + 1)

    def parts(self, *, most: int | None = None) -> Iterator[slice]:
        """The cells of some documents after those of others, about `most` (by default `SPAN`) at a time."""
        most = ragged.SPAN if most is None else most
        start, end = 0, len(self.documents)
        while start < end:
            last = self.documents[min(start + most, end) - 1]
            stop = int(np.searchsorted(self.documents, last, side="right"))
            yield slice(start, stop)
            start = stop


def renumbered(documents: Integers) -> Integers:
    """Documents that never fall, numbered from 0.

    >>> renumbered(np.array([2, 2, 5, 9])).tolist()
    [0, 0, 1, 2]
    """
    numbers = new_array(len(documents), np.int64)
    numbers[:1] = 0
    np.cumsum(computed(np.not_equal, documents[1:], documents[:-1], dtype=np.bool_), out=numbers[1:])
    return numbers

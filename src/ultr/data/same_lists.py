"""Lists that are equal, found by digests of what they hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ultr.arrays import Integers
from ultr.data import ragged

Words = npt.NDArray[np.uint64]
_STARTS = (np.uint64(0x243F6A8885A308D3), np.uint64(0x13198A2E03707344))
"""The start of each of the two digests of a row."""


def same_lists(offsets: Integers, rows: Sequence[Integers], keys: Sequence[Integers]) -> Integers:
    """For each list the number of its group, from 0 in the order in which groups appear.

    Lists are equal if they have the same `keys`, arrays with one value per list, and the same `rows`, arrays with one
    value per row, in the same order. Rows are compared by 128 bits made from theirs.

    >>> same_lists(np.array([0, 2, 3, 5]), [np.array([7, 8, 7, 7, 8])], [np.array([1, 1, 1])]).tolist()
    [0, 1, 0]
    """
    digests = [_digest(offsets, rows, start) for start in _STARTS]
    columns = [*digests, np.diff(offsets), *keys]
    order = np.lexsort(columns)
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = np.any([column[order][1:] != column[order][:-1] for column in columns], axis=0)
    # The sort is stable, so the first of a group is also the first of it in the log.
    firsts, group = order[new], np.cumsum(new) - 1
    appearance = np.empty(len(firsts), dtype=np.int64)
    appearance[np.argsort(firsts)] = np.arange(len(firsts))
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = appearance[group]
    return numbers


def content_order(offsets: Integers, rows: Sequence[Integers], keys: Sequence[Integers]) -> Integers:
    """The lists in an order made from their content alone: by the keys, the first counting most, then by a digest."""
    sums = _digest(offsets, rows, None)
    return np.lexsort((_scrambled(sums), sums, *reversed(keys)))


def _digest(offsets: Integers, rows: Sequence[Integers], start: np.uint64 | None) -> Words:
    """A sum over the rows of each list of a mix of their values and, with a `start`, of their places."""
    sums = np.zeros(len(offsets) - 1, dtype=np.uint64)
    for span in ragged.spans(offsets):
        mixed = np.zeros(int(span.lengths.sum()), dtype=np.uint64)
        if start is not None:
            mixed = _scrambled(start + ragged.ranks(ragged.from_lengths(span.lengths)).astype(np.uint64))
        for column in rows:
            mixed = _scrambled(mixed + column[span.rows].astype(np.uint64))
        sums[span.lists] = _sums(mixed, span.lengths)
    return sums


def _sums(values: Words, lengths: Integers) -> Words:
    """The sum of each list; sums wrap around."""
    ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(values, dtype=np.uint64)])
    bounds = ragged.from_lengths(lengths)
    sums: Words = ends[bounds[1:]] - ends[bounds[:-1]]
    return sums


def _scrambled(values: Words) -> Words:
    """The mixing step of SplitMix64."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))

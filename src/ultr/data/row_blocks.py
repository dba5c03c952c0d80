"""The rows of a log by what they belong to, a block at a time: sums for each document need no sort of all rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ultr.arrays import Integers
from ultr.data import ragged

BLOCK = 2**20
"""Rows that are held at once."""
_BINS = 2**20


def row_blocks(keys: Integers) -> Iterator[Integers]:
    """The rows with the lowest keys, then those with the next, and so on: all rows of a key are in one block.

    A block has at most `BLOCK` rows, unless a few keys that lie together have more. Within a block rows ascend. Keys
    must not be negative.
    """
    if len(keys) <= BLOCK:
        yield np.arange(len(keys))
        return
    parts = list(ragged.slices(len(keys)))
    ranges = [(int(keys[part].min()), int(keys[part].max())) for part in parts]
    width = max(high for _, high in ranges) // _BINS + 1
    counts = np.zeros(_BINS, dtype=np.int64)
    for part in parts:
        counts += np.bincount(keys[part] // width, minlength=_BINS)
    bins = np.flatnonzero(counts)
    for span in ragged.spans(ragged.from_lengths(counts[bins]), most=BLOCK):
        some = bins[span.lists]
        lowest, highest = int(some[0]) * width, (int(some[-1]) + 1) * width - 1
        found = [
            part.start + np.flatnonzero((keys[part] >= lowest) & (keys[part] <= highest))
            for part, (low, high) in zip(parts, ranges, strict=True)
            if low <= highest and high >= lowest
        ]
        yield np.concatenate(found)


def lists_of(rows: Integers, offsets: Integers) -> Integers:
    """The number of the list that each row belongs to.

    >>> lists_of(np.array([0, 2, 4]), np.array([0, 2, 2, 5])).tolist()
    [0, 2, 2]
    """
    return np.searchsorted(offsets, rows, side="right") - 1

"""The rows of a log by what they belong to, a block at a time: sums for each document need no sort of all rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ultr.arrays import Integers
from ultr.data import ragged

BLOCK = 2**21
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
    parts = list(spans(len(keys)))
    ranges = [(int(keys[part].min()), int(keys[part].max())) for part in parts]
    width = max(high for _, high in ranges) // _BINS + 1
    counts = np.zeros(_BINS, dtype=np.int64)
    for part in parts:
        counts += np.bincount(keys[part] // width, minlength=_BINS)
    for start, stop in ragged.spans(ragged.from_lengths(counts), most=BLOCK):
        found = [
            part.start + np.flatnonzero((keys[part] >= start * width) & (keys[part] < stop * width))
            for part, (low, high) in zip(parts, ranges, strict=True)
            if low < stop * width and high >= start * width
        ]
        if found:
            yield np.concatenate(found)


def spans(length: int) -> Iterator[slice]:
    """The parts of an array that are worked on one after the other."""
    return (slice(start, min(start + ragged.SPAN, length)) for start in range(0, length, ragged.SPAN))


def sums(cells: Integers, values: npt.NDArray[Any], *, count: int) -> npt.NDArray[np.float64]:
    """`np.bincount(cells, values, minlength=count)` without a copy of all values."""
    total = np.zeros(count)
    for part in spans(len(cells)):
        total += np.bincount(cells[part], values[part], minlength=count)
    return total


def lists_of(rows: Integers, offsets: Integers) -> Integers:
    """The number of the list that each row belongs to.

    >>> lists_of(np.array([0, 2, 4]), np.array([0, 2, 2, 5])).tolist()
    [0, 2, 2]
    """
    numbers: Integers = np.searchsorted(offsets, rows, side="right") - 1
    return numbers

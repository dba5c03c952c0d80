"""Lists gathered from arrays, a span of them at a time: what is large goes to a file, so that memory does not grow."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ultr.arrays import Integers
from ultr.data import ragged
from ultr.errors import DataError

LARGE = 2**26
"""Arrays of so many bytes are kept in a temporary file."""


def new_array(length: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """A flat array to be filled; a large one is mapped from a file without a name, which goes when the array does.

    The kernel may drop the pages of such an array and read them again, so that it takes disk space, not memory.
    """
    size = length * np.dtype(dtype).itemsize
    if size < LARGE:
        return np.empty(length, dtype)
    folder = tempfile.gettempdir()
    try:
        with tempfile.TemporaryFile(dir=folder) as stream:
            if hasattr(os, "posix_fallocate"):  # Else a full disk would show only when the array is written to.
                os.posix_fallocate(stream.fileno(), 0, size)
            return np.asarray(np.memmap(stream, dtype, mode="w+", shape=length))
    except OSError as error:
        raise DataError(
            f"{size / 1e9:.1f} GB of a click log cannot be put into {folder} ({error.strerror}); "
            "make room there, or set TMPDIR to a folder that has some"
        ) from error


def gather(
    arrays: Sequence[npt.NDArray[Any]], lists: Integers, offsets: Integers
) -> tuple[Integers, list[npt.NDArray[Any]]]:
    """The chosen lists of some flat arrays that share their offsets: new offsets, and the values of each array."""
    chosen = _offsets(lists, offsets)
    taken = [new_array(int(chosen[-1]), array.dtype) for array in arrays]
    for start, stop in ragged.spans(chosen):
        rows = ragged.rows_of(lists[start:stop], offsets)
        for new, array in zip(taken, arrays, strict=True):
            new[chosen[start] : chosen[stop]] = array[rows]
    return chosen, taken


def _offsets(lists: Integers, offsets: Integers) -> Integers:
    chosen = new_array(len(lists) + 1, np.int64)
    chosen[0] = 0
    for start in range(0, len(lists), ragged.SPAN):
        part = lists[start : start + ragged.SPAN]
        ends = chosen[start + 1 : start + 1 + len(part)]
        np.cumsum(offsets[1:][part] - offsets[:-1][part], out=ends)
        ends += chosen[start]
    return chosen


def take(array: npt.NDArray[Any], lists: Integers) -> npt.NDArray[Any]:
    """The value that each of the chosen lists has in an array with one for each list."""
    taken = new_array(len(lists), array.dtype)
    for start in range(0, len(lists), ragged.SPAN):
        taken[start : start + ragged.SPAN] = array[lists[start : start + ragged.SPAN]]
    return taken


def spread(values: npt.NDArray[Any], offsets: Integers) -> npt.NDArray[Any]:
    """The value of each list once for each of its rows: `np.repeat(values, np.diff(offsets))`."""
    rows = new_array(int(offsets[-1]), values.dtype)
    for start, stop in ragged.spans(offsets):
        rows[offsets[start] : offsets[stop]] = np.repeat(values[start:stop], np.diff(offsets[start : stop + 1]))
    return rows


def joined(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """The arrays one after the other."""
    whole = new_array(sum(map(len, arrays)), arrays[0].dtype)
    return np.concatenate(arrays, out=whole)

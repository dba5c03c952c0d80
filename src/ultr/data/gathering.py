"""Lists gathered from arrays, a span of them at a time: what is large goes to a file, so that memory does not grow."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

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
    with _room_for(size), tempfile.TemporaryFile() as stream:
        if hasattr(os, "posix_fallocate"):  # Else a full disk would show only when the array is written to.
            os.posix_fallocate(stream.fileno(), 0, size)
        return np.asarray(np.memmap(stream, dtype, mode="w+", shape=length))


@contextmanager
def _room_for(size: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{size / 1e9:.1f} GB of a click log cannot be put into {tempfile.gettempdir()} ({error.strerror}); "
            "make room there, or set TMPDIR to a folder that has some"
        ) from error


def collect(parts: Iterable[Sequence[npt.NDArray[Any]]], dtypes: Sequence[npt.DTypeLike]) -> list[npt.NDArray[Any]]:
    """Arrays that come part by part, each put together; if they are large, mapped from files, as by `new_array`."""
    columns = [_Column(np.dtype(dtype)) for dtype in dtypes]
    for part in parts:
        for column, values in zip(columns, part, strict=True):
            column.add(values)
        if sum(column.waiting for column in columns) >= LARGE:
            for column in columns:
                column.write()
    return [column.whole() for column in columns]


class _Column:
    """An array of unknown length, and the file that what has come of it is written to."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype, self._size = dtype, 0
        self.waiting = 0
        self._parts: list[npt.NDArray[Any]] = []
        self._stream: IO[bytes] | None = None

    def add(self, values: npt.NDArray[Any]) -> None:
        self._parts.append(np.ascontiguousarray(values, dtype=self._dtype))
        self.waiting += self._parts[-1].nbytes

    def whole(self) -> npt.NDArray[Any]:
        if self._stream is None:
            return np.concatenate([np.empty(0, self._dtype), *self._parts])
        self.write()
        with self._stream as stream:
            return np.asarray(np.memmap(stream, self._dtype, mode="r+", shape=self._size // self._dtype.itemsize))

    def write(self) -> None:
        self._size += self.waiting
        with _room_for(self._size):
            if self._stream is None:
                self._stream = tempfile.TemporaryFile()  # noqa: SIM115  (it is closed when the array is mapped)
            for values in self._parts:
                self._stream.write(values.data)
            self._stream.flush()
        self._parts, self.waiting = [], 0


def gather(
    arrays: Sequence[npt.NDArray[Any]], lists: Integers, offsets: Integers
) -> tuple[Integers, list[npt.NDArray[Any]]]:
    """The chosen lists of some flat arrays that share their offsets: new offsets, and the values of each array."""
    chosen = _offsets(lists, offsets)
    taken = [new_array(int(chosen[-1]), array.dtype) for array in arrays]
    for span in ragged.spans(chosen):
        rows = ragged.rows_of(lists[span.lists], offsets)
        for new, array in zip(taken, arrays, strict=True):
            new[span.rows] = array[rows]
    return chosen, taken


def _offsets(lists: Integers, offsets: Integers) -> Integers:
    chosen = new_array(len(lists) + 1, np.int64)
    chosen[0] = 0
    np.cumsum(computed(lambda some: offsets[some + 1] - offsets[some], lists), out=chosen[1:])
    return chosen


def take(array: npt.NDArray[Any], lists: Integers) -> npt.NDArray[Any]:
    """The value that each of the chosen lists has in an array with one for each list."""
    return computed(array.__getitem__, lists, dtype=array.dtype)


def spread(values: npt.NDArray[Any], offsets: Integers) -> npt.NDArray[Any]:
    """The value of each list once for each of its rows: `np.repeat(values, np.diff(offsets))`."""
    rows = new_array(int(offsets[-1]), values.dtype)
    for span in ragged.spans(offsets):
        rows[span.rows] = span.spread(values)
    return rows


def computed(
    function: Callable[..., npt.NDArray[Any]], *arrays: npt.NDArray[Any], dtype: npt.DTypeLike = np.int64
) -> npt.NDArray[Any]:
    """`function` of the values at the same places of some flat arrays, a span of them at a time."""
    values = new_array(len(arrays[0]), dtype)
    for part in ragged.slices(len(values)):
        values[part] = function(*(array[part] for array in arrays))
    return values

"""Lists of different lengths in one flat array: list `i` is `values[offsets[i]:offsets[i + 1]]`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ultr.arrays import Doubles, Integers
from ultr.errors import DataError

Scalar = TypeVar("Scalar", bound=np.generic)
SPAN = 2**18
"""Values per span: little memory, and little time for all that is done once per span."""


def check_offsets(offsets: Integers, total: int, *, what: str) -> None:
    """Raise a `DataError` unless `offsets` splits `total` values into lists."""
    if offsets.ndim != 1 or len(offsets) < 1 or offsets[0] != 0 or offsets[-1] != total:
        sizes = offsets.ndim == 1 and len(offsets) > 0 and offsets.sum() == total
        hint = "; these look like the sizes of lists, whose offsets are numpy.cumsum([0, *sizes])" if sizes else ""
        raise DataError(f"the offsets of {what} must start with 0 and end with {total}, their number{hint}")
    if (offsets[1:] < offsets[:-1]).any():
        raise DataError(f"the offsets of {what} must never decrease")


def from_lengths(lengths: Integers) -> Integers:
    """Offsets of lists with these lengths.

    >>> from_lengths(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def list_numbers(offsets: Integers) -> Integers:
    """The number of the list that each value belongs to.

    >>> list_numbers(np.array([0, 2, 5])).tolist()
    [0, 0, 1, 1, 1]
    """
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def chosen(lists: Integers | npt.NDArray[np.bool_]) -> Integers:
    """Chosen lists as numbers, given as numbers or as a mask."""
    return np.flatnonzero(lists) if lists.dtype == np.bool_ else lists.astype(np.int64, copy=False)


class Span(NamedTuple):
    """Lists that follow each other, and the rows of the flat arrays that they occupy."""

    lists: slice
    rows: slice
    lengths: Integers
    """[lists of the span]."""

    def spread(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """The values of the span's lists, out of those of all lists, once for each of its rows."""
        return np.repeat(values[self.lists], self.lengths)


def spans(offsets: Integers, *, most: int | None = None) -> Iterator[Span]:
    """All lists, one span after the other, of at most `most` (by default `SPAN`) lists and values each.

    A list with more values is a span of its own.

    >>> [(span.lists, span.rows) for span in spans(np.array([0, 2, 5, 9, 9]), most=5)]
    [(slice(0, 2, None), slice(0, 5, None)), (slice(2, 4, None), slice(5, 9, None))]
    """
    most = SPAN if most is None else most
    start, lists = 0, len(offsets) - 1
    while start < lists:
        full = int(np.searchsorted(offsets, offsets[start] + most, side="right")) - 1
        stop = min(max(full, start + 1), start + most, lists)
        bounds = offsets[start : stop + 1]
        yield Span(slice(start, stop), slice(int(bounds[0]), int(bounds[-1])), np.diff(bounds))
        start = stop


def same_in_lists(values: Integers, offsets: Integers) -> bool:
    """True if all values of each list are the same.

    >>> same_in_lists(np.array([1, 1, 2]), np.array([0, 2, 3])), same_in_lists(np.array([1, 2]), np.array([0, 2]))
    (True, False)
    """
    for span in spans(offsets):
        filled = span.lengths > 0
        firsts = values[offsets[:-1][span.lists][filled]]
        if (values[span.rows] != np.repeat(firsts, span.lengths[filled])).any():
            return False
    return True


def slices(length: int, *, most: int | None = None) -> Iterator[slice]:
    """All values of a flat array, at most `most` (by default `SPAN`) at a time.

    >>> list(slices(5, most=3))
    [slice(0, 3, None), slice(3, 5, None)]
    """
    most = SPAN if most is None else most
    return (slice(start, min(start + most, length)) for start in range(0, length, most))


def rows_of(lists: Integers, offsets: Integers) -> Integers:
    """The rows of the flat array that the chosen lists occupy, one list after the other.

    >>> rows_of(np.array([1, 0]), np.array([0, 2, 5])).tolist()
    [2, 3, 4, 0, 1]
    """
    starts = offsets[:-1][lists]
    lengths = offsets[1:][lists] - starts
    shift = starts - (np.cumsum(lengths) - lengths)
    rows: Integers = np.arange(lengths.sum()) + np.repeat(shift, lengths)
    return rows


def ranks(offsets: Integers) -> Integers:
    """The place of each value within its list, from 0.

    >>> ranks(np.array([0, 2, 5])).tolist()
    [0, 1, 0, 1, 2]
    """
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def sums_before(values: Doubles, offsets: Integers) -> Doubles:
    """The sum of the values before each one in its list.

    >>> sums_before(np.array([2.0, 1.0, 0.0, 5.0, 3.0]), np.array([0, 3, 3, 5]))
    array([0., 2., 3., 0., 5.])
    """
    before = np.concatenate([[0.0], np.cumsum(values)])
    sums: Doubles = before[:-1] - np.repeat(before[offsets[:-1]], np.diff(offsets))
    return sums


def following(offsets: Integers) -> Integers:
    """How many values of its own list follow each value.

    >>> following(np.array([0, 3, 5])).tolist()
    [2, 1, 0, 1, 0]
    """
    return np.repeat(offsets[1:], np.diff(offsets)) - np.arange(offsets[-1]) - 1


def pair_offsets(offsets: Integers) -> Integers:
    """The offsets of the pairs of each list; n values have n (n - 1) / 2.

    >>> pair_offsets(np.array([0, 3, 5])).tolist()
    [0, 3, 4]
    """
    lengths = np.diff(offsets)
    return from_lengths(lengths * (lengths - 1) // 2)


def pair_members(offsets: Integers) -> tuple[Integers, Integers]:
    """The rows of both values of each pair within a list, in the order (0, 1), (0, 2), ..., (1, 2), ...

    >>> [rows.tolist() for rows in pair_members(np.array([0, 3, 5]))]
    [[0, 0, 1, 3], [1, 2, 2, 4]]
    """
    after = following(offsets)
    first = np.repeat(np.arange(len(after)), after)
    starts = np.repeat(from_lengths(after)[:-1], after)
    second: Integers = first + 1 + np.arange(len(first)) - starts
    return first, second


def pad(
    values: npt.NDArray[Scalar], offsets: Integers, *, width: int | None = None, fill: Any = 0
) -> npt.NDArray[Scalar]:
    """The lists as rows of a matrix, cut or filled up to `width` (by default the longest list).

    >>> pad(np.array([1, 2, 3]), np.array([0, 1, 3]), fill=-1).tolist()
    [[1, -1], [2, 3]]
    """
    lengths = np.diff(offsets)
    width = int(lengths.max(initial=0)) if width is None else width
    padded = np.full((len(lengths), width), fill, dtype=values.dtype)
    inside = mask(offsets, width=width)
    padded[inside] = values[ranks(offsets) < width]
    return padded


def mask(offsets: Integers, *, width: int) -> npt.NDArray[np.bool_]:
    """True where `pad` puts a real value."""
    return np.arange(width) < np.diff(offsets)[:, None]

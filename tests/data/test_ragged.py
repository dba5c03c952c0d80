from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ultr.arrays import Integers
from ultr.data import ragged
from ultr.errors import DataError

lengths_of_lists = st.lists(st.integers(0, 6), max_size=8).map(lambda values: np.array(values, dtype=np.int64))


@given(lengths_of_lists)
def test_offsets_and_list_numbers_say_the_same(lengths: Integers) -> None:
    offsets = ragged.from_lengths(lengths)
    ragged.check_offsets(offsets, int(lengths.sum()), what="values")
    assert np.diff(offsets).tolist() == lengths.tolist()
    assert np.bincount(ragged.list_numbers(offsets), minlength=len(lengths)).tolist() == lengths.tolist()


@given(lengths_of_lists, st.randoms(use_true_random=False))
def test_rows_of_chosen_lists_are_those_a_loop_would_take(lengths: Integers, random: object) -> None:
    offsets = ragged.from_lengths(lengths)
    chosen = np.array(random.choices(range(len(lengths)), k=5) if len(lengths) else [], dtype=np.int64)  # type: ignore[attr-defined]
    expected = [row for i in chosen for row in range(offsets[i], offsets[i + 1])]
    assert ragged.rows_of(chosen, offsets).tolist() == expected


@given(lengths_of_lists, st.integers(0, 7))
def test_padding_cuts_long_lists_and_fills_short_ones(lengths: Integers, width: int) -> None:
    offsets = ragged.from_lengths(lengths)
    values = np.arange(100, 100 + lengths.sum())
    padded = ragged.pad(values, offsets, width=width, fill=-1)
    for row, start, end in zip(padded, offsets[:-1], offsets[1:], strict=True):
        kept = values[start:end][:width].tolist()
        assert row.tolist() == kept + [-1] * (width - len(kept))
    assert (ragged.mask(offsets, width=width) == (padded >= 0)).all()


@given(lengths_of_lists)
def test_pairs_are_those_a_double_loop_would_take(lengths: Integers) -> None:
    offsets = ragged.from_lengths(lengths)
    lists = [range(start, end) for start, end in pairwise(offsets)]
    expected = [(i, j) for rows in lists for i in rows for j in rows if i < j]
    first, second = ragged.pair_members(offsets)
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == expected
    numbers = [number for number, rows in enumerate(lists) for i in rows for j in rows if i < j]
    assert ragged.list_numbers(ragged.pair_offsets(offsets)).tolist() == numbers
    assert ragged.following(offsets).tolist() == [rows[-1] - i for rows in lists for i in rows]


def test_padding_is_as_wide_as_the_longest_list_by_default() -> None:
    assert ragged.pad(np.array([1.5, 2.5, 3.5]), np.array([0, 1, 3])).tolist() == [[1.5, 0], [2.5, 3.5]]


@pytest.mark.parametrize(
    ("offsets", "sentence"),
    [
        ([1, 3], "start with 0"),
        ([0, 2], "end with 3"),
        ([], "start with 0"),
        ([[0, 3]], "start with 0"),
        ([0, 3, 2, 3], "never decrease"),
    ],
)
def test_offsets_that_do_not_split_the_values_are_refused(offsets: list[int], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        ragged.check_offsets(np.array(offsets, dtype=np.int64), 3, what="values")

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ultr.data import ragged, row_blocks


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ragged, "SPAN", 7)
    monkeypatch.setattr(row_blocks, "BLOCK", 10)
    monkeypatch.setattr(row_blocks, "_BINS", 1_000)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 40), max_size=80), st.sampled_from([1, 10**12]))
def test_blocks_have_every_row_once_whole_keys_and_rising_keys(keys: list[int], factor: int) -> None:
    array = np.array(keys, dtype=np.int64) * factor
    blocks = list(row_blocks.row_blocks(array))
    assert sorted(np.concatenate(blocks).tolist()) == list(range(len(keys)))
    for block in blocks:
        assert (np.diff(block) > 0).all()
    for before, after in pairwise(blocks):
        assert array[before].max() < array[after].min()


def test_blocks_are_no_larger_than_asked_where_keys_allow_it() -> None:
    keys = np.random.default_rng(0).permutation(100)
    assert max(len(block) for block in row_blocks.row_blocks(keys)) <= 10
    assert [len(block) for block in row_blocks.row_blocks(np.full(30, 5))] == [30]


def test_rows_know_their_list_across_empty_lists() -> None:
    offsets = np.array([0, 0, 2, 2, 5, 5])
    assert row_blocks.lists_of(np.arange(5), offsets).tolist() == ragged.list_numbers(offsets).tolist()

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ultr.train.shuffle import Shuffle


@given(st.integers(1, 3_000), st.integers(0, 100))
def test_every_number_comes_exactly_once(count: int, seed: int) -> None:
    order = Shuffle(count, np.random.default_rng(seed))(np.arange(count))
    assert (np.sort(order) == np.arange(count)).all()


def test_a_part_of_the_order_is_that_part_of_the_whole() -> None:
    order = Shuffle(1_000, np.random.default_rng(0))
    assert (order(np.arange(300, 500)) == order(np.arange(1_000))[300:500]).all()


def test_orders_of_different_keys_have_nothing_in_common() -> None:
    first, second = (Shuffle(50_000, np.random.default_rng(seed))(np.arange(50_000)) for seed in (0, 1))
    assert (first == second).sum() < 20


@pytest.mark.parametrize("count", [1_000, 4_096, 50_000])
def test_an_order_looks_random(count: int) -> None:
    order = Shuffle(count, np.random.default_rng(3))(np.arange(count))
    for lag in (1, 2, 7, 64):
        assert abs(np.corrcoef(order[:-lag], order[lag:])[0, 1]) < 4 / np.sqrt(count)
    assert abs(np.corrcoef(order, np.arange(count))[0, 1]) < 4 / np.sqrt(count)
    # Of the first tenth, each tenth of the numbers holds a tenth, as a hypergeometric draw would.
    counts = np.histogram(order[: count // 10], bins=10, range=(0, count))[0]
    assert (np.abs(counts - count / 100) < 5 * np.sqrt(count / 100)).all()


def test_billions_need_no_memory() -> None:
    order = Shuffle(10**10, np.random.default_rng(0))(np.arange(1_000))
    assert len(np.unique(order)) == 1_000
    assert 0.45 < order.mean() / 10**10 < 0.55

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ultr.train import sampler as sampler_module
from ultr.train.sampler import ListSampler


def _passes(weights: list[int], batch_size: int, steps: int) -> np.ndarray:
    sampler = ListSampler(np.array(weights), batch_size, seed=0, purpose="test")
    return np.concatenate([sampler(step) for step in range(steps)])


def test_with_equal_weights_every_pass_is_a_permutation() -> None:
    drawn = _passes([5] * 12, batch_size=4, steps=6).reshape(2, 12)
    assert (np.sort(drawn, axis=1) == np.arange(12)).all()
    assert (drawn[0] != drawn[1]).any()


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=30))
def test_a_pass_draws_each_list_as_often_as_its_weight_allows(weights: list[int]) -> None:
    counts = np.bincount(_passes(weights, batch_size=len(weights), steps=1), minlength=len(weights))
    expected = np.array(weights) / np.sum(weights) * len(weights)
    assert (np.abs(counts - expected) < 1 + 1e-9).all()


def test_over_many_passes_lists_come_in_proportion_to_their_weights() -> None:
    counts = np.bincount(_passes([1, 2, 3, 14], batch_size=4, steps=5_000), minlength=4)
    np.testing.assert_allclose(counts / counts.sum(), np.array([1, 2, 3, 14]) / 20, atol=0.01)


def test_a_step_does_not_depend_on_the_steps_before_it() -> None:
    sampler = ListSampler(np.ones(10, dtype=np.int64), 4, seed=3, purpose="test")
    in_order = [sampler(step).tolist() for step in range(20)]
    fresh = ListSampler(np.ones(10, dtype=np.int64), 4, seed=3, purpose="test")
    assert fresh(17).tolist() == in_order[17]


def test_a_batch_may_be_larger_than_the_log() -> None:
    assert sorted(_passes([1, 1, 1], batch_size=9, steps=1).tolist()) == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_a_pass_over_several_stretches_and_blocks_is_systematic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler_module, "STRETCH", 100)
    weights = np.random.default_rng(0).integers(1, 50, size=777)
    counts = np.bincount(_passes(weights.tolist(), batch_size=777, steps=1), minlength=777)
    assert (np.abs(counts - weights / weights.mean()) < 1 + 1e-9).all()


def test_lists_are_found_by_the_sum_of_the_weights_before_them() -> None:
    weights = np.random.default_rng(1).integers(1, 9, size=500)
    sampler = ListSampler(weights, 1, seed=0, purpose="test")
    ticks = np.random.default_rng(2).random(2_000) * weights.sum()
    assert (sampler._at(ticks) == np.searchsorted(np.cumsum(weights), ticks, side="right")).all()

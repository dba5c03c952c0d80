from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from ultr.train.bounded import bounded_ranks, ranks


@st.composite
def orders(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    count = draw(st.integers(1, 25))
    wanted, logged = (draw(st.permutations(range(1, count + 1))) for _ in range(2))
    return wanted, logged


def bounded(wanted: list[int], logged: list[int], factor: float) -> list[float]:
    one, other = (torch.tensor([each], dtype=torch.float32) for each in (wanted, logged))
    found: list[float] = bounded_ranks(one, other, torch.tensor(factor))[0].tolist()
    return found


@given(orders(), st.floats(1, 30))
def test_no_rank_moves_by_more_than_the_factor(both: tuple[list[int], list[int]], factor: float) -> None:
    found = bounded(*both, factor)
    assert sorted(found) == list(range(1, len(found) + 1))
    moved = np.array(found) / np.array(both[1])
    assert moved.max() <= factor * (1 + 1e-6)
    assert moved.min() >= 1 / factor * (1 - 1e-6)


@given(orders())
def test_a_factor_of_one_keeps_the_logged_order_and_an_infinite_one_the_wanted(
    both: tuple[list[int], list[int]],
) -> None:
    wanted, logged = both
    assert bounded(wanted, logged, 1.0) == logged
    assert bounded(wanted, logged, math.inf) == wanted


def test_a_document_rises_by_the_root_of_the_factor_and_others_make_room() -> None:
    # The last of eight is wanted first and aims at 8 / sqrt(F); the first two are wanted at 2 and 3.
    logged, wanted = [1, 2, 3, 4, 5, 6, 7, 8], [2, 3, 4, 5, 6, 7, 8, 1]
    assert [bounded(wanted, logged, factor)[-1] for factor in (1.0, 4.0, 8.0, 64.0)] == [8, 3, 2, 1]
    assert bounded(wanted, logged, 8.0) == [1, 3, 4, 5, 6, 7, 8, 2]
    assert bounded(wanted, logged, 64.0) == wanted


def test_ranks_begin_with_the_best_and_ties_keep_their_order_whatever_the_padding() -> None:
    scores = torch.tensor([[0.5, 2.0, 0.5, 9.0], [1.0, 9.0, 9.0, 9.0]])
    mask = torch.tensor([[True, True, True, False], [True, False, False, False]])
    found = ranks(scores, mask)
    assert found[0, :3].tolist() == [2, 1, 3]
    assert found[1, 0] == 1

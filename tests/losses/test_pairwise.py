"""LambdaRank's loss, against its definition told pair by pair."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from sklearn.metrics import ndcg_score

from ultr.losses import lambdarank_loss


def _by_hand(scores: list[float], gains: list[float]) -> float:
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    rank = {document: place for place, document in enumerate(order, start=1)}
    best = sum(gain / math.log2(1 + place) for place, gain in enumerate(sorted(gains, reverse=True), start=1))
    total = 0.0
    for i, j in permutations(range(len(scores)), 2):
        if gains[i] > gains[j]:
            moved = abs(1 / math.log2(1 + rank[i]) - 1 / math.log2(1 + rank[j]))
            total += (gains[i] - gains[j]) * moved / best * math.log1p(math.exp(scores[j] - scores[i]))
    return total


def test_it_is_the_sum_over_pairs_of_the_change_of_ndcg_times_the_logistic_loss() -> None:
    scores, gains = [0.3, -1.2, 2.0, 0.7], [3.0, 1.0, 0.0, 0.5]
    short = [1.0, -0.5], [0.0, 2.0]
    padded = torch.tensor([scores, [*short[0], 9.0, 9.0]], dtype=torch.float64)
    targets = torch.tensor([gains, [*short[1], 7.0, 7.0]], dtype=torch.float64)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    found = lambdarank_loss(padded, targets, mask=mask)
    assert found.tolist() == pytest.approx([_by_hand(scores, gains), _by_hand(*short)])


def test_a_pair_weighs_what_changing_its_places_changes_in_ndcg() -> None:
    """The slope of a pair at equal scores is half its weight, which is what scikit-learn's nDCG loses by the change."""
    gains = np.array([[5.0, 2.0, 1.0]])
    shown = np.array([[3.0, 2.0, 1.0]])
    changed = np.array([[3.0, 1.0, 2.0]])
    lost = ndcg_score(gains, shown) - ndcg_score(gains, changed)
    scores = torch.tensor([[1.0, 2e-9, 1e-9]], dtype=torch.float64, requires_grad=True)
    only = torch.tensor([[False, True, True]])
    whole = lambdarank_loss(scores, torch.from_numpy(gains), mask=torch.ones(1, 3, dtype=torch.bool))
    (slope,) = torch.autograd.grad(whole.sum(), scores)
    # Document 3 is drawn down by both others; by the second with half of what nDCG would lose.
    first = (5 - 1) * (1 - 1 / 2) / (5 + 2 / math.log2(3) + 1 / 2) / (1 + math.e)
    assert float(slope[0, 2]) - first == pytest.approx(lost / 2, rel=1e-6)
    assert float(lambdarank_loss(scores, torch.from_numpy(gains), mask=only).detach()) > 0


def test_a_list_without_a_gain_adds_nothing() -> None:
    scores = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
    assert lambdarank_loss(scores, torch.zeros(2, 3), mask=torch.ones(2, 3, dtype=torch.bool)).tolist() == [0.0, 0.0]


def test_gains_are_given_and_do_not_learn() -> None:
    scores, gains = (torch.tensor([[1.0, 2.0, 0.5]], requires_grad=True) for _ in range(2))
    loss = lambdarank_loss(scores, gains, mask=torch.ones(1, 3, dtype=torch.bool)).sum()
    found = torch.autograd.grad(loss, [scores, gains], allow_unused=True)
    assert found[0] is not None
    assert found[1] is None

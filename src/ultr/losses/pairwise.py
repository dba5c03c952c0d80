"""Pair-wise losses: each document of a list against each other one."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def lambdarank_loss(scores: Tensor, gains: Tensor, *, mask: Tensor) -> Tensor:
    """LambdaRank's loss: each pair weighs as much as nDCG would change if its documents changed places, [lists].

        L = sum_{g_i > g_j} w_ij log(1 + exp(s_j - s_i)),   w_ij = (g_i - g_j) |1 / D(p_i) - 1 / D(p_j)| / max DCG

    with D(p) = log2(1 + p) and p the rank by the present scores. Gains are those of nDCG itself, such as 2^y - 1 or
    debiased clicks, so a list without one adds nothing. Weights have no gradient. (Burges, From RankNet to LambdaRank
    to LambdaMART, 2010.)
    """
    weights = _ndcg_changes(scores, gains, mask)
    return (weights * functional.softplus(scores[:, None, :] - scores[:, :, None])).sum(dim=(1, 2))


@torch.no_grad()
def _ndcg_changes(scores: Tensor, gains: Tensor, mask: Tensor) -> Tensor:
    """The weights w_ij, 0 where there is no pair, [lists, width, width]."""
    gains = gains.masked_fill(~mask, 0.0)
    discounts = 1 / torch.log2(torch.arange(2, mask.shape[1] + 2, dtype=scores.dtype, device=scores.device))
    ranks = scores.masked_fill(~mask, float("-inf")).argsort(dim=-1, descending=True, stable=True).argsort()
    by_rank = discounts[ranks]
    best = (gains.sort(dim=-1, descending=True).values * discounts).sum(dim=-1).clamp(min=1e-9)
    better = (gains[:, :, None] - gains[:, None, :]).clamp(min=0.0)
    weights = better * (by_rank[:, :, None] - by_rank[:, None, :]).abs() / best[:, None, None]
    both = mask[:, :, None] & mask[:, None, :]
    return weights.masked_fill(~both, 0.0)

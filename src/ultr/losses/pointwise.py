"""Losses of models that give every document a click probability of its own."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

_SURE = 1e-6


def click_likelihood_loss(log_probabilities: Tensor, clicks: Tensor, *, mask: Tensor) -> Tensor:
    """Minus the log-likelihood of each list's clicks and skips, [lists].

        L = - sum_i [ clicks_i log p_i + (1 - clicks_i) log(1 - p_i) ]

    Linear in the clicks, so they may be rates. Probabilities are kept a millionth away from 0 and 1.
    """
    chance = log_probabilities.exp().clamp(_SURE, 1 - _SURE)
    return functional.binary_cross_entropy(chance, clicks, weight=mask.to(chance.dtype), reduction="none").sum(dim=-1)

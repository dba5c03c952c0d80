"""The loss of a regression that also learns how sure it is."""

from __future__ import annotations

from torch import Tensor


def gaussian_loss(mean: Tensor, log_variance: Tensor, target: Tensor) -> Tensor:
    """Negative log-likelihood of the target under independent Gaussians, up to a constant, [documents].

        L = 1/2 sum_k [(mean_k - target_k)^2 exp(-log_variance_k) + log_variance_k]

    The logarithm of the variance is what the network gives, so nothing is divided by zero
    (Kendall and Gal, NeurIPS 2017).
    """
    return 0.5 * ((mean - target).square() * (-log_variance).exp() + log_variance).sum(dim=-1)

from __future__ import annotations

import math

import torch

from ultr.losses import gaussian_loss


def test_it_is_the_negative_log_density_up_to_a_constant() -> None:
    mean, log_variance, target = torch.randn(3, 6, 4, dtype=torch.float64)
    density = torch.distributions.Normal(mean, (log_variance / 2).exp()).log_prob(target)
    constant = 4 * 0.5 * math.log(2 * math.pi)
    torch.testing.assert_close(gaussian_loss(mean, log_variance, target), -density.sum(-1) - constant)

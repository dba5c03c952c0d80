"""Dropout of bias: some documents of a step have to be explained without it."""

from __future__ import annotations

from torch import Tensor


def drop(bias: Tensor, noise: Tensor, dropout: float) -> Tensor:
    """Inverted dropout: 0 where the noise is below `dropout`, else bias / (1 - dropout), so that the mean is kept."""
    return bias * (noise >= dropout).to(bias.dtype) / (1 - dropout)

"""Weights of clicks by their position, for list-wise losses that the first positions would decide alone."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from ultr.bias.position_weights import click_weights
from ultr.train.lists import Batch, TrainingLists


class ClickWeights(nn.Module):
    """Fixed weights of clicks by position, (click rate)^-power; all 1 until they are set, and with the power 0."""

    weights: Tensor

    def __init__(self, positions: int, power: float) -> None:
        super().__init__()
        self.power = power
        self.register_buffer("weights", torch.ones(positions), persistent=power > 0)

    def set(self, lists: TrainingLists) -> None:
        """Take the click rates of these lists."""
        if self.power:
            levels, *totals = lists.factor_totals()
            shown, clicked = (
                np.bincount(levels[:, 0], each, minlength=len(self.weights)).astype(np.float64) for each in totals
            )
            self.weights.copy_(torch.from_numpy(click_weights(shown, clicked, self.power)))

    def weighted(self, batch: Batch) -> Tensor:
        """The clicks with their weights, [lists, width]."""
        return batch.clicks * batch.pad(self.weights[batch.positions])

    def click_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """Logits of the clicks as they are, of logits that fit the weighted ones, [lists, width]."""
        # The loss is least where softmax(logits) shares out w c, so that c is shared out by softmax(logits - log w).
        return logits - batch.pad(self.weights[batch.positions].log())

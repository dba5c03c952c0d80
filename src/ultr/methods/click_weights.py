"""Weights of clicks in list-wise losses: by their position, and by how many users were still there."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from ultr import checks
from ultr.arrays import Doubles
from ultr.bias.below_clicks import FEWEST_LEFT
from ultr.bias.position_weights import click_weights
from ultr.bias.readers_left import ReadersLeft
from ultr.bias.stopping import Stopping
from ultr.data import ragged
from ultr.errors import OptionError
from ultr.train.lists import Batch, TrainingLists

AUTO = "auto"
"""The value of an option that training chooses, such as the share of users who stop after a click."""


def check_stopping(asked: float | str) -> None:
    """Raise an `OptionError` unless this is a share, or to be estimated."""
    if asked != AUTO and (isinstance(asked, str) or checks.not_negative("stopping", asked) > 1):
        raise OptionError(f"stopping must be from 0 to 1 or {AUTO!r}, got {asked!r}")


def stopping_in(lists: TrainingLists, asked: float | str) -> float:
    """The share of users who stop after a click: as asked for, or what these lists leave no doubt about."""
    if isinstance(asked, float | int):
        return float(asked)
    found = Stopping.of(lists.log)
    return 0.0 if found is None else found.known


class ClickWeights(nn.Module):
    """Fixed weights of clicks, (click rate of the position)^-power / (share of users still there).

    All are 1 until they are set, and with the power 0 where no user stops after a click.
    """

    weights: Tensor
    """The mean weight of a click at each position."""
    among_readers: Tensor
    """The weight at each position of a click that all users could have made."""
    readers: ReadersLeft | None
    """The share of users left at each document; None where none stops after a click."""

    def __init__(self, positions: int, power: float, *, stopping: float | str = 0.0) -> None:
        super().__init__()
        self.power, self.readers = power, None
        self.register_buffer("weights", torch.ones(positions), persistent=power > 0 or stopping != 0)
        self.register_buffer("among_readers", torch.ones(positions), persistent=False)

    def set(self, lists: TrainingLists, *, stopping: float = 0.0) -> None:
        """Take the click rates of these lists, and the share of users who stop after a click."""
        self.readers = None
        if stopping:
            self.readers = ReadersLeft.fit(
                stopping,
                lists.factors[0],
                lists.offsets,
                lists.clicks,
                lists.impressions,
                position_count=len(self.weights),
            )
        self.weights.fill_(1.0)
        self.among_readers.fill_(1.0)
        if self.power or self.readers is not None:
            levels, *totals = lists.factor_totals()
            shown, clicked = (
                np.bincount(levels[:, 0], each, minlength=len(self.weights)).astype(np.float64) for each in totals
            )
            counted = clicked if self.readers is None else self._counted(lists, self.readers)
            by_position = click_weights(shown, counted, self.power) * (clicked.sum() / counted.sum())
            self.among_readers.copy_(torch.from_numpy(by_position))
            mean = np.divide(counted, clicked, out=np.ones_like(counted), where=clicked > 0)
            self.weights.copy_(torch.from_numpy(by_position * mean))

    @property
    def stopping(self) -> float:
        """The share of users who stop after a click."""
        return 0.0 if self.readers is None else self.readers.share

    def _counted(self, lists: TrainingLists, readers: ReadersLeft) -> Doubles:
        """The clicks at each position, each by how many users were still there."""
        counted = np.zeros(len(self.weights))
        for span in ragged.spans(lists.offsets):
            positions, clicks = lists.factors[0][span.rows], lists.clicks[span.rows]
            left = readers.at(positions, ragged.from_lengths(span.lengths), clicks, lists.impressions[span.lists])
            counted += np.bincount(positions, clicks / left, minlength=len(self.weights))
        return counted

    def weighted(self, batch: Batch) -> Tensor:
        """The clicks with their weights, [lists, width]."""
        if self.readers is None:
            return batch.clicks * batch.pad(self.weights[batch.positions])
        assert batch.left is not None, "the stage did not ask for the users who are left"
        # Padding has nobody left, and no click.
        return batch.clicks * batch.pad(self.among_readers[batch.positions]) / batch.left.clamp(min=FEWEST_LEFT)

    def click_logits(self, logits: Tensor, batch: Batch) -> Tensor:
        """Logits of the clicks as they are, of logits that fit the weighted ones, [lists, width].

        What is clicked above is not asked for here, as it would give clicks away: weights are means by position.
        """
        # The loss is least where softmax(logits) shares out w c, so that c is shared out by softmax(logits - log w).
        return logits - batch.pad(self.weights[batch.positions].log())

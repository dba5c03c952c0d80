"""Lists to train on, and the batches made of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ultr.arrays import Floats, Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.train.inputs import Inputs


@dataclass(frozen=True)
class Batch:
    """Some lists, their documents flat and their clicks padded with a mask."""

    features: Tensor
    """[documents, features], network inputs without padding."""
    factors: Tensor
    """int [documents, factors], the level of each bias factor."""
    clicks: Tensor
    """[lists, width], clicks an impression."""
    mask: Tensor
    """bool [lists, width], True = a real document; in the order of `features`."""

    def pad(self, values: Tensor) -> Tensor:
        """[documents, ...] -> [lists, width, ...], zero where there is no document."""
        return pad(values, self.mask)


def pad(values: Tensor, mask: Tensor) -> Tensor:
    """Flat values of documents as padded lists, in the order of the mask; its gradient sums nothing."""
    trailing = values.shape[1:]
    if mask.numel() == len(values):
        return values.view(*mask.shape, *trailing)
    where = mask.view(*mask.shape, *([1] * len(trailing))).expand(*mask.shape, *trailing)
    return values.new_zeros(*mask.shape, *trailing).masked_scatter(where, values)


@dataclass(frozen=True, eq=False)
class TrainingLists:
    """Lists of documents with their clicks an impression and their weight in the log."""

    inputs: Inputs
    documents: Integers
    offsets: Integers
    factors: Integers
    """int64 [shown documents, factors]."""
    clicks: Floats
    """float32 [shown documents], clicks an impression (or what a method learns from in their place)."""
    weights: Integers
    """[lists], impressions."""

    @classmethod
    def of_log(cls, log: ClickLog, inputs: Inputs) -> TrainingLists:
        """The lists of a click log, whose features are the inputs."""
        rates = log.clicks / np.repeat(log.impressions, log.lengths)
        factors = np.stack([factor.values for factor in log.factors], axis=1).astype(np.int64)
        return cls(
            inputs=inputs,
            documents=log.documents.astype(np.int64),
            offsets=log.offsets.astype(np.int64),
            factors=factors,
            clicks=rates.astype(np.float32),
            weights=log.impressions.astype(np.int64),
        )

    @classmethod
    def of_judged(cls, judged: JudgedLists, targets: Floats, inputs: Inputs) -> TrainingLists:
        """All candidates of judged lists, with `targets` in the place of clicks and no bias factors."""
        return cls(
            inputs=inputs,
            documents=np.arange(judged.documents),
            offsets=judged.offsets,
            factors=np.empty((judged.documents, 0), dtype=np.int64),
            clicks=targets,
            weights=np.ones(judged.queries, dtype=np.int64),
        )

    @property
    def lists(self) -> int:
        """The number of lists."""
        return len(self.offsets) - 1

    def batch(self, lists: Integers, *, sessions: np.random.Generator | None = None) -> Batch:
        """These lists as a batch; with `sessions`, one sampled impression of each in place of its click rates."""
        rows = ragged.rows_of(lists, self.offsets)
        lengths = np.diff(self.offsets)[lists]
        offsets, width = ragged.from_lengths(lengths), int(lengths.max(initial=1))
        clicks = self.clicks[rows]
        if sessions is not None:
            clicks = (sessions.random(len(clicks), dtype=np.float32) < clicks).astype(np.float32)
        return Batch(
            features=self.inputs.gather(torch.from_numpy(self.documents[rows])),
            factors=torch.from_numpy(self.factors[rows]),
            clicks=torch.from_numpy(ragged.pad(clicks, offsets, width=width)),
            mask=torch.from_numpy(ragged.mask(offsets, width=width)),
        )

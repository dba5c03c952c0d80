"""Lists to train on, and the batches made of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ultr.arrays import Floats, Integers, Mask
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
    pairs: Tensor | None = None
    """[lists, width, width], the share of impressions that clicked document i and not document j."""

    def select(self, lists: Integers) -> Batch:
        """Only these lists, in ascending order."""
        chosen = torch.zeros(len(self.mask), dtype=torch.bool)
        chosen[torch.from_numpy(lists)] = True
        documents = (self.mask & chosen.unsqueeze(1))[self.mask]
        return Batch(
            features=self.features[documents],
            factors=self.factors[documents],
            clicks=self.clicks[chosen],
            mask=self.mask[chosen],
            pairs=None if self.pairs is None else self.pairs[chosen],
        )

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
    pairs: Floats | None = None
    """float32 [ordered pairs], a square for each list: the share of impressions that clicked i and not j."""

    @classmethod
    def of_log(cls, log: ClickLog, inputs: Inputs, *, pairs: bool = False) -> TrainingLists:
        """The lists of a click log, whose features are the inputs; with `pairs`, their pairs if the log counts them."""
        rates = log.clicks / np.repeat(log.impressions, log.lengths)
        factors = np.stack([factor.values for factor in log.factors], axis=1).astype(np.int64)
        return cls(
            inputs=inputs,
            documents=log.documents.astype(np.int64),
            offsets=log.offsets.astype(np.int64),
            factors=factors,
            clicks=rates.astype(np.float32),
            weights=log.impressions.astype(np.int64),
            pairs=_ordered_pairs(log, log.pair_clicks) if pairs and log.pair_clicks is not None else None,
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
        """These lists as a batch; with `sessions`, one sampled impression of each in place of its click rates.

        Each document, and each pair of them, is then sampled on its own: losses are linear in the clicks and in the
        pairs, so their mean does not depend on what was clicked together.
        """
        rows = ragged.rows_of(lists, self.offsets)
        lengths = np.diff(self.offsets)[lists]
        offsets, width = ragged.from_lengths(lengths), int(lengths.max(initial=1))
        clicks = self.clicks[rows]
        if sessions is not None:
            clicks = _happens(clicks, sessions)
        mask = ragged.mask(offsets, width=width)
        return Batch(
            features=self.inputs.gather(torch.from_numpy(self.documents[rows])),
            factors=torch.from_numpy(self.factors[rows]),
            clicks=torch.from_numpy(ragged.pad(clicks, offsets, width=width)),
            mask=torch.from_numpy(mask),
            pairs=None if self.pairs is None else self._pad_pairs(self.pairs, lists, mask, sessions),
        )

    def _pad_pairs(self, pairs: Floats, lists: Integers, mask: Mask, sessions: np.random.Generator | None) -> Tensor:
        shares = pairs[ragged.rows_of(lists, ragged.from_lengths(np.diff(self.offsets) ** 2))]
        padded = np.zeros((*mask.shape, mask.shape[1]), dtype=np.float32)
        padded[mask[:, :, None] & mask[:, None, :]] = shares if sessions is None else _happens(shares, sessions)
        return torch.from_numpy(padded)


def _happens(shares: Floats, random: np.random.Generator) -> Floats:
    """1 where a coin with this share of heads shows one, else 0."""
    return (random.random(len(shares), dtype=np.float32) < shares).astype(np.float32)


def _ordered_pairs(log: ClickLog, both: Integers) -> Floats:
    """For each list its square of documents, row by row: the share of impressions that clicked i and not j."""
    widths = np.repeat(log.lengths, log.lengths)
    row_starts = ragged.from_lengths(widths)
    columns = np.arange(len(log.documents)) - np.repeat(log.offsets[:-1], log.lengths)
    impressions = np.repeat(log.impressions, np.diff(ragged.pair_offsets(log.offsets)))
    upper, lower = ragged.pair_members(log.offsets)
    shares = np.zeros(row_starts[-1], dtype=np.float32)
    for clicked, other in ((upper, lower), (lower, upper)):
        shares[row_starts[clicked] + columns[other]] = (log.clicks[clicked] - both) / impressions
    return shares

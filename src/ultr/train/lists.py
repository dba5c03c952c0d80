"""Lists to train on, and the batches made of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ultr.arrays import Doubles, Floats, Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.combinations import combinations
from ultr.data.judged import JudgedLists
from ultr.data.totals import totals
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

    def pad(self, values: Tensor) -> Tensor:
        """[documents, ...] -> [lists, width, ...], zero where there is no document."""
        return pad(values, self.mask)

    def sum_by_position(self, positions: int, *values: Tensor) -> Tensor:
        """Values of the documents, each [documents], summed at each position, [values, positions]."""
        where = self.factors[:, 0]
        sums = [torch.bincount(where, each.double(), minlength=positions) for each in values]
        return torch.stack(sums).double()


def pad(values: Tensor, mask: Tensor) -> Tensor:
    """Flat values of documents as padded lists, in the order of the mask; its gradient sums nothing."""
    trailing = values.shape[1:]
    if mask.numel() == len(values):
        return values.view(*mask.shape, *trailing)
    where = mask.view(*mask.shape, *([1] * len(trailing))).expand(*mask.shape, *trailing)
    return values.new_zeros(*mask.shape, *trailing).masked_scatter(where, values)


@dataclass(frozen=True, eq=False)
class TrainingLists:
    """Lists of documents with their clicks and their weight in the log.

    The arrays may be memory-mapped files: nothing is read of them but the lists that are asked for.
    """

    inputs: Inputs
    documents: Integers
    offsets: Integers
    factors: tuple[Integers, ...]
    """For each bias factor its levels, [shown documents]."""
    clicks: Integers | Floats
    """[shown documents], over all impressions (or what a method learns from in their place)."""
    weights: Integers
    """[lists], impressions."""
    pairs: Integers | None = None
    """[pairs], the impressions that clicked both; see `ClickLog.pair_clicks`."""

    @classmethod
    def of_log(cls, log: ClickLog, inputs: Inputs, *, pairs: bool = False) -> TrainingLists:
        """The lists of a click log, whose features are the inputs; with `pairs`, their pairs if the log counts them."""
        return cls(
            inputs=inputs,
            documents=log.documents,
            offsets=log.offsets,
            factors=tuple(factor.values for factor in log.factors),
            clicks=log.clicks,
            weights=log.impressions,
            pairs=log.pair_clicks if pairs else None,
        )

    @classmethod
    def of_judged(cls, judged: JudgedLists, targets: Floats, inputs: Inputs) -> TrainingLists:
        """All candidates of judged lists, with `targets` in the place of clicks and no bias factors."""
        return cls(
            inputs=inputs,
            documents=np.arange(judged.documents),
            offsets=judged.offsets,
            factors=(),
            clicks=targets,
            weights=np.ones(judged.queries, dtype=np.int64),
        )

    @property
    def lists(self) -> int:
        """The number of lists."""
        return len(self.offsets) - 1

    def steps_a_pass(self, batch_size: int) -> float:
        """In how many batches there are as many documents as in all; one that is shown in many lists counts once."""
        known = np.zeros(len(self.inputs), dtype=bool)
        for part in ragged.slices(len(self.documents)):
            known[self.documents[part]] = True
        return int(known.sum()) / max(len(self.documents), 1) * self.lists / batch_size

    def batch(
        self, lists: Integers, *, share: Integers | None = None, sessions: np.random.Generator | None = None
    ) -> Batch:
        """These lists as a batch, or a share of them; with `sessions`, one sampled impression of each in place of its
        click rates, the same one whatever the share.

        Each document, and each pair of them, is then sampled on its own: losses are linear in the clicks and in the
        pairs, so their mean does not depend on what was clicked together.
        """
        share = np.arange(len(lists)) if share is None else share
        drawn = self.offsets[1:][lists] - self.offsets[:-1][lists]
        lists, lengths = lists[share], drawn[share]
        rows = ragged.rows_of(lists, self.offsets)
        offsets, width = ragged.from_lengths(lengths), int(lengths.max(initial=1))
        clicks = (self.clicks[rows] / np.repeat(self.weights[lists], lengths)).astype(np.float32)
        if sessions is not None:
            clicks = (_coins(drawn, share, sessions) < clicks).astype(np.float32)
        factors = np.empty((len(rows), len(self.factors)), dtype=np.int64)
        for number, levels in enumerate(self.factors):
            factors[:, number] = levels[rows]
        mask = ragged.mask(offsets, width=width)
        pairs = None
        if self.pairs is not None:
            pairs = self.pair_shares(lists)
            if sessions is not None:
                inside = mask[:, :, None] & mask[:, None, :]
                pairs[inside] = _coins(drawn**2, share, sessions) < pairs[inside]
        return Batch(
            features=self.inputs.gather(torch.from_numpy(self.documents[rows].astype(np.int64))),
            factors=torch.from_numpy(factors),
            clicks=torch.from_numpy(ragged.pad(clicks, offsets, width=width)),
            mask=torch.from_numpy(mask),
            pairs=None if pairs is None else torch.from_numpy(pairs),
        )

    def pair_shares(self, lists: Integers) -> Floats:
        """The share of impressions that clicked document i and not document j, [lists, width, width]."""
        assert self.pairs is not None
        lengths = self.offsets[1:][lists] - self.offsets[:-1][lists]
        offsets, width = ragged.from_lengths(lengths), int(lengths.max(initial=1))
        clicks = self.clicks[ragged.rows_of(lists, self.offsets)]
        both = self.pairs[ragged.rows_of(lists, self._pair_offsets)]
        impressions = np.repeat(self.weights[lists], np.diff(ragged.pair_offsets(offsets)))
        numbers, columns = ragged.list_numbers(offsets), ragged.ranks(offsets)
        upper, lower = ragged.pair_members(offsets)
        shares = np.zeros((len(lists), width, width), dtype=np.float32)
        for clicked, other in ((upper, lower), (lower, upper)):
            shares[numbers[clicked], columns[clicked], columns[other]] = (clicks[clicked] - both) / impressions
        return shares

    @cached_property
    def _pair_offsets(self) -> Integers:
        return ragged.pair_offsets(self.offsets)

    def factor_totals(self) -> tuple[Integers, Doubles, Doubles]:
        """The combinations of levels that occur, [combinations, factors], and the impressions and clicks of each."""
        levels, numbers = combinations(self.factors)
        return levels, *totals(numbers, self.offsets, self.weights, self.clicks, count=len(levels))


def _coins(sizes: Integers, share: Integers, random: np.random.Generator) -> Floats:
    """A number between 0 and 1 for each of the things in the lists of a share, where all lists have so many of them."""
    return random.random(int(sizes.sum()), dtype=np.float32)[ragged.rows_of(share, ragged.from_lengths(sizes))]

"""Lists to train on, and the batches made of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ultr.arrays import Doubles, Floats, Integers, Mask
from ultr.bias.readers_left import ReadersLeft
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.combinations import combinations
from ultr.relevance.inputs import Documents, Inputs


@dataclass(frozen=True)
class Batch:
    """Some lists, their documents flat and their clicks padded with a mask."""

    documents: Documents
    """Without padding, one list after the other."""
    factors: Tensor
    """int [documents, factors], the level of each bias factor."""
    clicks: Tensor
    """[lists, width], clicks per impression."""
    mask: Tensor
    """bool [lists, width], True = a real document; in the order of `documents`."""
    values: Tensor | None = None
    """[lists, width], value per impression; None where clicks are all that is learned from."""
    pairs: Tensor | None = None
    """[lists, width, width], the share of impressions that clicked document i and not document j."""
    left: Tensor | None = None
    """[lists, width], the share of users who are still there at each document; None where no stage asks for it."""
    noise: Tensor | None = None
    """[documents, numbers], uniform random numbers in [0, 1), as many per document as the stage asks for."""
    weights: Tensor | None = None
    """[lists], what each list counts for; None: all the same, for they were drawn in proportion to impressions."""

    @property
    def positions(self) -> Tensor:
        """Int [documents], the position of each document from 0."""
        return self.factors[:, 0]

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device; documents are gathered there by their model."""
        if device.type == "cpu":
            return self
        moved: dict[str, Any] = {
            name: value.to(device) if isinstance(value, Tensor) else value for name, value in vars(self).items()
        }
        return Batch(**moved)

    def clicked(self) -> Batch:
        """The same batch without the lists that have no click."""
        lists = (self.clicks * self.mask).any(dim=-1)
        documents = lists[:, None].expand(self.mask.shape)[self.mask]

        def of(values: Tensor | None, kept: Tensor) -> Tensor | None:
            return None if values is None else values[kept]

        return Batch(
            documents=Documents(self.documents.inputs, self.documents.rows[documents]),
            factors=self.factors[documents],
            clicks=self.clicks[lists],
            mask=self.mask[lists],
            values=of(self.values, lists),
            pairs=of(self.pairs, lists),
            left=of(self.left, lists),
            noise=of(self.noise, documents),
            weights=of(self.weights, lists),
        )

    def pad(self, values: Tensor) -> Tensor:
        """[documents, ...] -> [lists, width, ...], zero where there is no document."""
        return pad(values, self.mask)

    def sum_by_position(self, positions: int, *values: Tensor) -> Tensor:
        """Values of the documents, each [documents], summed at each position, [values, positions]."""
        of_document = (
            None if self.weights is None else self.weights[:, None].expand(self.mask.shape)[self.mask].double()
        )
        weighted = (each.double() if of_document is None else each.double() * of_document for each in values)
        sums = [torch.bincount(self.positions, each, minlength=positions) for each in weighted]
        return torch.stack(sums).double()


def pad(values: Tensor, mask: Tensor) -> Tensor:
    """Flat values of documents as padded lists, in the order of the mask; its gradient sums nothing."""
    trailing = values.shape[1:]
    if mask.numel() == len(values):
        return values.view(*mask.shape, *trailing)
    where = mask.view(*mask.shape, *([1] * len(trailing))).expand(*mask.shape, *trailing)
    return values.new_zeros(*mask.shape, *trailing).masked_scatter(where, values)


@dataclass(frozen=True, eq=False)
class WeightedSignal:
    """A signal of a log, and how much one of it counts."""

    weight: float
    totals: Integers
    """[shown documents], over all impressions."""


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
    impressions: Integers
    """[lists], how often each list was shown: its weight in training."""
    pair_clicks: Integers | None = None
    """[pairs], the impressions that clicked both; see `ClickLog.pair_clicks`."""
    session_pairs: bool = False
    """True: pairs are those of the sampled sessions, in the place of `pair_clicks`."""
    source: ClickLog | None = None
    """The log that they are all lists of, if they are of one."""
    signals: tuple[WeightedSignal, ...] = ()
    """The signals that make up the value; empty where clicks are all that is learned from."""

    @classmethod
    def of_log(cls, log: ClickLog, inputs: Inputs, *, pairs: bool = False) -> TrainingLists:
        """The lists of a click log, whose features are the inputs; with `pairs`, their pairs if the log counts them."""
        return cls(
            inputs=inputs,
            documents=log.documents,
            offsets=log.offsets,
            factors=tuple(factor.values for factor in log.factors),
            clicks=log.clicks,
            impressions=log.impressions,
            pair_clicks=log.pair_clicks if pairs else None,
            source=log,
        )

    def with_value(self, weights: Mapping[str, float]) -> TrainingLists:
        """The same lists with a value: the sum of some signals of their log, each with its weight.

        The unit is such that all lists together have as much value as clicks, so that what suits clicks in learning
        rates, gradients and leaves suits values.
        """
        totals = {name: self.log.signal(name) for name in weights}
        value = sum(weights[name] * float(total.sum()) for name, total in totals.items())
        unit = float(self.log.clicks.sum()) / value
        return replace(self, signals=tuple(WeightedSignal(weights[name] * unit, totals[name]) for name in weights))

    @property
    def log(self) -> ClickLog:
        """The log, for what a method takes from it before training."""
        assert self.source is not None, "these lists are not of a log"
        return self.source

    @property
    def lists(self) -> int:
        """The number of lists."""
        return len(self.offsets) - 1

    @property
    def clicked(self) -> Mask:
        """True for the lists that have a click, [lists]."""
        found = np.zeros(self.lists, dtype=bool)
        for part in ragged.slices(len(self.documents)):
            places = np.flatnonzero(self.clicks[part]) + part.start
            found[np.searchsorted(self.offsets, places, side="right") - 1] = True
        return found

    def steps_per_epoch(self, batch_size: int | None) -> float:
        """Batches that have as many documents as there are in all; one that is shown in many lists counts once."""
        known = np.zeros(len(self.inputs), dtype=bool)
        for part in ragged.slices(len(self.documents)):
            known[self.documents[part]] = True
        return int(known.sum()) / max(len(self.documents), 1) * self.lists / (batch_size or self.lists)

    def batch(
        self,
        lists: Integers,
        *,
        share: Integers | None = None,
        sessions: bool = False,
        readers: ReadersLeft | None = None,
        noise: int = 0,
        random: Callable[[str], np.random.Generator] | None = None,
    ) -> Batch:
        """These lists as a batch, or a share of them.

        With `sessions`, one sampled impression of each list in place of its click rates. Each document, and each pair
        of them, is then sampled on its own: losses are linear in the clicks and in the pairs, so their mean does not
        depend on what was clicked together. Values stay rates, as do those by which `readers` say who is left. With
        `noise`, so many random numbers per document. `random` gives the stream of random numbers for a purpose; what a
        list gets of it is the same whatever the share.
        """
        assert random is not None or not (sessions or noise), "random numbers need a stream"
        share = np.arange(len(lists)) if share is None else share
        drawn = self.offsets[1:][lists] - self.offsets[:-1][lists]
        lists, lengths = lists[share], drawn[share]
        rows = ragged.rows_of(lists, self.offsets)
        offsets, width = ragged.from_lengths(lengths), int(lengths.max(initial=1))
        mask = ragged.mask(offsets, width=width)
        impressions = np.repeat(self.impressions[lists], lengths)
        rates = self.clicks[rows] / impressions
        left = None
        if readers is not None:
            left = readers.at(self.factors[0][rows], offsets, self.clicks[rows], self.impressions[lists])
        clicks = rates.astype(np.float32)
        values = (sum(each.weight * each.totals[rows] for each in self.signals) / impressions).astype(np.float32)
        pairs = None if self.pair_clicks is None else self.pair_shares(lists)
        if sessions and random is not None:
            stream = random("sessions")
            clicks = (_uniform(drawn, share, stream) < clicks).astype(np.float32)
            if pairs is not None:
                inside = mask[:, :, None] & mask[:, None, :]
                pairs[inside] = _uniform(drawn**2, share, stream) < pairs[inside]
            elif self.session_pairs:
                clicked = ragged.pad(clicks, offsets, width=width)
                pairs = clicked[:, :, None] * (mask - clicked)[:, None, :]
        numbers = None
        if noise and random is not None:
            numbers = _uniform(drawn * noise, share, random("noise")).reshape(-1, noise)
        factors = np.empty((len(rows), len(self.factors)), dtype=np.int64)
        for number, levels in enumerate(self.factors):
            factors[:, number] = levels[rows]
        return Batch(
            documents=Documents(self.inputs, torch.from_numpy(self.documents[rows].astype(np.int64))),
            factors=torch.from_numpy(factors),
            clicks=torch.from_numpy(ragged.pad(clicks, offsets, width=width)),
            mask=torch.from_numpy(mask),
            values=torch.from_numpy(ragged.pad(values, offsets, width=width)) if self.signals else None,
            pairs=None if pairs is None else torch.from_numpy(pairs),
            left=None if left is None else torch.from_numpy(ragged.pad(left.astype(np.float32), offsets, width=width)),
            noise=None if numbers is None else torch.from_numpy(numbers),
        )

    def pair_shares(self, lists: Integers) -> Floats:
        """The share of impressions that clicked document i and not document j, [lists, width, width]."""
        assert self.pair_clicks is not None
        lengths = self.offsets[1:][lists] - self.offsets[:-1][lists]
        offsets, width = ragged.from_lengths(lengths), int(lengths.max(initial=1))
        clicks = self.clicks[ragged.rows_of(lists, self.offsets)]
        both = self.pair_clicks[ragged.rows_of(lists, self._pair_offsets)]
        impressions = np.repeat(self.impressions[lists], np.diff(ragged.pair_offsets(offsets)))
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
        return levels, *self.log.totals(numbers, count=len(levels))


def _uniform(sizes: Integers, share: Integers, random: np.random.Generator) -> Floats:
    """Uniform numbers for the lists of a share, where all lists of the batch have so many of them."""
    return random.random(int(sizes.sum()), dtype=np.float32)[ragged.rows_of(share, ragged.from_lengths(sizes))]

"""Shown lists as pages: under bias factors beside the position, and with the examination that these leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Integers
from ultr.clicks.position_based import PositionBased
from ultr.data import ragged
from ultr.data.bias_factor import BiasFactor
from ultr.seeding import generator
from ultr.simulation.causes import Cause
from ultr.simulation.shown import ShownLists


@dataclass(frozen=True, eq=False)
class Pages:
    """Shown lists with their impressions, bias factors and examination."""

    shown: ShownLists
    impressions: Integers
    """int64 [lists]."""
    factors: tuple[BiasFactor, ...]
    """Those beside the position."""
    examination: Doubles
    """[shown documents], the exact probability that a document is looked at."""

    def probabilities(self, model: PositionBased, labels: Integers, *, max_label: int) -> Doubles:
        """The exact click probability of each shown document, whose grades are `labels`."""
        taken: Doubles = model.taken(max_label)[labels, self.shown.positions - 1]
        return self.examination * taken

    def counts(
        self, model: PositionBased, labels: Integers, generator: np.random.Generator, *, max_label: int
    ) -> Integers:
        """The clicks of all impressions: one binomial number for each shown document."""
        rates = self.probabilities(model, labels, max_label=max_label)
        return generator.binomial(np.repeat(self.impressions, np.diff(self.shown.offsets)), rates)


def lay_out(
    shown: ShownLists, impressions: Integers, model: PositionBased, causes: Sequence[Cause], *, seed: int = 0
) -> Pages:
    """The pages on which lists are shown so often, by all causes together.

    Impressions of a list are shared out at random among kinds of pages, each of which is a list of its own. All causes
    act on examination at once: with the curve of the position, or those that take its place multiplied,

        examination = curve ** (product of steepness) * (product of attention).
    """
    lists, often = np.arange(len(shown.queries)), np.asarray(impressions, dtype=np.int64)
    kinds: list[Integers] = []
    for cause in causes:
        parts = generator(seed, f"kinds of pages by {cause.name}").multinomial(often, cause.shares)
        chosen, kind = np.nonzero(parts)
        lists, often = lists[chosen], parts[chosen, kind]
        kinds = [*(each[chosen] for each in kinds), kind]
    pages = ShownLists(
        documents=shown.documents[ragged.rows_of(lists, shown.offsets)],
        offsets=ragged.from_lengths(np.diff(shown.offsets)[lists]),
        queries=shown.queries[lists],
    )
    effects = [
        cause.effect(pages, each, generator(seed, f"{cause.name} of pages"))
        for cause, each in zip(causes, kinds, strict=True)
    ]
    curves = [effect.curve for effect in effects if effect.curve is not None]
    curve = np.prod(curves, axis=0) if curves else np.array(model.examination)[pages.positions - 1]
    steepness, attention = np.ones(len(curve)), np.ones(len(curve))
    for effect in effects:
        steepness, attention = steepness * effect.steepness, attention * effect.attention
    factors = tuple(factor for effect in effects for factor in effect.factors)
    return Pages(pages, often, factors, curve**steepness * attention)

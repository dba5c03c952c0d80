"""Shown documents, and what was clicked above them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ultr.arrays import Doubles, Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.combinations import combinations

FEWEST_LEFT = 0.01
"""Where fewer users than this may be left, clicks tell nothing, and those that there are count no more than so."""
FULL, FULL_LISTS, TWICE = 0.9, 0.01, 0.001
"""Nobody clicks twice where a share FULL_LISTS of the lists has FULL clicks per impression or more, and at most a share
TWICE of all clicks are more than one per impression of their list. With a share s who stop, there may be 1 / s."""
RARE = 0.05
"""Positions under other bias factors have click rates of their own if these have this share of the shown documents."""


@dataclass(frozen=True, eq=False)
class BelowClicks:
    """Shown documents of some lists with the clicks above them, and how many clicks an impression of each list has."""

    document: Integers
    query: Integers
    place: Integers
    """The position, numbered apart under each frequent combination of other bias factors."""
    shown: Doubles
    """Impressions."""
    clicked: Doubles
    above: Doubles
    """Clicks above, per impression."""
    per_impression: Doubles
    """[lists]."""
    impressions: Integers
    """[lists]."""

    @classmethod
    def of(cls, log: ClickLog, lists: Integers) -> BelowClicks:
        """The rows of these lists."""
        lengths, rows = log.lengths[lists], ragged.rows_of(lists, log.offsets)
        starts = ragged.from_lengths(lengths)
        shown = np.repeat(log.impressions[lists], lengths).astype(np.float64)
        clicked = log.clicks[rows].astype(np.float64)
        return cls(
            document=log.documents[rows],
            query=np.repeat(log.queries[lists], lengths),
            place=_places(log, rows, shown),
            shown=shown,
            clicked=clicked,
            above=ragged.sums_before(clicked, starts) / shown,
            per_impression=np.add.reduceat(clicked, starts[:-1]) / log.impressions[lists],
            impressions=log.impressions[lists],
        )

    def seen(self) -> BelowClicks:
        """Only the documents that somebody may have seen."""
        kept = self.above <= 1 - FEWEST_LEFT
        names = ("document", "query", "place", "shown", "clicked", "above")
        return replace(self, **{name: getattr(self, name)[kept] for name in names})

    @property
    def once(self) -> bool:
        """True if nobody clicks twice."""
        twice = np.maximum(self.per_impression - 1, 0) @ self.impressions / self.clicked.sum()
        return bool((self.per_impression >= FULL).mean() >= FULL_LISTS and twice <= TWICE)

    def beyond(self, most: float) -> float:
        """The share of the clicks that are more than so many per impression of their list, by more than chance."""
        # Users who stop at a click with the same chance each time make a geometric number of them, or fewer.
        chance = 2 * np.sqrt(most * most / self.impressions)
        return float(np.maximum(self.per_impression - most - chance, 0) @ self.impressions / self.clicked.sum())


def _places(log: ClickLog, rows: Integers, shown: Doubles) -> Integers:
    """The position of each of these rows, numbered apart under each frequent combination of other bias factors."""
    places: Integers = log.position.values[rows].astype(np.int64)
    if len(log.factors) == 1:
        return places
    found, kinds = combinations([factor.values[rows] for factor in log.factors[1:]])
    frequent = np.bincount(kinds, shown, minlength=len(found)) >= RARE * shown.sum()
    apart: Integers = places + len(log.position.levels) * np.where(frequent, 1 + np.arange(len(found)), 0)[kinds]
    return apart

"""Documents shown at several positions, in groups: their table of clicks, and tables drawn document by document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Integers, ratio
from ultr.bias.dispersion import draw_clicks
from ultr.bias.position_based_fit import poisson_relevance, poisson_relevances
from ultr.data.cells import Cells
from ultr.errors import DataError

_AT_ONCE = 2**17
"""Clicks that are drawn before relevances are fitted to them, which is the faster the more there are."""


@dataclass(frozen=True, eq=False)
class GroupedDocuments:
    """Documents shown at several positions, each in a group, with their relevances by the position-based model."""

    cells: Cells
    groups: Integers
    """[cells], the group of the document of each."""
    relevance: Doubles
    """[documents]."""
    examination: Doubles
    """[positions]."""
    dispersion: Doubles
    """[cells], the variance of the clicks over that of independent ones at the estimated rates."""

    @classmethod
    def of(
        cls, cells: Cells, groups: Integers, *, dispersion: Doubles | float = 1.0, most_cells: int
    ) -> GroupedDocuments:
        """The documents with a group that moved and were clicked; those with the most impressions if they are many."""
        used = cells.moved()
        used = used[groups[cells.documents[used]] >= 0]
        if not len(used):
            raise DataError(
                "no clicked document of a group was shown at two positions; log some swaps, or test by labels"
            )
        if len(used) > most_cells:
            shown = np.bincount(cells.documents[used], cells.impressions[used])
            by_rank = np.argsort(-shown, kind="stable")
            sizes = np.bincount(cells.documents[used], minlength=len(shown))
            taken = np.zeros(len(shown), dtype=np.bool_)
            taken[by_rank[np.cumsum(sizes[by_rank]) <= most_cells]] = True
            used = used[taken[cells.documents[used]]]
        group = np.unique(groups[cells.documents[used]], return_inverse=True)[1]
        chosen = cells.choose(used)
        factors = np.broadcast_to(np.asarray(dispersion, dtype=np.float64), cells.documents.shape)[used]
        relevance, examination = poisson_relevance(chosen, chosen.clicks)
        return cls(chosen, group, relevance, examination, factors * _doubt(chosen, relevance, examination, factors))

    def table(self, clicks: Doubles, relevance: Doubles) -> tuple[Doubles, Doubles]:
        """Clicks and impressions by group and position, impressions by relevance over that of the group."""
        size = int(self.groups.max()) + 1, self.cells.count
        cell = self.groups * self.cells.count + self.cells.positions
        exposed = self.cells.impressions * self._relative(relevance)
        shown = np.bincount(cell, exposed, minlength=size[0] * size[1]).reshape(size).astype(np.float64)
        clicked = np.bincount(cell, clicks, minlength=size[0] * size[1]).reshape(size).astype(np.float64) * (shown > 0)
        # A rate above 1 cannot be fitted; it takes a cell with hardly any impressions.
        return clicked, np.maximum(shown, clicked)

    def draw(
        self, rates: Doubles, random: np.random.Generator, *, samples: int = 1
    ) -> Iterator[tuple[Doubles, Doubles]]:
        """Tables of clicks drawn document by document, from the rates of each group at each position."""
        chances = self._relative(self.relevance) * rates[self.groups, self.cells.positions]
        at_once = max(1, _AT_ONCE // len(chances))
        for begin in range(0, samples, at_once):
            count = min(at_once, samples - begin)
            clicks = np.concatenate(
                [draw_clicks(self.cells.impressions, chances, self.dispersion, random) for _ in range(count)]
            )
            relevances = poisson_relevances(self.cells, clicks, start=self.examination)
            yield from map(self.table, clicks, relevances)

    def _relative(self, relevance: Doubles) -> Doubles:
        """[cells], relevance over the mean of the group; 0 where the group has no click."""
        of_cell = relevance[self.cells.documents]
        mean = np.bincount(self.groups, self.cells.impressions * of_cell) / np.bincount(
            self.groups, self.cells.impressions
        )
        return ratio(of_cell, mean[self.groups])


def _doubt(cells: Cells, relevance: Doubles, examination: Doubles, factors: Doubles) -> Doubles:
    """[cells], p (1 - p) over what it is for the estimated p = r_d theta_p.

    r_d is known from few clicks, and p (1 - p) is concave: on average it is too small by theta_p^2 Var(r_d). Without
    this, clicks drawn at the estimated rates vary too little, and chance is taken for structure.
    """
    theta = examination[cells.positions]
    rates = np.clip(relevance[cells.documents] * theta, 1e-9, 1 - 1e-2)
    variance = rates * (1 - rates)
    exposed = np.bincount(cells.documents, cells.impressions * theta)
    spread = np.bincount(cells.documents, factors * cells.impressions * variance) / np.maximum(exposed, 1e-9) ** 2
    doubt: Doubles = 1 + np.minimum(theta**2 * spread[cells.documents] / variance, 1.0)
    return doubt

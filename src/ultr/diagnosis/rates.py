"""Click rates with intervals that know that the clicks on one query are alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Integers, ratio
from ultr.data import ragged
from ultr.data.bias_factor import BiasFactor
from ultr.data.click_log import ClickLog
from ultr.metrics.query_bootstrap import units_of
from ultr.pages import Table

_Z = 1.959964
"""Standard deviations around the mean that hold 95 % of a normal distribution."""


@dataclass(frozen=True, eq=False)
class Rates:
    """Clicks over impressions of some cells, with 95 % intervals."""

    impressions: Integers
    """[cells], how many documents were shown."""
    clicks: Integers
    """[cells]."""
    low: Doubles
    """[cells]; NaN where nothing was shown."""
    high: Doubles
    """[cells]; NaN where nothing was shown."""

    @property
    def values(self) -> Doubles:
        """[cells]; NaN where nothing was shown."""
        return ratio(self.clicks, self.impressions, otherwise=np.nan)

    @property
    def band(self) -> tuple[Doubles, Doubles, Doubles]:
        """The rates with the low and high ends of their intervals."""
        return self.values, self.low, self.high

    def table(self, title: str, column: str, names: Sequence[str]) -> Table:
        """A row for each cell that was shown, by its name."""
        cells = {
            name: (f"{self.impressions[i]:,}", f"{self.clicks[i]:,}", *(f"{bound[i]:.4f}" for bound in self.band))
            for i, name in enumerate(names)
            if self.impressions[i]
        }
        return Table.of_cells(title, column, cells, ("documents shown", "clicks", "rate", "low", "high"), folded=True)

    def as_json(self) -> dict[str, list[float]]:
        """The numbers of every cell."""
        columns = ("impressions", "clicks", "rate", "low", "high")
        return {
            name: values.tolist()
            for name, values in zip(columns, (self.impressions, self.clicks, *self.band), strict=True)
        }


def click_rates(log: ClickLog, cells: BiasFactor | Integers, *, count: int | None = None) -> Rates:
    """The click rate of each cell; `cells` are those of `ClickLog.totals`.

    The interval is Wilson's, with as many impressions as would give the variance that the rate has between queries:

        var = sum over queries (clicks_q - rate n_q)^2 / n^2

    Equal clicks on independent impressions give the plain interval of Wilson.
    """
    impressions, clicks = (total.astype(np.int64) for total in log.totals(cells, count=count))
    count, numbers = len(impressions), cells.values if isinstance(cells, BiasFactor) else cells
    rate = ratio(clicks, impressions)
    squares, units = np.zeros(count), np.zeros(count, dtype=np.int64)
    for cell, shown, clicked in _by_unit(log, numbers, count=count):
        # Added one after the other, so that the sum is the same however the units are shared out.
        np.add.at(squares, cell, (clicked - rate[cell] * shown) ** 2)
        units += np.bincount(cell, minlength=count)
    # One query says nothing about how queries differ: its square is 0, and its impressions are all there is to go by.
    several = units / np.maximum(units - 1, 1)
    binomial = rate * (1 - rate) * impressions
    effect = ratio(squares * several, binomial, otherwise=1.0)
    low, high = wilson(rate, impressions / np.maximum(effect, 1))
    return Rates(impressions, clicks, low, high)


def one_click_a_page(log: ClickLog) -> bool:
    """True if every page has one click, as far as a log of summed up lists tells: as many clicks as impressions."""
    if int(log.clicks.sum()) != int(log.impressions.sum()) or not log.lengths.all():
        return False
    return np.array_equal(np.add.reduceat(log.clicks, log.offsets[:-1]), log.impressions)


def _by_unit(log: ClickLog, cells: Integers, *, count: int) -> Iterator[tuple[Integers, Doubles, Doubles]]:
    """The cells of each unit with how often they were shown and clicked there; some whole units at a time."""
    units = units_of(log)
    order = np.argsort(units, kind="stable")
    rows_until = ragged.from_lengths(np.bincount(units, log.lengths))
    lists_until = ragged.from_lengths(np.bincount(units))
    for span in ragged.spans(rows_until):
        lists = order[lists_until[span.lists.start] : lists_until[span.lists.stop]]
        rows, lengths = ragged.rows_of(lists, log.offsets), log.offsets[1:][lists] - log.offsets[:-1][lists]
        keys, inverse = np.unique(np.repeat(units[lists], lengths) * count + cells[rows], return_inverse=True)
        shown = np.bincount(inverse, np.repeat(log.impressions[lists], lengths))
        yield keys % count, shown.astype(np.float64), np.bincount(inverse, log.clicks[rows]).astype(np.float64)


def wilson(rate: Doubles, impressions: Doubles) -> tuple[Doubles, Doubles]:
    """Wilson's 95 % interval of a rate; NaN where there are no impressions.

    >>> low, high = wilson(np.array([0.0, 0.5]), np.array([100.0, 100.0]))
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.0, 0.404], [0.037, 0.596])
    """
    n = np.where(impressions > 0, impressions, np.nan)
    middle = (rate + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * np.sqrt(rate * (1 - rate) / n + _Z**2 / (4 * n**2))
    return np.maximum(middle - half, 0), np.minimum(middle + half, 1)

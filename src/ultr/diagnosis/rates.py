"""Click rates with intervals that know that the clicks on one query are alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Integers
from ultr.bias.curves import FEW_QUERIES
from ultr.data.click_log import ClickLog

_Z = 1.959964
"""95 % of a normal distribution lie within so many deviations."""


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
        unknown = np.full(len(self.clicks), np.nan)
        rates: Doubles = np.divide(self.clicks, self.impressions, out=unknown, where=self.impressions > 0)
        return rates

    def as_json(self) -> dict[str, list[float]]:
        """Every cell."""
        return {
            "impressions": self.impressions.tolist(),
            "clicks": self.clicks.tolist(),
            "rate": self.values.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
        }


def units_of(log: ClickLog) -> Integers:
    """[lists], what each belongs to that can be taken to differ by chance: its query, or itself if queries are few."""
    queries = np.unique(log.queries, return_inverse=True)[1]
    return queries if log.lists and queries.max() + 1 >= FEW_QUERIES else np.arange(log.lists)


def click_rates(log: ClickLog, cells: Integers, *, count: int) -> Rates:
    """The click rate of each of `count` cells, from the cell of each shown document.

    The interval is Wilson's, with as many impressions as would give the variance that the rate has between queries:

        var = sum over queries (clicks_q - rate n_q)^2 / n^2

    Equal clicks on independent impressions give the plain interval of Wilson.
    """
    shown = np.repeat(log.impressions, log.lengths)
    impressions = np.bincount(cells, shown, minlength=count).astype(np.int64)
    clicks = np.bincount(cells, log.clicks, minlength=count).astype(np.int64)
    rate = np.divide(clicks, impressions, out=np.zeros(count), where=impressions > 0)
    keys, inverse = np.unique(np.repeat(units_of(log), log.lengths) * count + cells, return_inverse=True)
    cell = keys % count
    left = np.bincount(inverse, log.clicks) - rate[cell] * np.bincount(inverse, shown)
    squares, units = np.bincount(cell, left**2, minlength=count), np.bincount(cell, minlength=count)
    # One query says nothing about how queries differ; then its impressions are all there is to go by.
    several = units / np.maximum(units - 1, 1)
    binomial = rate * (1 - rate) * impressions
    effect = np.divide(squares * several, binomial, out=np.ones(count), where=(binomial > 0) & (units > 1))
    low, high = wilson(rate, impressions / np.maximum(effect, 1))
    return Rates(impressions, clicks, low, high)


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

"""Held-out clicks that settings of one method are compared by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Integers
from ultr.data.click_log import ClickLog
from ultr.data.gathering import spread
from ultr.metrics import list_log_likelihoods
from ultr.metrics.query_bootstrap import units_of

FEWEST_QUERIES = 20
"""With fewer held-out queries, lists are compared, since noise cannot be told from so few."""


@dataclass(frozen=True, eq=False)
class HeldOutClicks:
    """A held-out log, and the queries that differ by chance, or its lists where queries are few."""

    log: ClickLog
    units: Integers
    """[shown documents], the query or list that each belongs to."""
    clicks: Doubles
    """[units]."""

    @classmethod
    def of(cls, log: ClickLog) -> HeldOutClicks:
        """Those of a log."""
        groups = units_of(log, fewest=FEWEST_QUERIES)
        return cls(log, spread(groups, log.offsets), log.totals(groups=groups).clicks)

    @property
    def enough(self) -> bool:
        """True if a lead can be told from chance: at least two queries or lists have a click."""
        return int(np.count_nonzero(self.clicks)) >= 2

    def log_likelihoods(self, shares: Callable[[ClickLog], Doubles]) -> Doubles:
        """The log-likelihood of the clicks of each unit, [units], by how a model shares out those of each list."""
        found = list_log_likelihoods(shares(self.log), self.log.clicks)
        return np.bincount(self.units, found, minlength=len(self.clicks)).astype(np.float64)

    def mean(self, log_likelihoods: Doubles) -> float:
        """The mean log-likelihood of a click."""
        return float(log_likelihoods.sum() / self.clicks.sum())

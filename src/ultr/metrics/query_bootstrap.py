"""Resamples of the queries of a log, for the interval of a number that all of them decide together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Integers
from ultr.data.click_log import ClickLog
from ultr.metrics.student import percentile_tail

GROUPS = 500
"""Queries are drawn in at most this many random groups, so that a resample costs the same for any log."""
FEW_QUERIES = 30
"""Fewer queries say little about how others would differ: lists are resampled instead, or nothing is concluded."""


@dataclass(frozen=True, eq=False)
class QueryBootstrap:
    """Random groups of queries, and how often each resample draws each group.

    A number that follows from sums over queries needs the sums of the groups only: those of a resample are
    `times @ sums`. Numbers with one value for each query have `ultr.metrics.bootstrap_ratio`, which needs no groups.
    """

    groups: Integers
    """[queries], the group of each."""
    times: Integers
    """[samples, groups], how often each was drawn; as many as there are groups in all."""

    @classmethod
    def draw(cls, queries: int, *, samples: int, random: np.random.Generator) -> QueryBootstrap:
        """Some resamples of so many queries."""
        count = min(GROUPS, queries)
        groups = random.permutation(np.arange(queries) % count)
        return cls(groups, random.multinomial(count, np.full(count, 1 / count), size=samples))

    @property
    def count(self) -> int:
        """The number of groups."""
        return int(self.times.shape[1])


def query_numbers(log: ClickLog) -> Integers:
    """[lists], the query of each, those that occur numbered from 0."""
    occurs = np.zeros(len(log.query_ids), dtype=np.bool_)
    occurs[log.queries] = True
    return (np.cumsum(occurs) - 1)[log.queries]


def units_of(log: ClickLog, *, fewest: int = FEW_QUERIES) -> Integers:
    """[lists], what each belongs to that can be taken to differ by chance: its query, or itself if queries are few."""
    numbers = query_numbers(log)
    return numbers if numbers.max(initial=-1) + 1 >= fewest else np.arange(log.lists)


def percentiles(draws: Doubles, level: float, units: int) -> tuple[Doubles, Doubles]:
    """The ends of the interval of a number from its draws, [draws, ...], of so many units; NaN is left out."""
    tail = percentile_tail(level, units)
    low, high = np.nanquantile(draws, [tail, 1 - tail], axis=0)
    return low, high

"""Propensities estimated from a log, and once more from each of many resamples of its queries: how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers, Mask
from ultr.bias.propensities import click_rate_propensities
from ultr.bias.swaps import SWAP_ESTIMATORS, SwapTable, all_pairs, check_connected, most_likely
from ultr.data.click_log import ClickLog
from ultr.errors import DataError
from ultr.seeding import generator

CLICK_RATE = "click-rate"
ESTIMATORS = (*SWAP_ESTIMATORS, CLICK_RATE)
GROUPS = 200
"""Queries are drawn in this many random groups, so that memory does not grow with the log."""


def estimate_propensities(log: ClickLog, estimator: str = "all-pairs") -> Doubles:
    """Propensities by position: pivot, adjacent-chain or all-pairs by swaps, click-rate for a randomised log."""
    checks.one_of("estimator", estimator, ESTIMATORS)
    if estimator == CLICK_RATE:
        return click_rate_propensities(log)
    return SWAP_ESTIMATORS[estimator](SwapTable.of_log(log))


@dataclass(frozen=True, eq=False)
class ResampledPropensities:
    """Propensities with their bootstrap over queries, which whoever uses them can follow draw by draw."""

    estimate: Doubles
    """[positions], from the whole log."""
    draws: Doubles
    """[draws, positions], from the queries of each draw."""
    counts: Integers
    """[draws, groups], how often each group of queries was drawn."""
    groups: Integers
    """[query ids of the log], the group of each."""
    failed: float
    """The share of draws, left out here, whose queries did not link all positions."""

    @classmethod
    def of_log(
        cls, log: ClickLog, estimator: str = "all-pairs", *, samples: int = 500, seed: int = 0
    ) -> ResampledPropensities:
        """The propensities of a log by an estimator that goes by swaps, with their resamples."""
        checks.one_of("estimator", estimator, SWAP_ESTIMATORS)
        checks.integer("samples", samples, at_least=1)
        estimate = estimate_propensities(log, estimator)
        random = generator(seed, "resampled propensities")
        queries = np.unique(log.queries)
        count = min(GROUPS, len(queries))
        groups = np.zeros(len(log.query_ids), dtype=np.int64)
        groups[random.permutation(queries)] = np.arange(len(queries)) % count
        tables = [SwapTable.of_log(log.select(groups[log.queries] == group)) for group in range(count)]
        weights, clicks = (np.stack([getattr(table, name) for table in tables]) for name in ("weights", "clicks"))
        counts = random.multinomial(count, np.full(count, 1 / count), size=samples)
        drawn = [SwapTable(*(np.tensordot(times, sums, axes=1) for sums in (weights, clicks))) for times in counts]
        draws, linked = estimates(drawn, estimator)
        if not linked.any():
            raise DataError(
                "no resample of the log's queries links all positions by swaps, so their bias cannot be trusted; "
                "log some swaps, or give propensities"
            )
        return cls(estimate, draws, counts[linked], groups, float(1 - linked.mean()))

    def total(self, values: Doubles, queries: Integers) -> Doubles:
        """Sums over the groups of a value for each of these queries, [groups]."""
        return np.bincount(self.groups[queries], values, minlength=self.counts.shape[1]).astype(np.float64, copy=False)


def estimates(tables: Sequence[SwapTable], estimator: str) -> tuple[Doubles, Mask]:
    """The propensities of the tables that have some, [such tables, positions], and which they are."""
    chosen = SWAP_ESTIMATORS[estimator]
    # All at once, because a table with weak links may take thousands of rounds.
    together = chosen is all_pairs
    found, linked = [], np.ones(len(tables), dtype=np.bool_)
    for number, table in enumerate(tables):
        try:
            if together:
                check_connected(table)
                found.append(table.clicks)
            else:
                found.append(chosen(table))
        except DataError:
            linked[number] = False
    stacked = np.array(found)
    return most_likely(stacked) if together and found else stacked, linked

"""Rows of a click log that show the same list, summed up, and counts of what was clicked together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ultr.arrays import Integers
from ultr.data import ragged
from ultr.data.bias_factor import BiasFactor
from ultr.data.log_checks import trusted
from ultr.data.same_lists import same_lists
from ultr.errors import DataError

if TYPE_CHECKING:
    from ultr.data.click_log import ClickLog


def content(log: ClickLog) -> tuple[tuple[Integers, ...], tuple[Integers, ...]]:
    """Everything that makes two lists different: arrays with a value for each shown document, and for each list."""
    periods = () if log.periods is None else (log.periods,)
    placements = () if log.placements is None else log.placements.keys
    return (log.documents, *(factor.values for factor in log.factors), *placements), (log.queries, *periods)


def collapsed(log: ClickLog) -> ClickLog:
    """The log with equal lists summed up; see `ClickLog.collapse`."""
    target = same_lists(log.offsets, *content(log))
    firsts = np.unique(target, return_index=True)[1]
    merged = log.part(firsts, log.splits)
    into, count = ragged.rows_of(target, merged.offsets), len(merged.documents)
    pair_clicks = None
    if log.pair_clicks is not None:
        pairs = ragged.pair_offsets(merged.offsets)
        pair_clicks = _summed(log.pair_clicks, ragged.rows_of(target, pairs), int(pairs[-1]))
    return trusted(
        merged,
        clicks=_summed(log.clicks, into, count),
        impressions=_summed(log.impressions, target, merged.lists),
        signals=tuple(trusted(signal, totals=_summed(signal.totals, into, count)) for signal in log.signals),
        pair_clicks=pair_clicks,
    )


def with_pairs(log: ClickLog) -> ClickLog:
    """The same log with its pairs counted; rows with the same clicks are summed, which keeps the pairs few."""
    often = np.repeat(log.impressions, log.lengths)
    unclear = np.flatnonzero((log.clicks > 0) & (log.clicks < often))
    if len(unclear):
        number = ragged.list_numbers(log.offsets)[unclear[0]]
        raise DataError(
            f"a document of list {number} was clicked in {log.clicks[unclear[0]]} of {often[unclear[0]]} "
            "impressions, so it is not known which documents were clicked together; "
            "give each impression a row of its own"
        )
    clicked = BiasFactor("clicked in this row", (log.clicks > 0).astype(np.int32), ("no", "yes"))
    patterns = collapsed(trusted(log, factors=(*log.factors, clicked)))
    first, second = (patterns.clicks[rows] for rows in ragged.pair_members(patterns.offsets))
    return trusted(patterns, factors=patterns.factors[:-1], pair_clicks=np.minimum(first, second))


def _summed(values: Integers, into: Integers, count: int) -> Integers:
    """Each value added to the row that it goes into."""
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, into, values)
    return sums

"""Parts of a click log held out: whole queries, single pages, or the last of its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ultr.arrays import Integers, Mask
from ultr.data import ragged
from ultr.data.gathering import new_array
from ultr.data.log_checks import trusted
from ultr.errors import DataError
from ultr.seeding import generator

if TYPE_CHECKING:
    from ultr.data.click_log import ClickLog
    from ultr.data.split import Split

MOST_OF_A_LIST = 10**9
"""numpy's hypergeometric sampler fails above this."""


def lists_held_out(log: ClickLog, share: float, *, by: str, seed: int) -> Mask:
    """The lists that a split by query or by time puts aside."""
    return _last_periods(log, share) if by == "time" else _queries(log, share, seed=seed)


def pages_held_out(log: ClickLog, share: float, *, seed: int) -> tuple[Integers, Integers, Integers]:
    """The impressions of each list that a split by page puts aside, and the clicks that it leaves and takes."""
    if log.pair_clicks is not None:
        raise DataError(
            "a log that counts which documents were clicked together cannot be split by page, since it does not "
            "say on which pages; split it by query, or leave pair_clicks out"
        )
    if log.impressions.max(initial=0) >= MOST_OF_A_LIST:
        raise DataError(f"a list with {MOST_OF_A_LIST:,} impressions or more cannot be split by page")
    random = generator(seed, "held-out pages")
    aside = random.binomial(log.impressions, share)
    if not 0 < aside.sum() < log.impressions.sum():
        raise DataError(
            f"cannot hold out a share of {share:g} of {log.impressions.sum()} pages; hold out another share"
        )
    left, taken = new_array(len(log.clicks), np.int64), new_array(len(log.clicks), np.int64)
    for span in ragged.spans(log.offsets):
        clicks = log.clicks[span.rows]
        taken[span.rows] = random.hypergeometric(clicks, span.spread(log.impressions) - clicks, span.spread(aside))
        left[span.rows] = clicks - taken[span.rows]
    return aside, left, taken


def with_counts(log: ClickLog, impressions: Integers, clicks: Integers, splits: tuple[Split, ...]) -> ClickLog:
    """The lists of a log with some of their impressions and clicks; lists without an impression are left out."""
    counted = trusted(log, impressions=np.maximum(impressions, 1), clicks=clicks)
    return counted.part(impressions > 0, splits)


def _queries(log: ClickLog, share: float, *, seed: int) -> Mask:
    """The lists of a share of the queries."""
    present = np.zeros(len(log.query_ids), dtype=np.bool_)
    present[log.queries] = True
    queries = np.flatnonzero(present)
    count = round(share * len(queries))
    if not 0 < count < len(queries):
        raise DataError(
            f"cannot hold out a share of {share:g} of {len(queries)} queries; "
            "hold out another share, or validate by labels or not at all"
        )
    chosen = generator(seed, "held-out queries").permutation(queries)[:count]
    held = np.zeros_like(present)
    held[chosen] = True
    return held[log.queries]


def _last_periods(log: ClickLog, share: float) -> Mask:
    """The lists of the last periods, as many whole ones as come nearest to a share of the impressions."""
    if log.periods is None:
        raise DataError(
            "this log does not say when its impressions were, so it cannot be split by time; "
            "prepare it with --time COLUMN"
        )
    present = np.flatnonzero(np.bincount(log.periods))
    if len(present) < 2:
        raise DataError("a log of one period cannot be split by time; split it by query or page")
    impressions = np.bincount(log.periods, log.impressions)[present]
    shares = np.cumsum(impressions[:0:-1]) / impressions.sum()
    count = 1 + int(np.argmin(np.abs(shares - share)))
    return np.asarray(log.periods >= present[-count])

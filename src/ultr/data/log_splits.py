"""Parts of a click log held out: whole queries, single pages, or the last of its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ultr.data import ragged
from ultr.data.gathering import new_array
from ultr.data.log_checks import trusted
from ultr.errors import DataError
from ultr.seeding import generator

if TYPE_CHECKING:
    from ultr.data.click_log import ClickLog

HELD_OUT = 0.1
"""The share that is put aside unless another is asked for."""
MOST_OF_A_LIST = 10**9
"""numpy's hypergeometric sampler fails above this."""


def split_queries(log: ClickLog, held_out: float, *, seed: int) -> tuple[ClickLog, ClickLog]:
    """The log without a share of its queries, and those."""
    present = np.zeros(len(log.query_ids), dtype=np.bool_)
    present[log.queries] = True
    queries = np.flatnonzero(present)
    count = round(held_out * len(queries))
    if not 0 < count < len(queries):
        raise DataError(
            f"cannot hold out a share of {held_out:g} of {len(queries)} queries; "
            "hold out another share, or validate by labels or not at all"
        )
    chosen = generator(seed, "held-out queries").permutation(queries)[:count]
    held = np.zeros_like(present)
    held[chosen] = True
    aside = held[log.queries]
    return log.select(~aside), log.select(aside)


def split_pages(log: ClickLog, held_out: float, *, seed: int) -> tuple[ClickLog, ClickLog]:
    """The log without a share of its pages, and those."""
    if log.pair_clicks is not None:
        raise DataError(
            "a log that counts which documents were clicked together cannot be split by page, since it does not "
            "say on which pages; split it by query, or leave pair_clicks out"
        )
    if log.impressions.max(initial=0) >= MOST_OF_A_LIST:
        raise DataError(f"a list with {MOST_OF_A_LIST:,} impressions or more cannot be split by page")
    random = generator(seed, "held-out pages")
    aside = random.binomial(log.impressions, held_out)
    if not 0 < aside.sum() < log.impressions.sum():
        raise DataError(
            f"cannot hold out a share of {held_out:g} of {log.impressions.sum()} pages; hold out another share"
        )
    left, taken = new_array(len(log.clicks), np.int64), new_array(len(log.clicks), np.int64)
    for span in ragged.spans(log.offsets):
        clicks = log.clicks[span.rows]
        taken[span.rows] = random.hypergeometric(clicks, span.spread(log.impressions) - clicks, span.spread(aside))
        left[span.rows] = clicks - taken[span.rows]
    kept = trusted(log, impressions=np.maximum(log.impressions - aside, 1), clicks=left)
    held = trusted(log, impressions=np.maximum(aside, 1), clicks=taken)
    return kept.select(aside < log.impressions), held.select(aside > 0)


def split_time(log: ClickLog, held_out: float) -> tuple[ClickLog, ClickLog]:
    """The log without its last periods, and those."""
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
    count = 1 + int(np.argmin(np.abs(shares - held_out)))
    aside = log.periods >= present[-count]
    return log.select(~aside), log.select(aside)

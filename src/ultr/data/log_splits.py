"""Parts of a click log held out: whole queries, single pages, or the last of its time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ultr.errors import DataError
from ultr.seeding import generator

if TYPE_CHECKING:
    from ultr.data.click_log import ClickLog

MOST_OF_A_LIST = 10**9
"""As many as numpy's hypergeometric numbers go to."""


def split_queries(log: ClickLog, held_out: float, *, seed: int) -> tuple[ClickLog, ClickLog]:
    """The log without a share of its queries, and those."""
    queries = np.unique(log.queries)
    count = round(held_out * len(queries))
    if not 0 < count < len(queries):
        raise DataError(
            f"cannot hold out a share of {held_out:g} of {len(queries)} queries; "
            "hold out another share, or validate by labels or not at all"
        )
    chosen = generator(seed, "held-out queries").permutation(queries)[:count]
    aside = np.isin(log.queries, chosen)
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
    skips = np.repeat(log.impressions, log.lengths) - log.clicks
    clicks = random.hypergeometric(log.clicks, skips, np.repeat(aside, log.lengths))
    kept = replace(log, impressions=np.maximum(log.impressions - aside, 1), clicks=log.clicks - clicks)
    held = replace(log, impressions=np.maximum(aside, 1), clicks=clicks)
    return kept.select(aside < log.impressions), held.select(aside > 0)


def split_time(log: ClickLog, held_out: float) -> tuple[ClickLog, ClickLog]:
    """The log without its last periods, and those."""
    if log.periods is None:
        raise DataError(
            "this log does not say when its impressions were, so it cannot be split by time; "
            "prepare it with --time COLUMN"
        )
    present, numbers = np.unique(log.periods, return_inverse=True)
    if len(present) < 2:
        raise DataError("a log of one period cannot be split by time; split it by query or page")
    impressions = np.zeros(len(present), dtype=np.int64)
    np.add.at(impressions, numbers, log.impressions)
    shares = np.cumsum(impressions[:0:-1]) / impressions.sum()
    count = 1 + int(np.argmin(np.abs(shares - held_out)))
    aside = log.periods >= present[-count]
    return log.select(~aside), log.select(aside)

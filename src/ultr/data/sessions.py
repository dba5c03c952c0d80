"""Single sessions drawn from a collapsed log, for who cannot learn from counts."""

from __future__ import annotations

import numpy as np

from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.log_checks import trusted
from ultr.seeding import generator


def draw_sessions(log: ClickLog, *, sessions: int, seed: int, only_clicked: bool = True) -> ClickLog:
    """About `sessions` single sessions of a log: one impression and, if `only_clicked`, at least one click each.

    A list has its share of them by its impressions, though no more than these. A document is clicked in its share of
    its list's sessions by its click rate, give or take one, and which of them these are is drawn for each document on
    its own: the clicks of one session are independent given the list, whatever came together in the log. Sessions
    without a click put no document before another and are left out, unless the ranker asks for all.
    """
    # Another name of the stream would draw other sessions than those behind the published numbers.
    random = generator(seed, "peer sessions")
    share = np.minimum(log.impressions * (sessions / log.impressions.sum()), log.impressions)
    counts = np.floor(share + random.random(log.lists)).astype(np.int64)
    lists = np.repeat(np.arange(log.lists), counts)
    rows = ragged.rows_of(lists, log.offsets)
    # Of each shown document, first how many of its sessions click it, then which.
    shown = np.repeat(counts, log.lengths)
    clicked = np.floor(shown * log.clicks / np.repeat(log.impressions, log.lengths) + random.random(len(shown)))
    shuffled = np.lexsort((random.random(len(rows)), rows))
    places = np.arange(len(rows)) - np.repeat(ragged.from_lengths(shown)[:-1], shown)
    clicks = np.zeros(len(rows), dtype=np.int64)
    clicks[shuffled] = places < np.repeat(clicked, shown)
    drawn = trusted(
        trusted(log, pair_clicks=None).select(lists), impressions=np.ones(len(lists), dtype=np.int64), clicks=clicks
    )
    if not only_clicked:
        return drawn
    totals = np.bincount(ragged.list_numbers(drawn.offsets), weights=clicks, minlength=drawn.lists)
    return drawn.select(totals > 0)

"""Parts of a click log held out: queries, at random or by a digest of their ids, pages, or the last of its time."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
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


@dataclass(frozen=True)
class Counted:
    """Impressions of each list, and clicks and totals of the signals of each shown document."""

    impressions: Integers
    clicks: Integers
    signals: tuple[Integers, ...]

    @classmethod
    def of(cls, log: ClickLog) -> Counted:
        """All that a log counts."""
        return cls(log.impressions, log.clicks, tuple(signal.totals for signal in log.signals))

    def put_into(self, log: ClickLog, lists: Integers) -> Counted:
        """The counts at their lists of the whole log, 0 at all other lists."""
        rows = ragged.rows_of(lists, log.offsets)
        return Counted(
            _spread(self.impressions, lists, len(log.impressions)),
            _spread(self.clicks, rows, len(log.clicks)),
            tuple(_spread(totals, rows, len(log.clicks)) for totals in self.signals),
        )

    def where(self, lists: Mask, offsets: Integers, other: Counted) -> Counted:
        """These counts for the lists of a mask, those of `other` for the rest."""
        rows = np.repeat(lists, np.diff(offsets))
        return Counted(
            np.where(lists, self.impressions, other.impressions),
            np.where(rows, self.clicks, other.clicks),
            tuple(np.where(rows, mine, theirs) for mine, theirs in zip(self.signals, other.signals, strict=True)),
        )


def lists_held_out(log: ClickLog, share: float, *, by: str, seed: int) -> Mask:
    """The lists that a split by query, by hash or by time puts aside."""
    if by == "time":
        return _last_periods(log, share)
    if by == "hash":
        held = hashed_queries(log, share, seed=seed)
        if not 0 < held.sum() < len(held):
            raise DataError(f"a share of {share:g} by hash is none or all of the queries; hold out another share")
        return held
    return _queries(log, share, seed=seed)


def hashed_queries(log: ClickLog, share: float, *, seed: int) -> Mask:
    """The lists of about a share of the queries, chosen by a digest of their ids, [lists].

    A query is on the same side in every log, whatever other queries there are.
    """
    limit = share * 2**64
    key = str(seed).encode()
    held = np.array([_number_of(query, key) < limit for query in log.query_ids], dtype=np.bool_)
    return held[log.queries]


def split_pages(log: ClickLog, share: float, *, seed: int) -> tuple[Counted, Counted]:
    """The impressions, clicks and signals that a split by page leaves, and those that it puts aside."""
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
    others = [generator(seed, "held-out pages", signal.name) for signal in log.signals]
    held = Counted(aside, _new_array(log), tuple(_new_array(log) for _ in log.signals))
    kept = Counted(log.impressions - aside, _new_array(log), tuple(_new_array(log) for _ in log.signals))
    for span in ragged.spans(log.offsets):
        rows, shown, of_shown = span.rows, span.spread(log.impressions), span.spread(aside)
        clicks = log.clicks[rows]
        taken = held.clicks[rows] = random.hypergeometric(clicks, shown - clicks, of_shown)
        kept.clicks[rows] = clicks - taken
        for number, signal in enumerate(log.signals):
            totals, drawn = signal.totals[rows], others[number]
            # What only clicked pages have goes with the clicks; a count that is no number of pages goes one by one.
            if (totals <= clicks).all():
                aside_totals = drawn.hypergeometric(totals, clicks - totals, taken)
            elif (totals <= shown).all():
                aside_totals = drawn.hypergeometric(totals, shown - totals, of_shown)
            else:
                aside_totals = drawn.binomial(totals, of_shown / shown)
            held.signals[number][rows], kept.signals[number][rows] = aside_totals, totals - aside_totals
    return kept, held


def with_counts(log: ClickLog, counts: Counted, splits: tuple[Split, ...]) -> ClickLog:
    """The lists of a log with some of their impressions and clicks; lists without an impression are left out."""
    counted = trusted(
        log,
        impressions=np.maximum(counts.impressions, 1),
        clicks=counts.clicks,
        signals=tuple(trusted(s, totals=totals) for s, totals in zip(log.signals, counts.signals, strict=True)),
    )
    return counted.part(counts.impressions > 0, splits)


def _number_of(query: object, key: bytes) -> int:
    """A number below 2^64 for the id of a query."""
    digest = blake2b(str(query).encode("utf-8", "surrogatepass"), key=key, digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _new_array(log: ClickLog) -> Integers:
    return new_array(len(log.clicks), np.int64)


def _spread(values: Integers, places: Integers, count: int) -> Integers:
    spread = np.zeros(count, dtype=np.int64)
    spread[places] = values
    return spread


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

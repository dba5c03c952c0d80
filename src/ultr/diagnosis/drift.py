"""Clicks at the end of a log against those at its beginning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Integers, Mask
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.gathering import spread
from ultr.diagnosis.finding import Finding, Verdict, sentences
from ultr.diagnosis.rates import Rates, click_rates, units_of
from ultr.metrics.intervals import Interval
from ultr.seeding import generator

PART = 0.2
"""The first and the last part are as many whole periods as have this share of the pages."""
MUCH_CHANGE = 0.1
MANY_NEW = 0.5
_SAMPLES = 500
_GROUPS = 500
"""Queries are resampled in this many random groups."""


@dataclass(frozen=True)
class Drift:
    """The last part of a log against its first."""

    periods: Rates
    """The click rate of each period."""
    period_names: tuple[str, ...]
    ratio: Interval
    """Clicks of the last part over those that the rates by position of the first part would give."""
    by_position: Doubles
    """[positions], click rate of the last part over that of the first; NaN where either has no clicks."""
    new_queries: float
    """The share of the last part's pages whose query the rest of the log does not have."""

    @classmethod
    def of(cls, log: ClickLog, *, seed: int = 0) -> Drift | None:
        """The drift of a log, None if it has no time."""
        if log.periods is None:
            return None
        count = len(log.period_names)
        pages = np.bincount(log.periods, log.impressions, minlength=count).astype(np.float64)
        first = _until(pages, PART)
        last = count - _until(pages[::-1], PART)
        early, late = log.periods < first, log.periods >= last
        before = np.unique(log.queries[~late])
        unseen = ~np.isin(log.queries[late], before)
        rates = [
            click_rates(part, part.factors[0].values, count=len(log.factors[0].levels))
            for part in (log.select(early), log.select(late))
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            change = rates[1].values / rates[0].values
        return cls(
            periods=click_rates(log, spread(log.periods, log.offsets), count=count),
            period_names=log.period_names,
            ratio=_ratio(log, early, late, seed=seed),
            by_position=np.where(np.isfinite(change) & (change > 0), change, np.nan),
            new_queries=float(log.impressions[late][unseen].sum() / log.impressions[late].sum()),
        )

    @property
    def changed(self) -> bool:
        """True if clicks changed by more than chance, and by enough to matter."""
        beyond_chance = not self.ratio.low <= 1 <= self.ratio.high
        return beyond_chance and abs(self.ratio.mean - 1) > MUCH_CHANGE

    def finding(self) -> Finding:
        """The answer on whether the end of the log is like its beginning."""
        change = self.ratio.mean - 1
        said = (
            f"the last part has {abs(change):.1%} {'more' if change > 0 else 'fewer'} clicks than the first at the "
            f"same positions (ratio {self.ratio.text(', 95 % interval ')})"
        )
        new = f"{self.new_queries:.0%} of its pages have a query that the log did not have before"
        many = self.new_queries > MANY_NEW
        advice = [
            "find out what changed; if it was the page or the ranker, train on what came after" if self.changed else "",
            "split by query, not by page, when choosing a model, since it must do well on new queries" if many else "",
        ]
        return Finding(
            name=NAME,
            question=QUESTION,
            verdict=Verdict.CAREFUL if self.changed or many else Verdict.GOOD,
            answer=sentences([said, new]),
            advice=sentences(advice),
            numbers={
                "ratio": vars(self.ratio),
                "ratio_by_position": self.by_position.tolist(),
                "new_queries": self.new_queries,
                "periods": {"from": list(self.period_names), **self.periods.as_json()},
            },
            tables=(self.periods.table("click rate over time, 95 % intervals", "from", self.period_names),),
        )


NAME, QUESTION = "drift", "Is the end of the log like its beginning?"


def no_time() -> Finding:
    """The finding for a log without time."""
    return Finding(
        NAME,
        QUESTION,
        Verdict.UNKNOWN,
        "The log does not say when its pages were shown.",
        "Prepare it with --time COLUMN.",
    )


def _until(pages: Doubles, share: float) -> int:
    """Number of periods from the start that have at least this share of the pages; never all of them."""
    return min(int(np.searchsorted(np.cumsum(pages), share * pages.sum())) + 1, max(len(pages) // 2, 1))


def _ratio(log: ClickLog, early: Mask, late: Mask, *, seed: int) -> Interval:
    """Clicks of the late lists over those to be expected by the early ones' rates, resampled over queries."""
    random = generator(seed, "drift")
    units = units_of(log)
    count = int(units.max()) + 1
    groups = random.permutation(np.arange(count) % min(_GROUPS, count))[units]
    sums = [_sums(log, part, groups) for part in (early, late)]
    drawn = random.multinomial(len(sums[0][0]), np.full(len(sums[0][0]), 1 / len(sums[0][0])), size=_SAMPLES)
    whole = np.ones((1, drawn.shape[1]), dtype=np.int64)
    ratios = [_expected_ratio(*(times @ table for part in sums for table in part)) for times in (whole, drawn)]
    low, high = np.nanquantile(ratios[1], [0.025, 0.975])
    return Interval(float(ratios[0][0]), float(low), float(high))


def _sums(log: ClickLog, part: Mask, groups: Integers) -> tuple[Doubles, Doubles]:
    """Documents shown and clicks [groups, positions] of some lists."""
    size = int(groups.max()) + 1, len(log.factors[0].levels)
    shown, clicked = np.zeros(size[0] * size[1]), np.zeros(size[0] * size[1])
    for start, stop in ragged.spans(log.offsets):
        lists, rows = slice(start, stop), slice(log.offsets[start], log.offsets[stop])
        lengths = np.diff(log.offsets[start : stop + 1])
        inside = np.repeat(part[lists], lengths)
        cell = (np.repeat(groups[lists], lengths) * size[1] + log.factors[0].values[rows])[inside]
        often = np.repeat(log.impressions[lists], lengths)[inside]
        shown += np.bincount(cell, often, minlength=len(shown))
        clicked += np.bincount(cell, log.clicks[rows][inside], minlength=len(shown))
    return shown.reshape(size), clicked.reshape(size)


def _expected_ratio(shown_before: Doubles, before: Doubles, shown_after: Doubles, after: Doubles) -> Doubles:
    """[samples]; only positions that the first part has too count."""
    known = shown_before > 0
    rates = np.divide(before, shown_before, out=np.zeros_like(before), where=known)
    expected = (shown_after * rates).sum(axis=1)
    found = np.where(known, after, 0).sum(axis=1)
    ratio: Doubles = np.divide(found, expected, out=np.full(len(found), np.nan), where=expected > 0)
    return ratio

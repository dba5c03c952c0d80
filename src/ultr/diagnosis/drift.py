"""Clicks at the end of a log against those at its beginning."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ultr.arrays import Doubles, Integers
from ultr.data.click_log import ClickLog
from ultr.data.gathering import spread
from ultr.data.totals import Totals
from ultr.diagnosis.rates import Rates, click_rates
from ultr.metrics.intervals import Interval
from ultr.metrics.query_bootstrap import QueryBootstrap, percentiles, units_of
from ultr.pages import Section, Verdict, figures, sentences
from ultr.seeding import generator

PART = 0.2
"""The first and the last part are as many whole periods as have this share of the pages."""
MUCH_CHANGE = 0.1
MANY_NEW = 0.5
_SAMPLES = 500


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
    queries_repeat: bool
    """False if every query was shown once, so that all are new."""

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
        units = units_of(log)
        drawing = QueryBootstrap.draw(int(units.max()) + 1, samples=_SAMPLES, random=generator(seed, "drift"))
        tables = [
            log.totals(log.position, groups=np.where(part, drawing.groups[units], -1), group_count=drawing.count)
            for part in (early, late)
        ]
        before_rates, after_rates = (Totals(*(each.sum(axis=0) for each in part)).rates for part in tables)
        with np.errstate(divide="ignore", invalid="ignore"):
            change = after_rates / before_rates
        return cls(
            periods=click_rates(log, spread(log.periods, log.offsets), count=count),
            period_names=log.period_names,
            ratio=_ratio(tables[0], tables[1], drawing.times),
            by_position=np.where(np.isfinite(change) & (change > 0), change, np.nan),
            new_queries=float(log.impressions[late][unseen].sum() / log.impressions[late].sum()),
            queries_repeat=bool(log.impressions.sum() > len(np.unique(log.queries))),
        )

    @property
    def changed(self) -> bool:
        """True if clicks changed by more than chance, and by enough to matter."""
        beyond_chance = not self.ratio.low <= 1 <= self.ratio.high
        return beyond_chance and abs(self.ratio.mean - 1) > MUCH_CHANGE

    def section(self) -> Section:
        """The answer on whether the end of the log is like its beginning."""
        change, unknown = self.ratio.mean - 1, bool(np.isnan(self.ratio.mean))
        said = (
            "the first part has no click at the positions of the last one, so that the two cannot be compared"
            if unknown
            else f"the last part has {abs(change):.1%} {'more' if change > 0 else 'fewer'} clicks than the first at "
            f"the same positions (ratio {self.ratio.text(', 95 % interval ')})"
        )
        new = (
            f"{self.new_queries:.0%} of its pages have a query that the log did not have before"
            if self.queries_repeat
            else "no query was shown twice, so that queries cannot be followed over time"
        )
        many = self.queries_repeat and self.new_queries > MANY_NEW
        advice = [
            "check that clicks were logged from the start, or leave the time before out" if unknown else "",
            "find out what changed; if it was the page or the ranker, train on what came after" if self.changed else "",
            "split by query, not by page, when choosing a model, since it must do well on new queries" if many else "",
        ]
        return Section(
            name=NAME,
            title=QUESTION,
            verdict=Verdict.CAREFUL if self.changed or many or unknown else Verdict.GOOD,
            answer=sentences([said, new]),
            advice=sentences(advice),
            numbers={
                "ratio": vars(self.ratio),
                "ratio_by_position": self.by_position.tolist(),
                "new_queries": self.new_queries,
                "periods": {"from": list(self.period_names), **self.periods.as_json()},
            },
            tables=(
                self.periods.table("click rate over time, 95 % intervals", "from", self.period_names, folded=True),
            ),
            figures={"click rate over time": partial(figures.rates_over_time, self.period_names, self.periods.band)},
        )


NAME, QUESTION = "drift", "Is the end of the log like its beginning?"


def no_time() -> Section:
    """The finding for a log without time."""
    said = "The log does not say when its pages were shown."
    return Section(QUESTION, said, Verdict.UNKNOWN, "Prepare it with --time COLUMN.", name=NAME)


def _until(pages: Doubles, share: float) -> int:
    """Number of periods from the start that have at least this share of the pages; never all of them."""
    return min(int(np.searchsorted(np.cumsum(pages), share * pages.sum())) + 1, max(len(pages) // 2, 1))


def _ratio(early: Totals, late: Totals, times: Integers) -> Interval:
    """Clicks of the late lists over those to be expected by the early ones' rates, from tables [groups, positions]."""
    once = np.ones((1, times.shape[1]))
    ratios = [_expected_ratio(*(drawn @ table for table in (*early, *late))) for drawn in (once, times)]
    mean = float(ratios[0][0])
    if np.isnan(mean):
        return Interval(mean, mean, mean)
    low, high = percentiles(ratios[1], 0.95, times.shape[1])
    return Interval(mean, float(low), float(high))


def _expected_ratio(shown_before: Doubles, before: Doubles, shown_after: Doubles, after: Doubles) -> Doubles:
    """The ratio of each sample, [samples]; only positions that the first part has too count."""
    known = shown_before > 0
    rates = np.divide(before, shown_before, out=np.zeros_like(before), where=known)
    expected = (shown_after * rates).sum(axis=1)
    found = np.where(known, after, 0).sum(axis=1)
    ratio: Doubles = np.divide(found, expected, out=np.full(len(found), np.nan), where=expected > 0)
    return ratio

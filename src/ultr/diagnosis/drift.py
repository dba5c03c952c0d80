"""Clicks at the end of a log against those at its beginning."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ultr.arrays import Doubles, Integers, ratio
from ultr.data.click_log import ClickLog
from ultr.data.gathering import spread
from ultr.data.totals import Totals
from ultr.diagnosis.rates import Rates, click_rates, one_click_a_page
from ultr.metrics.intervals import Interval
from ultr.metrics.query_bootstrap import QueryBootstrap, percentiles, units_of
from ultr.pages import Section, Verdict, figures, sentences
from ultr.seeding import generator

PART = 0.2
"""The first and the last part are as many whole periods as come nearest to this share of the pages."""
MUCH_CHANGE = 0.1
MANY_NEW = 0.5
_SAMPLES = 500
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}")
_DATES = np.datetime64("1990-01-01"), np.datetime64("2100-01-01")
"""Numbers that are a time in between, in seconds or thousandths of them, are shown as such."""


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
    first: float
    """The share of the pages that the first part has."""
    last: float
    """The share of the pages that the last part has."""
    fixed: bool = False
    """True if every page has one click, so that there cannot be more or fewer at any time."""

    @classmethod
    def of(cls, log: ClickLog, *, seed: int = 0) -> Drift | None:
        """The drift of a log, None if it has no time."""
        if log.periods is None:
            return None
        count = len(log.period_names)
        pages = np.bincount(log.periods, log.impressions, minlength=count).astype(np.float64)
        first = _nearest(pages, PART)
        last = count - _nearest(pages[::-1], PART)
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
            first=float(pages[:first].sum() / pages.sum()),
            last=float(pages[last:].sum() / pages.sum()),
            fixed=one_click_a_page(log),
        )

    @property
    def changed(self) -> bool:
        """True if clicks changed by more than chance, and by enough to matter."""
        beyond_chance = not (self.fixed or self.ratio.low <= 1 <= self.ratio.high)
        return beyond_chance and abs(self.ratio.mean - 1) > MUCH_CHANGE

    def section(self) -> Section:
        """The answer on whether the end of the log is like its beginning."""
        if len(self.period_names) == 1:
            return self._section(
                Verdict.UNKNOWN,
                ["all pages are of one period of time, so that there is no end to compare with a beginning"],
                ["prepare the log with more --periods, or log for longer, to see whether clicks change over time"],
            )
        change, unknown = self.ratio.mean - 1, bool(np.isnan(self.ratio.mean))
        parts = f"the last {self.last:.0%} of the pages", f"the first {self.first:.0%}"
        said = (
            f"{parts[1]} of the pages have no click at the positions of the last {self.last:.0%}, so that the two "
            "cannot be compared"
            if unknown
            else f"every page has one click, so that {parts[0]} cannot have more or fewer than {parts[1]}"
            if self.fixed
            else f"{parts[0]} have {abs(change):.1%} {'more' if change > 0 else 'fewer'} clicks than {parts[1]} at the "
            f"same positions (ratio {self.ratio.text(', 95 % interval ')})"
        )
        new = (
            f"{self.new_queries:.0%} of the last pages have a query that the log did not have before"
            if self.queries_repeat
            else "no query was shown twice, so that queries cannot be followed over time"
        )
        many = self.queries_repeat and self.new_queries > MANY_NEW
        advice = [
            "check that clicks were logged from the start, or leave the time before out" if unknown else "",
            "find out what changed; if it was the page or the ranker, train on what came after" if self.changed else "",
            "split by query, not by page, when choosing a model, since it must do well on new queries" if many else "",
        ]
        verdict = Verdict.UNKNOWN if self.fixed else Verdict.GOOD
        return self._section(Verdict.CAREFUL if self.changed or many or unknown else verdict, [said, new], advice)

    def _section(self, verdict: Verdict, answer: list[str], advice: list[str]) -> Section:
        names = moments(self.period_names)
        return Section(
            name=NAME,
            title=QUESTION,
            verdict=verdict,
            answer=sentences(answer),
            advice=sentences(advice),
            numbers={
                "ratio": vars(self.ratio),
                "ratio_by_position": self.by_position.tolist(),
                "new_queries": self.new_queries,
                "shares": {"first": self.first, "last": self.last},
                "periods": {"from": list(self.period_names), **self.periods.as_json()},
            },
            tables=(self.periods.table("click rate over time, 95 % intervals", "from", names),),
            figures={
                "click rate over time": partial(
                    figures.rates_over_time, names, self.periods.band, self.periods.impressions
                )
            },
        )


NAME, QUESTION = "drift", "Is the end of the log like its beginning?"


def no_time() -> Section:
    """The finding for a log without time."""
    said = "The log does not say when its pages were shown."
    return Section(
        QUESTION,
        said,
        Verdict.UNKNOWN,
        "Prepare the log with --time COLUMN, to see whether clicks change over time.",
        name=NAME,
    )


def moments(names: Sequence[str]) -> tuple[str, ...]:
    """Times, no finer than it takes to tell them apart; numbers that are none as is.

    Numbers that can only be seconds since 1970, or thousandths, millionths, billionths, are times.

    >>> moments(["1541030400", "1541116800.5"]), moments(["1541030400000"]), moments(["1", "2"])
    (('2018-11-01', '2018-11-02'), ('2018-11-01',), ('1', '2'))
    >>> moments(["2018-11-01 07:03:45.28", "2018-11-01 18:00:00"])
    ('2018-11-01 07:03', '2018-11-01 18:00')
    """
    try:
        numbers = np.array([float(name) for name in names])
    except ValueError:
        return _shortest(names) if all(_MOMENT.match(name) for name in names) else tuple(names)
    low, high = (each.astype("datetime64[s]").astype(np.float64) for each in _DATES)
    for unit in (1.0, 1e3, 1e6, 1e9):
        seconds = numbers / unit
        if ((low <= seconds) & (seconds < high)).all():
            return _shortest([str(each).replace("T", " ") for each in seconds.astype(np.int64).astype("datetime64[s]")])
    return tuple(names)


def _shortest(times: Sequence[str]) -> tuple[str, ...]:
    """Times to the day, the minute or the second, whichever is the first that tells them apart."""
    for end in (10, 16, 19):
        cut = tuple(time[:end] for time in times)
        if len(set(cut)) == len(times):
            return cut
    return tuple(times)


def _nearest(pages: Doubles, share: float) -> int:
    """Number of periods from the start whose pages come nearest to a share of all; one at least, and half at most."""
    apart = np.abs(np.cumsum(pages) - share * pages.sum())
    return int(np.argmin(apart[: max(len(pages) // 2, 1)])) + 1


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
    rates = ratio(before, shown_before)
    expected = (shown_after * rates).sum(axis=1)
    found = np.where(known, after, 0).sum(axis=1)
    return ratio(found, expected, otherwise=np.nan)

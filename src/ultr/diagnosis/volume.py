"""The size of a log, and what is missing from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from ultr.arrays import Integers
from ultr.counted import counted
from ultr.data.click_log import ClickLog
from ultr.data.gathering import computed
from ultr.data.missing_values import missing_shares
from ultr.pages import Section, Table, Verdict, sentences
from ultr.preparation.summary import Summary

TOO_FEW_CLICKS = 1_000
"""Below this not even the curve of ten positions can be told: a rate of a hundred clicks is known to a fifth."""
FEW_CLICKS = 10_000
FEW_QUERIES = 100
MUCH_OF_ONE_QUERY = 0.2
MUCH_OF_ROBOTS = 0.01
"""Share of the clicks from which on those of robots matter."""
MUCH_ASIDE = 0.05
ENDS_IN_CLICKS = 0.9
"""Share of the shorter lists that end in a click from which on they were cut there."""
FEW_SHORT = 100
"""Fewer pages do not tell where lists were cut."""


@dataclass(frozen=True)
class Volume:
    """The size of a log, and signs of pages and documents that were not logged."""

    pages: int
    lists: int
    """Distinct lists, under their bias factors."""
    queries: int
    documents: int
    """Distinct documents that were shown, each for one query; one whose features change counts anew."""
    shown: int
    """Documents on all pages."""
    clicks: int
    features: int
    features_with_gaps: int
    """Features that are missing somewhere."""
    heaviest_query: float
    """The share of the pages that the query with the most of them has."""
    shortest: int
    longest: int
    """Documents on the longest page."""
    longest_share: float
    """The share of the pages that are as long as the longest."""
    short_pages: int
    """Pages that are shorter than the longest."""
    short_end_rate: float
    """Click rate of the last document of these."""
    short_end_expected: float
    """Click rate at the same positions on pages that go on below."""
    empty_pages: int | None
    """Pages without a click; None if the log was not prepared from raw rows."""
    rows: int | None
    """Raw rows that were read."""
    put_aside: Mapping[str, int] | None
    """Raw rows that were put aside, by reason."""
    robot_pages: int
    """Pages that look like a robot's and are in the log."""
    robot_clicks: int
    """Clicks on them."""

    @classmethod
    def of(cls, log: ClickLog, summary: Summary | None = None) -> Volume:
        """The volume of a log, and of what was read to prepare it."""
        robots = None if summary is None or summary.robots is None or summary.robots.dropped else summary.robots
        pages = int(log.impressions.sum())
        longest = int(log.lengths.max(initial=0))
        short = (log.lengths < longest) & (log.lengths > 0)
        ends = log.offsets[1:][short] - 1
        short_pages = int(log.impressions[short].sum())
        return cls(
            pages=pages,
            lists=log.lists,
            queries=_distinct(log.queries, len(log.query_ids)),
            documents=_distinct(log.documents, len(log.features)),
            shown=int((log.impressions * log.lengths).sum()),
            clicks=int(log.clicks.sum()),
            features=log.features.shape[1],
            features_with_gaps=len(missing_shares(log.features, log.feature_names)),
            heaviest_query=float(np.bincount(log.queries, log.impressions).max(initial=0) / max(pages, 1)),
            shortest=int(log.lengths.min(initial=longest)),
            longest=longest,
            longest_share=float(log.impressions[log.lengths == longest].sum() / max(pages, 1)),
            short_pages=short_pages,
            short_end_rate=float(log.clicks[ends].sum() / max(short_pages, 1)),
            short_end_expected=_rate_of_those_that_go_on(log, short),
            empty_pages=None if summary is None else summary.empty_pages,
            rows=None if summary is None else summary.rows.read,
            put_aside=None if summary is None else {each.reason: each.rows for each in summary.reasons},
            robot_pages=0 if robots is None else robots.pages,
            robot_clicks=0 if robots is None else robots.clicks,
        )

    @property
    def cut_after_clicks(self) -> bool:
        """True if pages seem to have been logged only as far as the last click."""
        return self.short_pages >= FEW_SHORT and self.short_end_rate > max(ENDS_IN_CLICKS, self.short_end_expected)

    @property
    def few_clicks(self) -> bool:
        """True if a small model is to be taken for want of clicks."""
        return self.clicks < FEW_CLICKS

    def section(self) -> Section:
        """The answer on whether there is enough, and all of it."""
        worries = [
            (
                Verdict.BAD,
                self.clicks < TOO_FEW_CLICKS,
                f"{counted(self.clicks, 'click is', 'clicks are')} too few to learn from",
                "log more before training",
            ),
            (
                Verdict.CAREFUL,
                self.few_clicks and self.clicks >= TOO_FEW_CLICKS,
                f"{self.clicks:,} clicks are few: expect wide intervals, and take a small model",
                "log more if you can",
            ),
            (
                Verdict.CAREFUL,
                self.queries < FEW_QUERIES,
                f"{counted(self.queries, 'query is', 'queries are')} few, and a ranker must do well on others",
                "log more queries before judging a ranker by this log",
            ),
            (
                Verdict.CAREFUL,
                self.heaviest_query > MUCH_OF_ONE_QUERY,
                f"one query has {self.heaviest_query:.0%} of the pages and decides much of what is learned",
                "consider a limit of pages for each query",
            ),
            (
                Verdict.CAREFUL,
                self.empty_pages == 0,
                "no page is without a click, so such pages were probably not logged and all click rates are too high",
                "log pages without clicks too",
            ),
            (
                Verdict.BAD,
                self.cut_after_clicks,
                f"pages seem to be logged only down to their last click: of those shorter than {self.longest} "
                f"documents, {self.short_end_rate:.0%} end in one, where {self.short_end_expected:.0%} are to be "
                "expected",
                "log every document that was shown, clicked or not",
            ),
            (
                Verdict.CAREFUL,
                self.robot_clicks > MUCH_OF_ROBOTS * self.clicks,
                f"{counted(self.robot_pages, 'page looks', 'pages look')} like a robot's, with "
                f"{self.robot_clicks / max(self.clicks, 1):.1%} of the clicks",
                "prepare the log again with --drop-robots",
            ),
            (
                Verdict.CAREFUL,
                self.aside_share > MUCH_ASIDE,
                f"{self.aside_share:.1%} of the raw rows were put aside",
                "look at rejected.parquet before trusting the rest",
            ),
        ]
        found = [worry for worry in worries if worry[1]]
        verdict = Verdict.GOOD
        if found:
            verdict = Verdict.BAD if any(worry[0] is Verdict.BAD for worry in found) else Verdict.CAREFUL
        size = (
            f"{counted(self.pages, 'page')} of {counted(self.queries, 'query', 'queries')} "
            f"{'has' if self.pages == 1 else 'have'} {counted(self.clicks, 'click')} on "
            f"{counted(self.shown, 'document')}"
        )
        return Section(
            name="volume",
            title="Is there enough, and is it all there?",
            verdict=verdict,
            answer=sentences([size, *(worry[2] for worry in found)]),
            advice=sentences([worry[3] for worry in found]),
            numbers=asdict(self) | {"cut_after_clicks": self.cut_after_clicks},
            tables=(Table("", self._rows()),),
        )

    @property
    def aside_share(self) -> float:
        """The share of the raw rows that were put aside."""
        return sum((self.put_aside or {}).values()) / max(self.rows or 0, 1)

    def _rows(self) -> list[dict[str, str]]:
        lines = {
            "pages": f"{self.pages:,}",
            "distinct lists": f"{self.lists:,}",
            "queries": f"{self.queries:,}",
            "pages of the most frequent query": f"{self.heaviest_query:.1%}",
            "documents by query and features": f"{self.documents:,}",
            "documents shown": f"{self.shown:,}",
            "documents a page": f"{self.shortest} to {self.longest} ({self.longest_share:.0%} have {self.longest})",
            "clicks": f"{self.clicks:,}, {self.clicks / max(self.pages, 1):.2f} a page",
            "pages without a click": (
                "not known" if self.empty_pages is None else f"{self.empty_pages / max(self.pages, 1):.1%}"
            ),
            "features": f"{self.features:,}"
            + (f", {self.features_with_gaps:,} with missing values" if self.features_with_gaps else ""),
        }
        aside = {f"put aside: {reason}": f"{rows:,}" for reason, rows in (self.put_aside or {}).items()}
        return [{"": name, "number": text} for name, text in (lines | aside).items()]


def _rate_of_those_that_go_on(log: ClickLog, short: np.ndarray) -> float:
    """The click rate at the last positions of short lists, of documents in longer lists."""
    place = log.position.values
    cells = computed(np.asarray, place, dtype=place.dtype)
    cells[log.offsets[1:][log.lengths > 0] - 1] = -1
    rates = np.nan_to_num(log.totals(cells, count=len(log.position.levels)).rates)
    ends = log.offsets[1:][short] - 1
    return float((rates[place[ends]] * log.impressions[short]).sum() / max(log.impressions[short].sum(), 1))


def _distinct(numbers: Integers, count: int) -> int:
    """The number of distinct values, all of them below `count`."""
    occurs = np.zeros(count, dtype=np.bool_)
    occurs[numbers] = True
    return int(occurs.sum())

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.diagnosis.logs import summary, thorough

from ultr.data.click_log import ClickLog
from ultr.diagnosis import Verdict
from ultr.diagnosis.volume import Volume
from ultr.preparation.robots import Robots
from ultr.preparation.summary import PutAside, Tally


@pytest.fixture
def volume() -> Volume:
    return Volume.of(thorough(), summary())


def test_counts_are_those_of_the_pages() -> None:
    log = ClickLog.of(
        features=np.zeros((4, 0)),
        documents=[0, 1, 2, 0, 1, 3],
        offsets=[0, 3, 5, 6],
        clicks=[5, 0, 1, 2, 2, 0],
        impressions=[10, 4, 6],
        queries=["a", "a", "b"],
    )
    volume = Volume.of(log)
    assert (volume.pages, volume.lists, volume.queries, volume.documents) == (20, 3, 2, 4)
    assert (volume.shown, volume.clicks) == (44, 10)
    assert volume.heaviest_query == 14 / 20
    assert (volume.shortest, volume.longest, volume.longest_share) == (1, 3, 0.5)
    # The short ones end at position 2 (4 pages) and 1 (6 pages); above others, position 1 has 7 of 14, 2 has 0 of 10.
    assert (volume.short_pages, volume.short_end_rate) == (10, 0.2)
    assert volume.short_end_expected == pytest.approx((4 * 0 + 6 * 0.5) / 10)
    assert volume.empty_pages is None


def test_few_clicks_of_robots_are_no_worry(volume: Volume) -> None:
    """A hundredth of the clicks is the bound."""
    finding = replace(volume, clicks=20_000, robot_pages=30, robot_clicks=200).section()
    assert finding.verdict is Verdict.GOOD
    assert "robot" not in finding.answer


def test_a_large_log_of_many_queries_is_enough(volume: Volume) -> None:
    finding = volume.section()
    assert finding.verdict is Verdict.GOOD
    assert finding.advice == ""
    assert finding.answer.startswith("40,000 pages of 200 queries")


@pytest.mark.parametrize(
    ("change", "verdict", "sentence"),
    [
        ({"clicks": 999}, Verdict.BAD, "too few to learn from"),
        ({"clicks": 1_000}, Verdict.CAREFUL, "1,000 clicks are few"),
        ({"queries": 99}, Verdict.CAREFUL, "99 queries are few"),
        ({"heaviest_query": 0.42}, Verdict.CAREFUL, "one query has 42%"),
        ({"empty_pages": 0}, Verdict.CAREFUL, "no page is without a click"),
        ({"put_aside": {"no query": 30_000}}, Verdict.CAREFUL, "7.5% of the raw rows were put aside"),
        (
            {"clicks": 20_000, "robot_pages": 30, "robot_clicks": 201},
            Verdict.CAREFUL,
            "30 pages look like a robot's, with 1.0% of the clicks",
        ),
        (
            {"short_pages": 100, "short_end_rate": 0.97, "short_end_expected": 0.2},
            Verdict.BAD,
            "only down to their last click",
        ),
    ],
)
def test_what_is_missing_is_said(volume: Volume, change: dict[str, object], verdict: Verdict, sentence: str) -> None:
    finding = replace(volume, **change).section()  # type: ignore[arg-type]
    assert finding.verdict is verdict
    assert sentence.lower() in finding.answer.lower()
    assert finding.advice


def test_pages_logged_down_to_the_last_click_are_found() -> None:
    random = np.random.default_rng(0)
    clicks = random.random((3_000, 5)) < [0.5, 0.3, 0.2, 0.1, 0.05]
    last = np.where(clicks.any(axis=1), 5 - clicks[:, ::-1].argmax(axis=1), 5)

    def log(lengths: np.ndarray) -> ClickLog:
        return ClickLog.of(
            features=np.zeros((5, 0)),
            documents=np.concatenate([np.arange(length) for length in lengths]),
            offsets=np.concatenate([[0], np.cumsum(lengths)]),
            clicks=np.concatenate([row[:length] for row, length in zip(clicks, lengths, strict=True)]),
            queries=np.arange(3_000) % 300,
        )

    assert Volume.of(log(last)).cut_after_clicks
    assert not Volume.of(log(random.integers(1, 6, size=3_000))).cut_after_clicks


def _small(**change: Any) -> ClickLog:
    """Pages of one, two and no documents."""
    given: dict[str, Any] = {
        "features": [[1.0], [np.nan], [2.0], [3.0]],
        "documents": [0, 0, 1],
        "offsets": [0, 1, 3, 3],
        "clicks": [1, 1, 1],
        "impressions": [1, 2, 3],
        "queries": ["a", "b", "b"],
    }
    return ClickLog.of(**(given | change))


def test_pages_without_documents_are_pages_but_no_short_ones() -> None:
    volume = Volume.of(_small())
    assert (volume.pages, volume.lists, volume.queries, volume.documents, volume.shown) == (6, 3, 2, 2, 5)
    assert (volume.clicks, volume.features, volume.features_with_gaps) == (3, 1, 1)
    assert volume.heaviest_query == 5 / 6
    assert (volume.shortest, volume.longest, volume.longest_share) == (0, 2, 2 / 6)
    # One page has one document, with a click; where others stand below, position 1 has one on two pages.
    assert (volume.short_pages, volume.short_end_rate, volume.short_end_expected) == (1, 1.0, 0.5)


def test_one_page_is_the_whole_of_its_log() -> None:
    volume = Volume.of(_small(documents=[0, 1], offsets=[0, 2], clicks=[0, 1], impressions=[1], queries=["a"]))
    assert (volume.pages, volume.heaviest_query, volume.longest_share, volume.shortest) == (1, 1.0, 1.0, 2)
    assert (volume.short_pages, volume.short_end_rate, volume.short_end_expected) == (0, 0.0, 0.0)
    rows = {row[""]: row["number"] for row in replace(volume, empty_pages=1).section().tables[0].rows}
    assert rows["clicks"] == "1, 1.00 a page"
    assert rows["pages without a click"] == "100.0%"


def test_a_log_without_lists_has_a_volume_of_nothing() -> None:
    volume = Volume.of(_small(documents=[], offsets=[0], clicks=[], impressions=[], queries=[]))
    assert (volume.pages, volume.clicks, volume.shown, volume.longest, volume.shortest) == (0, 0, 0, 0, 0)
    assert (volume.heaviest_query, volume.longest_share, volume.short_end_expected) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("robots", "pages", "clicks"),
    [
        (None, 0, 0),
        (Robots(7, 30, 1, dropped=False, rules=""), 7, 30),
        (Robots(7, 30, 1, dropped=True, rules=""), 0, 0),
    ],
)
def test_robots_count_where_they_are_still_in_the_log(robots: Robots | None, pages: int, clicks: int) -> None:
    aside = PutAside("no query", rows=20, clicks=5, pages=2, whole_page=True)
    said = summary(robots=robots, reasons=(aside,), rows=Tally(400, 380))
    volume = Volume.of(_small(), said)
    assert (volume.robot_pages, volume.robot_clicks) == (pages, clicks)
    assert (volume.empty_pages, volume.rows, volume.put_aside) == (12_000, 400, {"no query": 20})
    assert volume.aside_share == 20 / 400


def test_a_log_that_was_not_prepared_here_says_nothing_of_raw_rows() -> None:
    volume = Volume.of(_small())
    assert (volume.empty_pages, volume.rows, volume.put_aside, volume.robot_pages) == (None, None, None, 0)
    assert volume.aside_share == 0.0
    assert replace(volume, rows=1, put_aside={"no query": 1}).aside_share == 1.0


def test_the_share_of_the_clicks_of_robots_is_of_all_clicks(volume: Volume) -> None:
    one = replace(volume, clicks=1, robot_pages=1_000, robot_clicks=1).section()
    assert "1,000 pages look like a robot's, with 100.0% of the clicks." in one.answer

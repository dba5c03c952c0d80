from __future__ import annotations

import numpy as np
import pytest
from tests.diagnosis.logs import thorough

from ultr.data.click_log import ClickLog
from ultr.diagnosis import Verdict
from ultr.diagnosis.drift import Drift, moments, no_time
from ultr.diagnosis.rates import Rates
from ultr.metrics.intervals import Interval
from ultr.metrics.query_bootstrap import QueryBootstrap, percentiles, units_of
from ultr.seeding import generator

PAGES = 40_000


def test_a_log_without_time_does_not_tell() -> None:
    assert Drift.of(thorough()) is None
    assert no_time().verdict is Verdict.UNKNOWN
    assert "--time" in no_time().advice


def test_the_same_clicks_all_along_are_no_drift() -> None:
    drift = Drift.of(thorough(periods=np.arange(PAGES) // (PAGES // 10)))
    assert drift is not None
    assert drift.ratio.low < 1 < drift.ratio.high
    assert drift.new_queries == 0
    assert drift.section().verdict is Verdict.GOOD
    assert len(drift.period_names) == 10
    np.testing.assert_allclose(drift.by_position, 1, atol=0.1)


def test_a_page_that_loses_a_fifth_of_its_clicks_is_found_with_its_size() -> None:
    periods = np.arange(PAGES) // (PAGES // 10)
    clicks = thorough_clicks() & ((np.random.default_rng(1).random((PAGES, 4)) < 0.8) | (periods < 5)[:, None])
    drift = Drift.of(thorough(periods=periods, clicks=clicks.reshape(-1)))
    assert drift is not None
    assert drift.ratio.mean == pytest.approx(0.8, abs=0.03)
    assert drift.ratio.low < 0.8 < drift.ratio.high
    finding = drift.section()
    assert finding.verdict is Verdict.CAREFUL
    assert "fewer clicks" in finding.answer


def test_a_change_of_what_is_shown_where_is_no_drift_of_clicks() -> None:
    """The last periods show the lower half of the page only half the time; rates at each position are the same."""
    random = np.random.default_rng(3)
    log = thorough(periods=np.arange(PAGES) // (PAGES // 10))
    assert log.periods is not None
    late = (log.periods >= 8) & (random.random(log.lists) < 0.5)
    drift = Drift.of(log.select(np.flatnonzero(~late)))
    assert drift is not None
    assert drift.section().verdict is Verdict.GOOD


def test_new_queries_are_counted() -> None:
    """Queries come one after the other, so that each period has its own."""
    log = thorough(periods=(np.arange(PAGES) % 200) // 20)
    drift = Drift.of(log)
    assert drift is not None
    assert drift.new_queries == 1
    assert "split by query" in drift.section().advice.lower()


def test_queries_that_were_shown_once_are_not_held_against_a_log() -> None:
    drift = Drift.of(thorough(pages=200, periods=np.arange(200) // 20))
    assert drift is not None
    assert drift.new_queries == 1
    finding = drift.section()
    assert "No query was shown twice" in finding.answer
    assert "split by query" not in finding.advice.lower()


def thorough_clicks() -> np.ndarray:
    random = np.random.default_rng(0)
    queries = np.arange(PAGES) % 200
    order = random.permuted(np.tile(np.arange(4), (PAGES, 1)), axis=1)
    relevance = random.uniform(0.1, 0.8, size=800)
    clicks: np.ndarray = random.random((PAGES, 4)) < relevance[4 * queries[:, None] + order] * [1.0, 0.6, 0.4, 0.2]
    return clicks


RATES = Rates(np.array([100, 100]), np.array([10, 12]), np.array([0.05, 0.06]), np.array([0.2, 0.3]))
FIND_OUT = "Find out what changed; if it was the page or the ranker, train on what came after."
SPLIT = "Split by query, not by page, when choosing a model, since it must do well on new queries."
FROM_THE_START = "Check that clicks were logged from the start, or leave the time before out."


@pytest.mark.parametrize(
    ("ratio", "new", "repeat", "answer", "advice"),
    [
        (
            (1.25, 1.1, 1.4),
            0.25,
            True,
            "The last 21% of the pages have 25.0% more clicks than the first 20% at the same positions (ratio 1.250, "
            "95 % interval 1.100-1.400). 25% of the last pages have a query that the log did not have before.",
            FIND_OUT,
        ),
        (
            (0.75, 0.5, 0.875),
            0.75,
            True,
            "The last 21% of the pages have 25.0% fewer clicks than the first 20% at the same positions (ratio 0.750, "
            "95 % interval .500-.875). 75% of the last pages have a query that the log did not have before.",
            f"{FIND_OUT} {SPLIT}",
        ),
        (
            (1.0, 0.9, 1.1),
            1.0,
            False,
            "The last 21% of the pages have 0.0% fewer clicks than the first 20% at the same positions (ratio 1.000, "
            "95 % interval .900-1.100). No query was shown twice, so that queries cannot be followed over time.",
            "",
        ),
        (
            (np.nan, np.nan, np.nan),
            0.5,
            True,
            "The first 20% of the pages have no click at the positions of the last 21%, so that the two cannot be "
            "compared. 50% of the last pages have a query that the log did not have before.",
            FROM_THE_START,
        ),
    ],
)
def test_what_is_said_of_a_ratio_and_of_new_queries(
    ratio: tuple[float, float, float],
    new: float,
    repeat: bool,  # noqa: FBT001
    answer: str,
    advice: str,
) -> None:
    drift = Drift(RATES, ("2024-01", "2024-02"), Interval(*ratio), np.array([1.0]), new, repeat, 0.2, 0.21)
    found = drift.section()
    assert (found.answer, found.advice) == (answer, advice)
    assert found.verdict is (Verdict.CAREFUL if advice else Verdict.GOOD)
    (table,) = found.tables
    assert table.folded
    assert table.rows[1] == {
        "from": "2024-02",
        "documents shown": "100",
        "clicks": "12",
        "rate": "0.1200",
        "low": "0.0600",
        "high": "0.3000",
    }
    (drawing,) = found.drawings().values()
    assert drawing.description == "Click rate over time: 0.100, 0.120"


def _days(pages: list[int], clicks: list[int]) -> ClickLog:
    """One page of one document each day, so often shown and clicked, each of another query."""
    count = len(pages)
    return ClickLog.of(
        features=np.zeros((count, 0)),
        documents=np.arange(count),
        offsets=np.arange(count + 1),
        clicks=clicks,
        impressions=pages,
        queries=np.arange(count),
        periods=np.arange(count),
    )


@pytest.mark.parametrize(
    ("pages", "first", "last"),
    [
        ([30, 30, 20, 15, 5], 1, 2),
        ([10, 11, 30, 30, 9, 10], 2, 2),
        ([1, 25, 25, 25, 14, 10], 2, 2),  # 26 is nearer than 1, and 24 than 10
        ([4, 45, 22, 15, 14], 1, 1),  # 4 is nearer than 49, and 14 than 29
        ([10, 10, 60, 10, 10], 2, 2),
        ([15, 10, 50, 10, 15], 1, 1),  # 15 and 25 are as near
        ([5, 15, 20, 30, 30], 2, 1),
        ([18, 2, 60, 20], 2, 1),
        ([18, 1, 61, 20], 2, 1),
        ([50], 1, 1),
        ([10, 90], 1, 1),
    ],
)
def test_as_many_whole_days_are_a_part_as_come_nearest_to_a_fifth_of_the_pages(
    pages: list[int], first: int, last: int
) -> None:
    """Half of the pages of the first days are clicked, all of the last: with other days the ratio is another."""
    count = len(pages)
    clicked = [shown // 2 if day < first else 0 for day, shown in enumerate(pages)]
    clicked[count - last :] = pages[count - last :]
    drift = Drift.of(_days(pages, clicked))
    assert drift is not None
    before, after = sum(clicked[:first]) / sum(pages[:first]), 1.0
    assert drift.ratio.mean == pytest.approx(after / before)
    assert (drift.first, drift.last) == (sum(pages[:first]) / sum(pages), sum(pages[count - last :]) / sum(pages))


@pytest.mark.parametrize(
    ("new", "repeat", "verdict", "said"),
    [
        (0.5, True, Verdict.UNKNOWN, "50% of the last pages have a query that the log did not have before."),
        (0.51, True, Verdict.CAREFUL, "51% of the last pages have a query that the log did not have before."),
        (1.0, False, Verdict.UNKNOWN, "No query was shown twice, so that queries cannot be followed over time."),
    ],
)
def test_where_every_page_has_one_click_their_number_says_nothing(
    new: float,
    repeat: bool,  # noqa: FBT001
    verdict: Verdict,
    said: str,
) -> None:
    """The ratio is then that of the lengths of pages, and may be anything."""
    drift = Drift(RATES, ("a", "b"), Interval(0.5, 0.4, 0.6), np.array([1.0]), new, repeat, 0.2, 0.21, fixed=True)
    found = drift.section()
    assert not drift.changed
    assert (found.verdict, found.advice) == (verdict, SPLIT if verdict is Verdict.CAREFUL else "")
    assert found.answer == (
        "Every page has one click, so that the last 21% of the pages cannot have more or fewer than the first 20%. "
        f"{said}"
    )


@pytest.mark.parametrize(("clicks", "fixed"), [([[10, 0], [0, 10, 0]], True), ([[10, 0], [0, 9, 0]], False)])
def test_clicks_of_a_day_are_fixed_where_every_page_has_one(clicks: list[list[int]], fixed: bool) -> None:  # noqa: FBT001
    drift = Drift.of(_two_positions(clicks[:1], clicks[1:]))
    assert drift is not None
    assert drift.fixed is fixed


def test_one_period_has_no_end_to_compare() -> None:
    found = Drift(RATES, ("2024-01",), Interval(1, 1, 1), np.array([1.0]), 1.0, True, 1.0, 1.0).section()
    assert (found.verdict, found.answer, found.advice) == (
        Verdict.UNKNOWN,
        "All pages are of one period of time, so that there is no end to compare with a beginning.",
        "Prepare the log with more --periods, or log for longer, to see whether clicks change over time.",
    )


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (("1541030400", "1541116801"), ("2018-11-01", "2018-11-02")),
        (("1541030400.75",), ("2018-11-01",)),
        (("1541030400000",), ("2018-11-01",)),
        (("1541030400000000",), ("2018-11-01",)),
        (("1541030400000000000",), ("2018-11-01",)),
        (("631151999",), ("631151999",)),
        (("1541030400", "1541030460"), ("2018-11-01 00:00", "2018-11-01 00:01")),
        (("1541030400", "1541030401"), ("2018-11-01 00:00:00", "2018-11-01 00:00:01")),
        (("2024-03-01 00:03:45.287221", "2024-03-03 18:49:33.29"), ("2024-03-01", "2024-03-03")),
        (("631152000",), ("1990-01-01",)),
        (("4102444799",), ("2099-12-31",)),
        (("4102444800",), ("4102444800",)),
        (("1541030400", "17"), ("1541030400", "17")),
        (("2024-01", "2024-02"), ("2024-01", "2024-02")),
    ],
)
def test_numbers_that_are_times_are_shown_as_such(names: tuple[str, ...], shown: tuple[str, ...]) -> None:
    assert moments(names) == shown
    often = np.full(len(names), 100)
    rates = Rates(often, often // 10, often / 2_000, often / 500)
    found = Drift(rates, names, Interval(1, 1, 1), np.array([1.0]), 0.0, True, 0.2, 0.2).section()
    assert [row["from"] for row in found.tables[0].rows] == list(shown)
    assert found.numbers["periods"]["from"] == list(names)


def test_a_day_that_repeats_its_queries_has_no_new_ones() -> None:
    log = _days([10, 10, 10, 10, 10], [5, 5, 5, 5, 5])
    assert log.periods is not None
    again = ClickLog.of(
        features=np.zeros((5, 0)),
        documents=np.arange(5),
        offsets=np.arange(6),
        clicks=[5] * 5,
        impressions=[10, 10, 10, 10, 30],
        queries=["a", "b", "c", "d", "a"],
        periods=[0, 1, 2, 3, 4],
    )
    for each, new in ((log, 1.0), (again, 0.0)):
        drift = Drift.of(each)
        assert drift is not None
        assert (drift.new_queries, drift.queries_repeat) == (new, True)


@pytest.mark.parametrize(("shown", "repeat"), [(1, False), (2, True)])
def test_queries_repeat_if_there_are_more_pages_than_queries(shown: int, repeat: bool) -> None:  # noqa: FBT001
    drift = Drift.of(_days([1, 1, 1, 1, shown], [1, 0, 1, 0, 1]))
    assert drift is not None
    assert drift.queries_repeat is repeat
    # The first day has one page with a click, the last one a click on one page or on two.
    assert drift.ratio.mean == pytest.approx(1 / shown)


def _two_positions(early: list[list[int]], late: list[list[int]]) -> ClickLog:
    """Pages shown ten times with so many clicks at each position, one a query, on the first and on the second day."""
    lists = [*early, *late]
    return ClickLog.of(
        features=np.zeros((sum(map(len, lists)), 0)),
        documents=np.arange(sum(map(len, lists))),
        offsets=np.cumsum([0, *map(len, lists)]),
        clicks=np.concatenate(lists),
        impressions=[10] * len(lists),
        queries=np.arange(len(lists)),
        periods=[0] * len(early) + [1] * len(late),
    )


def test_positions_are_compared_each_with_itself_and_unknown_where_either_day_has_no_click() -> None:
    drift = Drift.of(_two_positions([[8, 0, 5]], [[2, 1, 0, 9]]))
    assert drift is not None
    np.testing.assert_array_equal(drift.by_position, [2 / 8, np.nan, np.nan, np.nan])
    # The fourth position is new; by the rates of the first day 8 + 0 + 5 clicks were to be expected at the others.
    assert drift.ratio.mean == pytest.approx((2 + 1 + 0) / (8 + 0 + 5))
    assert drift.periods.impressions.tolist() == [30, 40]
    assert drift.periods.clicks.tolist() == [13, 12]


def test_the_interval_of_the_ratio_is_that_of_resampled_queries() -> None:
    random = np.random.default_rng(0)
    early, late = (random.integers(1, high, size=(20, 2)).tolist() for high in (9, 6))
    log = _two_positions(early, late)
    drift = Drift.of(log)
    assert drift is not None
    drawing = QueryBootstrap.draw(40, samples=500, random=generator(0, "drift"))
    ratios = []
    for times in drawing.times:
        often = times[drawing.groups[units_of(log)]]
        expected = (often[:20, None] * early).sum(axis=0) / often[:20].sum() * often[20:].sum()
        ratios.append((often[20:, None] * late).sum() / expected.sum())
    low, high = percentiles(np.array(ratios), 0.95, 40)
    assert (drift.ratio.low, drift.ratio.high) == pytest.approx((float(low), float(high)))

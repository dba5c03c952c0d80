"""Every verdict of the doctor: counts in, verdict out, each threshold from both sides, quoted numbers by definition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ultr.arrays import Doubles
from ultr.bias import RankTest, ScalarTest
from ultr.bias.curves import BiasCurves, Curve
from ultr.bias.dispersion import Dispersion
from ultr.bias.predictability import Predictability
from ultr.data.click_log import ClickLog
from ultr.diagnosis import Verdict
from ultr.diagnosis.bias_dimension import BiasDimension
from ultr.diagnosis.curves_by_page import CurvesByPage, LevelCurve, PageCurves
from ultr.diagnosis.drift import Drift
from ultr.diagnosis.factor_rates import ClickRates
from ultr.diagnosis.position_bias import PositionBias
from ultr.diagnosis.position_predictability import PositionPredictability
from ultr.diagnosis.rates import Rates, click_rates, wilson
from ultr.diagnosis.volume import Volume
from ultr.metrics import Interval

GOOD, CAREFUL, BAD, UNKNOWN = Verdict.GOOD, Verdict.CAREFUL, Verdict.BAD, Verdict.UNKNOWN
VOLUME = Volume(
    pages=40_000,
    lists=4_800,
    queries=200,
    documents=800,
    shown=160_000,
    clicks=50_000,
    features=2,
    features_with_gaps=0,
    heaviest_query=0.1,
    shortest=2,
    longest=4,
    longest_share=0.75,
    short_pages=0,
    short_end_rate=0.0,
    short_end_expected=0.0,
    empty_pages=12_000,
    rows=400_000,
    put_aside={},
    robot_pages=0,
    robot_clicks=0,
)
SIZE = "40,000 pages of 200 queries have 50,000 clicks on 160,000 documents."


@pytest.mark.parametrize(
    ("change", "verdict", "answer", "advice"),
    [
        ({}, GOOD, SIZE, ""),
        ({"clicks": 999}, BAD, "999 clicks are too few to learn from.", "Log more before training."),
        (
            {"clicks": 1_000},
            CAREFUL,
            "1,000 clicks are few: expect wide intervals, and take a small model.",
            "Log more if you can.",
        ),
        (
            {"clicks": 9_999},
            CAREFUL,
            "9,999 clicks are few: expect wide intervals, and take a small model.",
            "Log more if you can.",
        ),
        ({"clicks": 10_000}, GOOD, "", ""),
        (
            {"queries": 99},
            CAREFUL,
            "99 queries are few, and a ranker must do well on others.",
            "Log more queries before judging a ranker by this log.",
        ),
        ({"queries": 100}, GOOD, "", ""),
        (
            {"heaviest_query": 0.2001},
            CAREFUL,
            "One query has 20% of the pages and decides much of what is learned.",
            "Consider a limit of pages for each query.",
        ),
        ({"heaviest_query": 0.2}, GOOD, "", ""),
        (
            {"empty_pages": 0},
            CAREFUL,
            "No page is without a click, so such pages were probably not logged and all click rates are too high.",
            "Log pages without clicks too.",
        ),
        ({"empty_pages": 1}, GOOD, "", ""),
        ({"empty_pages": None}, GOOD, "", ""),
        (
            {"short_pages": 100, "short_end_rate": 0.901, "short_end_expected": 0.2},
            BAD,
            "Pages seem to be logged only down to their last click: of those shorter than 4 documents, 90% end in one, "
            "where 20% are to be expected.",
            "Log every document that was shown, clicked or not.",
        ),
        ({"short_pages": 99, "short_end_rate": 0.97, "short_end_expected": 0.2}, GOOD, "", ""),
        ({"short_pages": 100, "short_end_rate": 0.9, "short_end_expected": 0.2}, GOOD, "", ""),
        ({"short_pages": 100, "short_end_rate": 0.95, "short_end_expected": 0.95}, GOOD, "", ""),
        (
            {"short_pages": 100, "short_end_rate": 0.98, "short_end_expected": 0.95},
            BAD,
            "Pages seem to be logged only down to their last click: of those shorter than 4 documents, 98% end in one, "
            "where 95% are to be expected.",
            "Log every document that was shown, clicked or not.",
        ),
        ({"robot_pages": 30, "robot_clicks": 500}, GOOD, "", ""),
        (
            {"robot_pages": 3_000, "robot_clicks": 600},
            CAREFUL,
            "3,000 pages look like a robot's, with 1.2% of the clicks.",
            "Prepare the log again with --drop-robots.",
        ),
        ({"put_aside": {"no query": 19_000, "no page": 1_000}}, GOOD, "", ""),
        (
            {"put_aside": {"no query": 19_000, "no page": 3_000}},
            CAREFUL,
            "5.5% of the raw rows were put aside.",
            "Look at rejected.parquet before trusting the rest.",
        ),
        ({"put_aside": None, "rows": None}, GOOD, "", ""),
        (
            {"clicks": 500, "queries": 50},
            BAD,
            "500 clicks are too few to learn from. 50 queries are few, and a ranker must do well on others.",
            "Log more before training. Log more queries before judging a ranker by this log.",
        ),
    ],
)
def test_volume(change: dict[str, Any], verdict: Verdict, answer: str, advice: str) -> None:
    volume = replace(VOLUME, **change)
    found = volume.section()
    size = SIZE.replace("50,000 clicks", f"{volume.clicks:,} clicks").replace(
        "200 queries", f"{volume.queries} queries"
    )
    assert (found.verdict, found.advice) == (verdict, advice)
    assert found.answer == (size if answer in ("", SIZE) else f"{size} {answer}")
    assert found.numbers["cut_after_clicks"] is ("Pages seem" in answer)
    assert volume.few_clicks is (volume.clicks < 10_000)


@pytest.mark.parametrize(
    ("change", "answer"),
    [
        (
            {"pages": 1, "queries": 1, "clicks": 1, "shown": 1},
            "1 page of 1 query has 1 click on 1 document. 1 click is too few to learn from. 1 query is few, and a "
            "ranker must do well on others.",
        ),
        (
            {"pages": 2, "queries": 2, "clicks": 2, "shown": 2},
            "2 pages of 2 queries have 2 clicks on 2 documents. 2 clicks are too few to learn from. 2 queries are few, "
            "and a ranker must do well on others.",
        ),
        ({"robot_pages": 1, "robot_clicks": 600}, f"{SIZE} 1 page looks like a robot's, with 1.2% of the clicks."),
    ],
)
def test_one_of_a_kind_is_singular(change: dict[str, Any], answer: str) -> None:
    assert replace(VOLUME, **change).section().answer == answer


def test_the_table_of_the_volume_has_shares_of_pages() -> None:
    gaps = replace(VOLUME, features_with_gaps=1, put_aside={"no query": 1_234})
    (table,) = gaps.section().tables
    assert {row[""]: row["number"] for row in table.rows} == {
        "pages": "40,000",
        "distinct lists": "4,800",
        "queries": "200",
        "pages of the most frequent query": "10.0%",
        "documents by query and features": "800",
        "documents shown": "160,000",
        "documents a page": "2 to 4 (75% have 4)",
        "clicks": "50,000, 1.25 a page",
        "pages without a click": "30.0%",
        "features": "2, 1 with missing values",
        "put aside: no query": "1,234",
    }
    (table,) = replace(VOLUME, empty_pages=None).section().tables
    rows = {row[""]: row["number"] for row in table.rows}
    assert (rows["pages without a click"], rows["features"]) == ("not known", "2")


def _pages(shown: list[int], clicks: list[int]) -> ClickLog:
    """So many pages, one a query, of which so many reach each position and have a click there."""
    lengths = [sum(count > page for count in shown) for page in range(shown[0])]
    places = np.concatenate([np.arange(length) for length in lengths])
    pages = np.repeat(np.arange(len(lengths)), lengths)
    return ClickLog.of(
        features=np.zeros((len(places), 0)),
        documents=np.arange(len(places)),
        offsets=np.cumsum([0, *lengths]),
        clicks=(pages < np.array(clicks)[places]).astype(int),
        queries=np.arange(len(lengths)),
    )


def test_the_last_position_counts_from_a_tenth_of_the_most_frequent_one_on() -> None:
    for shown, last in ((50, 3), (40, 3), (39, 2)):
        rates = [200 / 400, 60 / 400, 10 / shown]
        said = ClickRates.of(_pages([400, 400, shown], [200, 60, 10])).section().answer
        rate = rates[last - 1]
        one = f"Position 1 is clicked {0.5 / rate:.1f} times as often as position {last} (0.500 and {rate:.3f})"
        chance = f"Click rates do not fall beyond chance from position 1 (0.500) to position {last} ({rate:.3f})"
        assert said.startswith((one, chance))


def test_a_position_without_a_click_is_named_where_no_other_has_enough() -> None:
    said = ClickRates.of(_pages([400, 400, 400], [120, 9, 0])).section().answer
    assert said.startswith("Position 1 is clicked at a rate of 0.300, position 3 never")
    said = ClickRates.of(_pages([400, 400, 400], [120, 10, 0])).section().answer
    assert said.startswith("Position 1 is clicked 12.0 times as often as position 2 (0.300 and 0.025)")


@pytest.mark.parametrize("clicks", range(85, 125, 4))
def test_rates_fall_where_their_intervals_are_apart(clicks: int) -> None:
    """One page a query, so that intervals are those of Wilson, up to Q / (Q - 1) in the variance."""
    found = ClickRates.of(_pages([400, 400], [130, clicks])).section()
    rate = np.array([130, clicks]) / 400
    low, high = wilson(rate, np.full(2, 400 / (400 / 399)))
    falls = low[0] > high[1]
    assert (found.verdict, bool(found.advice)) == ((GOOD, False) if falls else (CAREFUL, True))
    times = f"Position 1 is clicked {rate[0] / rate[1]:.1f} times as often as position 2 (0.325 and {rate[1]:.3f})"
    chance = f"Click rates do not fall beyond chance from position 1 (0.325) to position 2 ({rate[1]:.3f})."
    assert found.answer == (
        f"{times}; how much of that is position and how much relevance, rates do not say." if falls else chance
    )
    assert (clicks < 95) is bool(falls)


@pytest.mark.parametrize(
    ("clicked", "said"),
    [
        ((40, 90), "by device, phone is clicked more (0.900) than desk (0.400)"),
        ((90, 40), "by device, desk is clicked more (0.900) than phone (0.400)"),
        ((50, 55), "the values of device do not differ beyond chance"),
    ],
)
def test_devices_are_compared_by_their_rates(clicked: tuple[int, int], said: str) -> None:
    pages = np.arange(200)
    log = ClickLog.of(
        features=np.zeros((200, 0)),
        documents=pages,
        offsets=np.arange(201),
        clicks=(pages % 100 < np.array(clicked)[pages // 100]).astype(int),
        queries=pages,
        device=np.where(pages < 100, "desk", "phone"),
    )
    assert said in ClickRates.of(log).section().answer.replace("By device", "by device").replace(
        "The values", "the values"
    )
    one = replace(log.select(pages < 100))
    assert "Device has one value only, so it can be left out" in ClickRates.of(one).section().answer


def test_the_interval_of_a_rate_is_wilsons_with_the_variance_between_queries() -> None:
    """var = Q / (Q - 1) sum (c_q - r n_q)^2 / n^2, and as many impressions as would give it by chance alone."""
    clicks, shown = np.arange(40) % 7, np.full(40, 10)
    log = ClickLog.of(
        features=np.zeros((40, 0)),
        documents=np.arange(40),
        offsets=np.arange(41),
        clicks=clicks,
        impressions=shown,
        queries=np.arange(40),
    )
    found = click_rates(log, np.zeros(40, dtype=np.int64), count=1)
    rate = clicks.sum() / 400
    effect = 40 / 39 * ((clicks - rate * 10) ** 2).sum() / (rate * (1 - rate) * 400)
    assert effect > 1
    n, z = 400 / effect, 1.959964
    half = z * np.sqrt(rate * (1 - rate) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    middle = (rate + z**2 / (2 * n)) / (1 + z**2 / n)
    assert (found.low[0], found.high[0]) == pytest.approx((middle - half, middle + half))


RATES = Rates(np.array([100, 100]), np.array([10, 12]), np.array([0.05, 0.06]), np.array([0.2, 0.3]))


def _drift(mean: float, low: float, high: float, *, new: float = 0.0, repeat: bool = True) -> Drift:
    return Drift(RATES, ("2024-01", "2024-02"), Interval(mean, low, high), np.array([mean]), new, repeat, 0.2, 0.2)


@pytest.mark.parametrize(
    ("drift", "changed", "many"),
    [
        (_drift(1.11, 1.01, 1.2), True, False),
        (_drift(1.09, 1.01, 1.2), False, False),
        (_drift(0.89, 0.8, 0.99), True, False),
        (_drift(0.91, 0.8, 0.99), False, False),
        (_drift(1.5, 1.0, 2.0), False, False),
        (_drift(1.5, 1.001, 2.0), True, False),
        (_drift(0.5, 0.2, 1.0), False, False),
        (_drift(0.5, 0.2, 0.999), True, False),
        (_drift(1.0, 0.9, 1.1, new=0.51), False, True),
        (_drift(1.0, 0.9, 1.1, new=0.5), False, False),
        (_drift(1.0, 0.9, 1.1, new=1.0, repeat=False), False, False),
        (_drift(1.3, 1.2, 1.4, new=0.9), True, True),
    ],
)
def test_drift(drift: Drift, changed: bool, many: bool) -> None:  # noqa: FBT001
    found = drift.section()
    assert found.verdict is (CAREFUL if changed or many else GOOD)
    assert ("Find out what changed" in found.advice) is changed
    assert ("Split by query" in found.advice) is many
    more = "more" if drift.ratio.mean > 1 else "fewer"
    share = f"{100 * abs(drift.ratio.mean - 1):.1f}%"
    assert found.answer.startswith(
        f"The last 20% of the pages have {share} {more} clicks than the first 20% at the same positions"
    )
    if drift.queries_repeat:
        assert (
            f"{100 * drift.new_queries:.0f}% of the last pages have a query that the log did not have" in found.answer
        )


@pytest.mark.parametrize(("early", "late", "said"), [(0, 1, "cannot be compared"), (1, 0, "have 100.0% fewer clicks")])
def test_a_part_without_clicks_is_not_called_good(early: int, late: int, said: str) -> None:
    """As where clicks were logged only from some day on."""
    pages = np.arange(100)
    log = ClickLog.of(
        features=np.zeros((100, 0)),
        documents=pages,
        offsets=np.arange(101),
        clicks=np.where(pages < 50, early, late),
        queries=pages,
        periods=pages // 10,
    )
    drift = Drift.of(log)
    assert drift is not None
    found = drift.section()
    assert (found.verdict, bool(found.advice)) == (CAREFUL, True)
    assert said in found.answer
    assert "nan" not in found.answer


@pytest.mark.parametrize(
    ("pages", "parts"),
    [
        ([20, 60, 20], (1, 2)),
        ([19, 61, 20], (1, 2)),
        ([10, 10, 30, 30, 10, 10], (2, 4)),
        ([10, 9, 31, 31, 9, 10], (2, 4)),
        ([100, 1], (1, 1)),
    ],
)
def test_the_first_and_the_last_part_have_a_fifth_of_the_pages_and_never_meet(
    pages: list[int], parts: tuple[int, int]
) -> None:
    """Whole periods; clicks in the first part at a rate of 1 / 2 and in the last one of 1, so that the ratio is 2."""
    count = len(pages)
    early, late = np.arange(count) < parts[0], np.arange(count) >= parts[1]
    log = ClickLog.of(
        features=np.zeros((count, 0)),
        documents=np.arange(count),
        offsets=np.arange(count + 1),
        clicks=np.where(late, 2 * np.array(pages), np.where(early, pages, 0)),
        impressions=2 * np.array(pages),
        queries=np.arange(count),
        periods=np.arange(count),
    )
    found = Drift.of(log)
    assert found is not None
    assert found.ratio.mean == pytest.approx(2.0)
    assert found.by_position.tolist() == [pytest.approx(2.0)]
    assert found.new_queries == 1.0


def _found(dimension: int, power: float | None, **change: Any) -> BiasDimension:
    rates = np.diag([0.5, 0.2, 0.1])
    test = RankTest(rates, (9.0, 1.0), (0.012, 0.4)[: max(dimension, 1)], dimension, 0.05, power)
    given = {
        "dispersion": Dispersion(1.25, 0.1, 0.05, 0.2, 40, 20),
        "reason": None,
        "caveats": ("one caveat; and more",),
    } | change
    return BiasDimension(ScalarTest(test, "documents by clicks", 1_234, 56_789, 4_321, **given))


@pytest.mark.parametrize(
    ("found", "verdict", "suggested", "rank", "said"),
    [
        (_found(1, 0.8), GOOD, 3, 1, "Nothing speaks against one number for each position (p = 0.012), and trust"),
        (_found(1, 0.79), UNKNOWN, 3, 1, "Nothing speaks against one number for each position (p = 0.012), but trust"),
        (_found(1, None), UNKNOWN, 3, 1, "would have been found with a chance of 0% only"),
        (_found(2, 0.1), CAREFUL, 3, 2, "has rank 2 beyond noise, and its second singular value is 0.400 of the first"),
        (_found(3, 0.1), CAREFUL, 4, 3, "has rank 3 beyond noise"),
    ],
)
def test_one_number_for_each_position(
    found: BiasDimension, verdict: Verdict, suggested: int, rank: int, said: str
) -> None:
    section = found.section()
    assert section.verdict is verdict
    assert (found.suggested, found.rank) == (suggested, rank)
    assert said in section.answer
    assert section.answer.endswith("One caveat.")
    assert section.numbers["suggested_dimension"] == suggested
    what, rates = section.tables
    rows = [list(row.values()) for row in what.rows]
    power = found.scalar.test.power if found.scalar.test else None
    assert rows[1:6] == [
        ["documents", "1,234"],
        ["impressions of them", "56,789"],
        ["clicks on them", "4,321"],
        ["chance to find trust bias", f"{100 * (power or 0):.0f}%"],
        ["variance of clicks over that of independent ones", "1.25"],
    ]
    assert rows[6] == ["rank 1 against 2", "p = 0.012"]
    assert list(rates.rows[0].values()) == ["1", "0.500", "0.000", "0.000"]


@pytest.mark.parametrize(
    ("identified", "said"), [(0, "identify none"), (1, "identify rank 1 only"), (2, None), (3, None)]
)
def test_a_suggested_dimension_beyond_the_links_is_said(identified: int, said: str | None) -> None:
    answer = _found(1, 0.9).section(identified).answer
    assert (said or "dimension 3 is for click rates of rank 2") in answer if said else "links" not in answer


@pytest.mark.parametrize(
    ("share", "verdict"),
    [(-0.02, GOOD), (0.499, GOOD), (0.5, CAREFUL), (0.899, CAREFUL), (0.9, BAD), (1.0, BAD)],
)
def test_features_that_give_the_position_away(share: float, verdict: Verdict) -> None:
    found = PositionPredictability(Predictability(share, 0.954, "queries"), "").section()
    assert found.verdict is verdict
    assert f"explains {100 * max(share, 0):.0f}% of where documents stand" in found.answer
    assert "knowing each document would explain 95%" in found.answer
    assert bool(found.advice) is (verdict is not GOOD)
    assert ("median" in found.answer) is False
    assert (
        "the median where one is missing"
        in PositionPredictability(Predictability(share, 0.95, "queries"), "", missing=True).section().answer
    )


def test_features_that_are_not_there_are_asked_for() -> None:
    assert "--features" in PositionPredictability(None, "the log has no features").section().advice
    other = PositionPredictability(None, "no list of the click log shows two documents").section()
    assert (other.verdict, other.advice) == (UNKNOWN, "")


def _curve(name: str, values: list[float], low: list[float], high: list[float], failed: float = 0.0) -> Curve:
    return Curve(name, np.array(values), np.array(low), np.array(high), failed, None)


def _bias(*curves: Curve) -> PositionBias:
    """These curves; other estimators cannot tell."""
    unknown = np.full(2, np.nan)
    known = {curve.estimator: curve for curve in curves}
    names = ("click-rate", "pivot", "adjacent-chain", "all-pairs", "em")
    every = [known.get(name, Curve(name, unknown, unknown, unknown, 1.0, "no swaps; log some")) for name in names]
    return PositionBias(BiasCurves(tuple(every), "queries", 100, 0.95), ("1", "2"), np.array([70.0, 30]))


PAIRS = _curve("all-pairs", [1.0, 0.4], [1.0, 0.3], [1.0, 0.5])


@pytest.mark.parametrize(
    ("other", "verdict", "said"),
    [
        (([1.0, 0.51], [1.0, 0.501], [1.0, 0.6]), CAREFUL, "at position 2, all-pairs says 0.40 and em 0.51"),
        (([1.0, 0.51], [1.0, 0.5], [1.0, 0.6]), GOOD, "The estimators agree"),
        (([1.0, 0.2], [1.0, 0.1], [1.0, 0.299]), CAREFUL, "all-pairs says 0.40 and em 0.20"),
        (([1.0, 0.2], [1.0, 0.1], [1.0, 0.3]), GOOD, "The estimators agree"),
        (([1.0, 0.2], [1.0, 0.0], [1.0, 0.299]), GOOD, "The estimators agree"),
    ],
)
def test_estimators_agree_where_their_intervals_touch(
    other: tuple[list[float], list[float], list[float]], verdict: Verdict, said: str
) -> None:
    found = _bias(PAIRS, _curve("em", *other)).section()
    assert found.verdict is verdict
    assert said in found.answer
    assert found.answer.startswith(
        "By all-pairs, position 2 is seen 0.40 times as often as position 1 (95 % interval 0.30-0.50)"
    )


@pytest.mark.parametrize(("factor", "differ"), [(1.24, False), (1.26, True)])
def test_estimators_differ_from_a_quarter_on(factor: float, differ: bool) -> None:  # noqa: FBT001
    narrow = _curve("all-pairs", [1.0, 0.4], [1.0, 0.399], [1.0, 0.401])
    for value in (0.4 * factor, 0.4 / factor):
        other = _curve("em", [1.0, value], [1.0, value - 0.001], [1.0, value + 0.001])
        found = _bias(narrow, other)
        assert found.disagreement() == (("all-pairs", "em", 1) if differ else None)


def test_of_several_that_differ_the_two_farthest_apart_are_named() -> None:
    tight = {"low": 0.99, "high": 1.01}

    def near(name: str, value: float) -> Curve:
        return _curve(name, [1.0, value], [1.0, value * tight["low"]], [1.0, value * tight["high"]])

    found = _bias(near("all-pairs", 0.4), near("pivot", 0.6), near("em", 0.2))
    assert found.disagreement() == ("pivot", "em", 1)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.05, 0.499, GOOD), (0.05, 0.5, UNKNOWN), (0.0, 0.4, UNKNOWN), (float("nan"), float("nan"), UNKNOWN)],
)
def test_an_interval_ten_times_as_wide_as_its_lower_end_says_nothing(low: float, high: float, verdict: Verdict) -> None:
    found = _bias(
        _curve("all-pairs", [1.0, 0.3], [1.0, low], [1.0, high], failed=0.56 if np.isnan(low) else 0.1),
        _curve("em", [1, 0.3], [1, low], [1, high]),
    )
    assert found.section().verdict is verdict
    assert found.told is (verdict is GOOD)
    assert ("next to nothing" in found.section().answer) is (verdict is UNKNOWN and low >= 0)
    assert ("In 56% of the resamples" in found.section().answer) is bool(np.isnan(low))


def test_one_estimator_alone_is_to_be_taken_with_care() -> None:
    found = _bias(PAIRS)
    assert (found.section().verdict, found.told) == (CAREFUL, True)
    assert found.section().answer.endswith("No other estimator can tell.")
    assert "click rate" not in found.section().answer
    with_rate = _bias(PAIRS, _curve("click-rate", [1.0, 0.25], [1.0, 0.2], [1.0, 0.3])).section()
    assert "; its click rate is 0.25 of the first's." in with_rate.answer
    nothing = _bias()
    assert (nothing.section().verdict, nothing.told) == (UNKNOWN, False)
    assert nothing.section().answer == "No estimator can tell: no swaps."
    by_em = _bias(_curve("em", [1.0, 0.4], [1.0, 0.3], [1.0, 0.5]))
    assert (by_em.section().verdict, by_em.told) == (CAREFUL, False)


def _level(name: str, value: float, draws: Doubles) -> LevelCurve:
    """A curve over two positions, the second of which varies from draw to draw."""
    return LevelCurve(name, 0.5, np.array([1.0, value]), np.stack([np.ones(len(draws)), draws], axis=1))


def _by_page(*curves: LevelCurve) -> PageCurves:
    return PageCurves("device", ("1", "2"), curves, 10**6)


SPREAD = np.linspace(-1, 1, 2_001)


@pytest.mark.parametrize(
    ("value", "verdict", "said"),
    [
        (
            0.3,
            CAREFUL,
            "with device phone, users see fewer positions than with desk, 1.3 against 1.5 down to position 2",
        ),
        (
            0.7,
            CAREFUL,
            "with device phone, users see more positions than with desk, 1.7 against 1.5 down to position 2",
        ),
        (0.52, GOOD, "with device phone, users see as many positions as with desk, up to chance"),
    ],
)
def test_devices_differ_where_the_interval_of_their_ratio_leaves_one_out(
    value: float, verdict: Verdict, said: str
) -> None:
    desk, phone = _level("desk", 0.5, np.full(2_001, 0.5)), _level("phone", value, value + 0.1 * SPREAD)
    found = _by_page(desk, phone)
    ratio = found.ratios()["phone"]
    assert ratio.mean == pytest.approx((1 + value) / 1.5)
    ends = np.quantile((1 + value + 0.1 * SPREAD) / 1.5, [0.025, 0.975])
    assert (ratio.low, ratio.high) == pytest.approx(tuple(ends), abs=1e-4)
    assert found.judged()[0] is verdict
    assert said in found.judged()[1][0]
    section = CurvesByPage((found,)).section()
    assert section.verdict is verdict
    assert bool(section.advice) is (verdict is CAREFUL)


def test_several_ratios_hold_together() -> None:
    """With two of them each has a level of 97.5 %."""
    levels = [_level(name, 0.5, 0.5 + 0.1 * SPREAD) for name in ("phone", "tablet")]
    found = _by_page(_level("desk", 0.5, np.full(2_001, 0.5)), *levels).ratios()
    ends = np.quantile((1.5 + 0.1 * SPREAD) / 1.5, [0.0125, 0.9875])
    for each in found.values():
        assert (each.low, each.high) == pytest.approx(tuple(ends), abs=1e-4)
    assert list(found) == ["phone", "tablet"]


@pytest.mark.parametrize(("failed", "told"), [(200, True), (201, False)])
def test_a_tenth_of_the_resamples_may_fail(failed: int, told: bool) -> None:  # noqa: FBT001
    draws = np.full(2_000, 0.3)
    draws[:failed] = np.nan
    found = _by_page(_level("desk", 0.5, np.full(2_000, 0.5)), _level("phone", 0.3, draws))
    assert ("phone" in found.ratios()) is told
    assert found.judged()[0] is (CAREFUL if told else UNKNOWN)
    assert ("For device phone it cannot be told" in CurvesByPage((found,)).section().answer) is not told
    assert np.isfinite(found.curves[1].band(10**6)[1][1]) == told


@pytest.mark.parametrize(("width", "told"), [(2.99, True), (3.01, False)])
def test_a_ratio_is_told_if_its_interval_spans_less_than_three_times(width: float, told: bool) -> None:  # noqa: FBT001
    """Half of the draws at either end, so that these are the ends of the interval."""
    low = 0.6
    draws = np.repeat([1.5 * low - 1, 1.5 * low * width - 1], 1_000)
    found = _by_page(_level("desk", 0.5, np.full(2_000, 0.5)), _level("phone", 0.5, draws))
    assert ("phone" in found.ratios()) is told

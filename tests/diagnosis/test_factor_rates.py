"""Click rates by bias factor: what is said of them, by rates and intervals made up by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ultr.data.click_log import ClickLog
from ultr.diagnosis import Verdict
from ultr.diagnosis.factor_rates import ClickRates, FactorRates
from ultr.diagnosis.rates import Rates

Level = tuple[int, int, float, float]
"""Impressions, clicks, and the ends of the interval of their rate."""
CHECK = "Check that the column of the position is the place on the page, from the top."
DOUBT = "how much of that is position and how much relevance, rates do not say."


def factor(name: str, *levels: Level, fixed: bool = False) -> FactorRates:
    shown, clicks, low, high = (np.array(column) for column in zip(*levels, strict=True))
    names = tuple(f"{name[0]}{number}" for number in range(1, len(levels) + 1))
    return FactorRates(name, names, Rates(shown, clicks, low, high), fixed)


@pytest.mark.parametrize(
    ("levels", "verdict", "answer"),
    [
        (
            [(1_000, 500, 0.45, 0.55), (1_000, 200, 0.15, 0.25)],
            Verdict.GOOD,
            f"Position p1 is clicked 2.5 times as often as position p2 (0.500 and 0.200); {DOUBT}",
        ),
        (
            [(1_000, 500, 0.45, 0.55), (1_000, 400, 0.35, 0.45)],
            Verdict.CAREFUL,
            "Click rates do not fall beyond chance from position p1 (0.500) to position p2 (0.400).",
        ),
        (
            [(1_000, 500, 0.4501, 0.55), (1_000, 400, 0.35, 0.45)],
            Verdict.GOOD,
            f"Position p1 is clicked 1.2 times as often as position p2 (0.500 and 0.400); {DOUBT}",
        ),
        (
            [(1_000, 500, 0.45, 0.55), (1_000, 0, 0.0, 0.01)],
            Verdict.GOOD,
            f"Position p1 is clicked at a rate of 0.500, position p2 never; {DOUBT}",
        ),
        (  # one click on the last position is too few to say how much less it is clicked
            [(1_000, 500, 0.45, 0.55), (1_000, 10, 0.0, 0.02), (1_000, 9, 0.0, 0.02), (1_000, 0, 0.0, 0.01)],
            Verdict.GOOD,
            f"Position p1 is clicked 50.0 times as often as position p2 (0.500 and 0.010); {DOUBT}",
        ),
        (
            [(1_000, 500, 0.45, 0.55), (1_000, 10, 0.0, 0.02), (1_000, 10, 0.0, 0.02), (1_000, 1, 0.0, 0.01)],
            Verdict.GOOD,
            f"Position p1 is clicked 50.0 times as often as position p3 (0.500 and 0.010); {DOUBT}",
        ),
        (
            [(1_000, 500, 0.45, 0.55), (1_000, 9, 0.0, 0.02), (1_000, 5, 0.0, 0.02)],
            Verdict.GOOD,
            f"Position p1 is clicked 100.0 times as often as position p3 (0.500 and 0.005); {DOUBT}",
        ),
        (  # the first and the last position are shown too seldom
            [
                (99, 0, 0.0, 0.1),
                (500, 250, 0.45, 0.55),
                (1_000, 300, 0.28, 0.32),
                (100, 10, 0.05, 0.15),
                (99, 99, 0.9, 1.0),
            ],
            Verdict.GOOD,
            f"Position p2 is clicked 5.0 times as often as position p4 (0.500 and 0.100); {DOUBT}",
        ),
    ],
)
def test_positions(levels: list[Level], verdict: Verdict, answer: str) -> None:
    found = ClickRates((factor("position", *levels),)).section()
    assert (found.verdict, found.answer) == (verdict, answer)
    assert found.advice == ("" if verdict is Verdict.GOOD else CHECK)
    (table,) = found.tables
    assert (table.title, table.folded) == ("click rate by position, 95 % intervals", True)


@pytest.mark.parametrize(
    ("levels", "fixed", "said"),
    [
        (
            [(100, 50, 0.4, 0.6), (100, 20, 0.1, 0.3), (100, 30, 0.2, 0.45)],
            False,
            "By device, d1 is clicked more (0.500) than d2 (0.200).",
        ),
        ([(100, 50, 0.3, 0.6), (100, 20, 0.1, 0.3)], False, "The values of device do not differ beyond chance."),
        (
            [(100, 50, 0.31, 0.6), (100, 20, 0.1, 0.3)],
            False,
            "By device, d1 is clicked more (0.500) than d2 (0.200).",
        ),
        (
            [(0, 0, np.nan, np.nan), (100, 20, 0.1, 0.3), (1, 1, 0.9, 1.0)],
            False,
            "By device, d3 is clicked more (1.000) than d2 (0.200).",
        ),
        (
            # What was shown five times does not hide what was shown thousands of times.
            [(7_495, 1_881, 0.24, 0.26), (7_500, 285, 0.034, 0.042), (5, 0, 0.0, 0.43)],
            False,
            "By device, d1 is clicked more (0.251) than d2 (0.038).",
        ),
        ([(0, 0, np.nan, np.nan), (100, 20, 0.1, 0.3)], False, "Device has one value only, so it can be left out."),
        (
            [(100, 50, 0.4, 0.6), (100, 20, 0.1, 0.3)],
            True,
            "Every page has one click, so that rates do not tell whether device matters.",
        ),
    ],
)
def test_other_factors(levels: list[Level], fixed: bool, said: str) -> None:  # noqa: FBT001
    position = factor("position", (1_000, 500, 0.45, 0.55), (1_000, 200, 0.15, 0.25))
    found = ClickRates((position, factor("device", *levels, fixed=fixed))).section()
    assert found.answer == f"Position p1 is clicked 2.5 times as often as position p2 (0.500 and 0.200); {DOUBT} {said}"
    assert found.numbers["factors"]["device"]["levels"] == [f"d{n}" for n in range(1, len(levels) + 1)]
    assert [table.title for table in found.tables] == [
        "click rate by position, 95 % intervals",
        "click rate by device, 95 % intervals",
    ]


@pytest.mark.parametrize(
    ("clicks", "impressions", "offsets", "fixed"),
    [
        ([2, 1, 0, 3], [3, 3], [0, 2, 4], True),
        ([2, 0, 0, 3], [3, 3], [0, 2, 4], False),  # a page without a click
        ([2, 2, 0, 2], [3, 3], [0, 2, 4], False),  # one with two
        ([3, 2, 2, 2], [3, 3, 3], [0, 2, 4, 4], False),  # one without documents
    ],
)
def test_rates_are_fixed_where_every_page_has_one_click(
    clicks: list[int],
    impressions: list[int],
    offsets: list[int],
    fixed: bool,  # noqa: FBT001
) -> None:
    log = ClickLog.of(
        features=np.zeros((4, 0)),
        documents=[0, 1, 2, 3],
        offsets=offsets,
        clicks=clicks,
        impressions=impressions,
        device=["desk", "desk", "phone", "phone"],
    )
    position, device = ClickRates.of(log).factors
    assert (position.name, position.fixed) == ("position", False)
    assert (device.name, device.fixed) == ("device", fixed)

"""Lists in two orders: rows, arrows and drawings."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from tests.reporting.fakes import LOG, model

from ultr.data.click_log import ClickLog
from ultr.reporting.inputs import ReportInputs
from ultr.reporting.moved import Moved, brief_start, moved_lists

HATS = Moved("hats", 25, 10, np.array([7, 8, 9]), np.array([5, 2, 0]), ("good", "", "bad"), np.array([2, 0, 1]))
"""The last of three comes first."""


def test_rows_say_who_stood_and_who_stands_at_each_place() -> None:
    assert HATS.distance == 2 + 1 + 1
    assert HATS.caption == "query hats · 10 impressions"
    assert replace(HATS, impressions=1).caption == "query hats · 1 impression"
    rows = HATS.rows(("before", "after"), ["a", "b", "c"], ["x", "y", "z"])
    columns = ["place", "before", "clicks", "grade", "after", "move", "because of"]
    assert list(rows[0]) == columns
    assert [tuple(row.values()) for row in rows] == [
        ("1", "a", "5 (50%)", "good", "c", "▲ 2", "x"),
        ("2", "b", "2 (20%)", "", "a", "▼ 1", "y"),
        ("3", "c", "0 (0%)", "bad", "b", "▼ 1", "z"),
    ]
    (first,) = HATS.rows(("before", "after"), ["a", "b", "c"], most=1)
    assert list(first) == columns[:-1]


def test_a_drawing_has_both_orders_with_click_rates_and_arrows() -> None:
    names = ["a hat", "quite a long name of a hat", "c"]
    assert HATS.drawing(("before", "after"), names).description == (
        "before: 1. a hat 50%, 2. quite a long n… 20%, 3. c 0%. after: c ▲ 2, a hat ▼ 1, quite a long n… ▼ 1"
    )


def test_a_pointer_on_a_line_reads_the_whole_name_both_places_and_the_clicks() -> None:
    svg = HATS.drawing(("before", "after"), ["a hat", "quite a long name of a hat", "c"]).svg("hats")
    assert re.findall("<title>(.*?)</title>", svg) == [
        "c: before at place 3, after at place 1; clicked on 0% of 10 impressions",
        "a hat: before at place 1, after at place 2; clicked on 50% of 10 impressions",
        "quite a long name of a hat: before at place 2, after at place 3; clicked on 20% of 10 impressions",
    ]


@pytest.mark.parametrize(("count", "drawn"), [(15, 15), (16, 15)])
def test_fifteen_documents_of_a_list_are_drawn(count: int, drawn: int) -> None:
    long = Moved("q", 1, 1, np.arange(count), np.zeros(count, dtype=np.int64), (), np.arange(count))
    description = long.drawing(("before", "after"), [f"d{n}" for n in range(count)]).description
    assert description.count(". d") == drawn
    assert description.count("=") == drawn


@pytest.mark.parametrize(("name", "short"), [("x" * 15, "x" * 15), ("y" * 16, "y" * 14 + "…")])
def test_names_of_a_drawing_have_fifteen_letters_at_most(name: str, short: str) -> None:
    one = Moved("q", 1, 1, np.arange(1), np.zeros(1, dtype=np.int64), (), np.arange(1))
    assert one.drawing(("a", "b"), [name]).description == f"a: 1. {short} 0%. b: {short} ="
    assert brief_start(name, 15) == short


def test_lists_are_ranked_by_a_model_against_what_was_shown_or_another_model() -> None:
    """Scores fall with the document's number; hats show 0, 1, 2, shoes 3, 2 and socks 1, 0, 3."""
    up, down = model("up"), model("down", sign=-1.0)
    found = moved_lists(LOG, None, up)
    assert [(each.query, each.distance, each.impressions) for each in found] == [
        ("socks", 2, 20),
        ("shoes", 2, 5),
        ("hats", 0, 10),
    ]
    assert found[0].order.tolist() == [1, 0, 2]
    assert found[0].documents.tolist() == [1, 0, 3]
    assert found[0].clicks.tolist() == [4, 4, 2]
    turned = {each.query: each for each in moved_lists(LOG, up, down)}
    assert turned["hats"].order.tolist() == [2, 1, 0]
    assert turned["socks"].documents.tolist() == [0, 1, 3]
    assert turned["socks"].clicks.tolist() == [4, 4, 2]
    assert turned["shoes"].documents.tolist() == [2, 3]
    assert turned["shoes"].clicks.tolist() == [1, 3]
    assert turned["socks"].grades == ()


def test_documents_that_nobody_judged_have_no_grade() -> None:
    log = ClickLog.of(
        features=[[1.0], [2.0]],
        documents=[0, 1, 1, 0],
        offsets=[0, 2, 4],
        clicks=[0, 0, 0, 0],
        impressions=[1, 2],
        queries=["a", "a"],
        grades=["good", None],
    )
    (found,) = moved_lists(log, None, model("up"))
    assert (found.grades, found.pages, found.impressions) == (("", "good"), 3, 2)


def test_equal_moves_go_by_impressions_and_then_by_query() -> None:
    log = ClickLog.of(
        features=[[1.0], [2.0]],
        documents=[0, 1] * 3,
        offsets=[0, 2, 4, 6],
        clicks=[0] * 6,
        impressions=[1, 5, 1],
        queries=["z", "y", "x"],
    )
    assert [each.query for each in moved_lists(log, None, model("up"))] == ["y", "x", "z"]


def test_the_list_shown_most_is_so_on_all_devices_and_days_together() -> None:
    """The first row has more impressions than any other, but its list has not."""
    log = ClickLog.of(
        features=[[1.0], [2.0]],
        documents=[0, 1, 1, 0, 1, 0, 1, 0],
        offsets=[0, 2, 4, 6, 8],
        impressions=[5, 4, 3, 2],
        clicks=[1, 1, 2, 1, 3, 0, 0, 1],
        queries=["hats"] * 4,
        device=["desk", "desk", "desk", "desk", "phone", "phone", "desk", "desk"],
        periods=["monday", "monday", "monday", "tuesday"],
    )
    assert log.lists == 4
    (found,) = moved_lists(log, None, model("up"))
    assert (found.documents.tolist(), found.impressions, found.pages) == ([1, 0], 4 + 3 + 2, 14)
    assert found.clicks.tolist() == [2 + 3 + 0, 1 + 0 + 1]
    shift = ReportInputs((model("up"),), log=log).frequent
    assert (shift.documents.tolist(), shift.impressions.tolist()) == ([1, 0], [9])

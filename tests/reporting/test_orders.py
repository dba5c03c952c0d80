"""Queries whose order changes most: which are shown and what is said."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reporting.fakes import FACTORS, LOG, model

from ultr.data.click_log import ClickLog
from ultr.reporting import orders as module
from ultr.reporting.inputs import ReportInputs
from ultr.reporting.orders import orders


@pytest.fixture(autouse=True)
def _reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reason for each document, by its number."""
    monkeypatch.setattr(module, "reasons", lambda _, __, documents: [{"price": float(each)} for each in documents])


def test_the_queries_with_the_largest_moves_are_shown_with_reasons() -> None:
    found = orders(ReportInputs((model("new", factors=FACTORS),), log=LOG))
    assert found.title == "Which queries change most?"
    assert [table.title for table in found.tables] == ["query socks · 20 impressions", "query shoes · 5 impressions"]
    assert all(table.folded for table in found.tables)
    assert list(found.figures) == [table.title for table in found.tables]
    first = found.tables[0].rows[0]
    assert (first["as shown"], first["new order"], first["because of"]) == ("document 1", "document 0", "price +0")
    socks = found.numbers["queries"][0]
    assert (socks["first_order"], socks["second_order"], socks["distance"]) == ([1, 0, 3], [0, 1, 3], 2)
    # Of all shown lists, two documents each of socks and shoes change places 1 and 2.
    shift = found.numbers["exposure_shift"]
    assert (shift["growth"], shift["fall"]) == (2.0, 2.0)
    assert "With new against the most frequent lists, half of the results get at most " in found.answer
    assert found.answer.startswith("The queries with the largest moves, each with its most frequent list.")


def test_two_models_are_compared_with_each_other() -> None:
    new, other = model("new", factors=FACTORS), model("other", factors=FACTORS, sign=-1.0)
    found = orders(ReportInputs((new, other), log=LOG, chosen="new"), against=other)
    assert found.title == "Where do the two orders differ most?"
    assert [table.title.split()[1] for table in found.tables] == ["socks", "hats", "shoes"]
    first = found.tables[0].rows[0]
    assert (first["by new"], first["by other"], first["because of"]) == ("document 0", "document 3", "price +3")
    assert "With other against new, half of the results" in found.answer
    assert "the one that rises most gets 3.0 times as much" in found.answer


def test_four_queries_are_shown() -> None:
    count = 5
    log = ClickLog.of(
        features=[[1.0], [2.0]],
        documents=[0, 1] * count,
        offsets=np.arange(0, 2 * count + 1, 2),
        clicks=[0, 1] * count,
        queries=np.arange(count),
    )
    found = orders(ReportInputs((model("new", factors=FACTORS),), log=log))
    assert len(found.tables) == 4


def test_an_order_that_stays_is_said_to_and_a_missing_log_is_asked_for() -> None:
    same = ClickLog.of(features=[[2.0], [1.0]], documents=[0, 1], offsets=[0, 2], clicks=[0, 1])
    found = orders(ReportInputs((model("new", factors=FACTORS),), log=same))
    assert (found.answer, found.tables) == ("Both orders are the same for every query.", [])
    none = orders(ReportInputs((model("new", factors=FACTORS),)))
    assert (none.answer, none.advice) == ("", "This needs the log: give --log FOLDER.")

"""The first screen of a report, sentence by sentence."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.reporting.test_verdicts import _inputs, _moved

from ultr.data.click_log import ClickLog
from ultr.evaluation.comparison import AS_SHOWN
from ultr.metrics import ExposureShift, Interval, PairedTest
from ultr.pages import Verdict
from ultr.reporting.decision import ExpectedGain, decision, heads, next_steps

LEAD = Interval(0.02, 0.012, 0.04)
"""5 % more clicks, 3 to 10, of 0.4 a page today."""
RESTS = (
    "It rests on 1,234 clicks of the whole log, as good as 567 clicks of equal weight: each counts by how seldom its "
    "place is looked at. No user has seen the new order yet."
)
UNSIZED = (
    "Groups of documents lose clicks by position in different ways, as where users trust high places, so that "
    "differences look larger than they are; with more pages, the log may say by how much."
)


@pytest.mark.parametrize(
    ("difference", "winner", "rejected", "said"),
    [
        (
            LEAD,
            "new",
            False,
            "Expected: 3% to 10% more clicks with new than with the order that users see today. The best estimate is "
            f"+5%; 19 such ranges in 20 hold the truth. {RESTS}",
        ),
        (
            Interval(-0.02, -0.04, -0.012),
            AS_SHOWN,
            True,
            "Expected: fewer clicks with new than with the order that users see today; by how much, this log cannot "
            f"tell. {UNSIZED} {RESTS} One number for each position is not enough to describe these users.",
        ),
        (
            LEAD,
            None,
            None,
            "Whether new would bring more clicks than the order that users see today, this log cannot tell. The log "
            f"does not tell. {RESTS} Whether one number for each position is enough, the clicks do not tell.",
        ),
        (
            None,
            None,
            False,
            "Whether new would bring more clicks than the order that users see today, this log cannot tell. The log "
            f"does not tell. {RESTS}",
        ),
    ],
)
def test_how_many_more_clicks_and_how_sure(
    difference: Interval | None,
    winner: str | None,
    rejected: bool | None,  # noqa: FBT001
    said: str,
) -> None:
    part = decision(_inputs(difference, winner, rejected=rejected)).parts[1]
    asked = "Are there more clicks" if UNSIZED in said else "How many more clicks"
    assert (part.title, part.answer, part.advice) == (f"{asked}, and how sure is that?", said, "Note: one.")


@pytest.mark.parametrize(
    ("rejected", "adjusted", "sized", "told"),
    [
        (False, False, True, True),
        (False, True, True, True),
        (False, True, False, False),
        (True, True, True, True),
        (True, True, False, False),
        (True, False, True, False),
        (None, False, True, True),
    ],
)
def test_no_size_is_promised_where_bias_that_differs_is_in_the_estimate(
    *, rejected: bool | None, adjusted: bool, sized: bool, told: bool
) -> None:
    """Known by the answer itself, or by the test where the answer does not allow for it."""
    inputs = _inputs(LEAD, "new", rejected=rejected)
    answer = inputs.against_shown.value_against_shown
    inputs.against_shown.value_against_shown = replace(answer, adjusted=adjusted, sized=sized)
    gain = ExpectedGain.of(inputs)
    assert gain is not None
    assert (gain.percent is not None) is told
    assert gain.sentence("new") == (
        "Expected: 3% to 10% more clicks with new than with the order that users see today."
        if told
        else "Expected: more clicks with new than with the order that users see today; by how much, this log cannot "
        "tell."
    )


def test_an_estimate_that_allows_for_trust_is_not_called_rough() -> None:
    inputs = _inputs(LEAD, rejected=True)
    answer = inputs.against_shown.value_against_shown
    inputs.against_shown.value_against_shown = replace(answer, adjusted=True)
    said = decision(inputs).parts[1].answer
    assert said.endswith(
        "yet. One number for each position is not enough to describe these users, which the estimate allows for as far "
        "as the log shows it."
    )


def test_a_ranker_by_a_value_that_the_log_lacks_is_said_to_be_measured_by_clicks() -> None:
    inputs = _inputs(LEAD)
    inputs.subject.ranker.options = {"value": "margin"}
    said = decision(inputs).parts[1].answer
    assert said.endswith("yet. new ranks by a value that this log has no signals of; this is about clicks.")


def test_without_an_estimate_nothing_is_said_of_evidence_and_of_queries_that_lose() -> None:
    inputs = _inputs(None, None)
    inputs.against_shown.values = {}
    found = decision(inputs)
    assert found.parts[1].answer.endswith("this log cannot tell. The log does not tell.")
    assert found.numbers["queries_that_lose"] is None
    assert found.parts[-1].answer.endswith("the one that falls most 1/2.0.")
    gain = ExpectedGain.of(inputs)
    assert gain is not None
    assert (gain.verdict, gain.percent, gain.clicks, gain.effective_clicks) == (Verdict.UNKNOWN, None, 0.0, 0.0)
    assert found.numbers["expected_gain"]["percent"] is None


def test_a_log_without_a_comparison_has_no_verdict() -> None:
    inputs = _inputs(LEAD, against_shown=None)
    found = decision(inputs)
    assert [part.title for part in found.parts] == ["What changes for users?", "What can go wrong?"]
    assert (found.verdict, found.badge, found.numbers["expected_gain"]) == (None, "", None)
    assert next_steps(inputs) == []


def test_judges_are_heard_between_clicks_and_risks() -> None:
    evaluation = SimpleNamespace(mean=lambda measure: 0.5)
    leads = {"raw": PairedTest(0.1, 0.05, 0.15, 0.01), "old": PairedTest(0.0, -0.1, 0.1, 1.0)}
    inputs = _inputs(LEAD, leads=leads, evaluations={"new": evaluation}, judged_name="the test part")
    parts = decision(inputs).parts
    assert [part.title for part in parts] == [
        "What changes for users?",
        "How many more clicks, and how sure is that?",
        "What do people say who judged results?",
        "What can go wrong?",
    ]
    assert parts[2].answer == (
        "By nDCG@10 on the test part, new is better than raw by 25.0%; worse than old by 0.0%, which may be chance."
    )


def test_the_five_queries_that_lose_most_are_shown_and_all_are_counted() -> None:
    names = [f"query {number}" for number in range(8)]
    log = ClickLog.of(
        features=np.zeros((8, 1)),
        documents=np.arange(8),
        offsets=np.arange(9),
        clicks=[9] * 8,
        impressions=[20] * 8,
        queries=names,
    )
    inputs = _inputs(LEAD)
    old, new = [9.0] * 8, [9.0, 10.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0]
    values = {
        name: SimpleNamespace(totals=np.array(totals), bases=np.full(8, 20.0), clicks=1.0, effective_clicks=1.0)
        for name, totals in (("new", new), (AS_SHOWN, old))
    }
    inputs.against_shown.values, inputs.against_shown.unseen.log = values, log
    found = decision(inputs)
    losing = found.numbers["queries_that_lose"]
    assert (losing["queries"], losing["of"], losing["share_of_pages"]) == (6, 8, 6 / 8)
    assert [query for query, *_ in losing["worst"]] == [f"query {number}" for number in (7, 6, 5, 4, 3)]
    (table,) = found.parts[-1].tables
    assert (table.title, table.folded) == ("queries that may lose most", True)
    assert dict(table.rows[0]) == {
        "query": "query 7", "pages": "20", "clicks a page today": "0.45", "expected": "0.15",
    }  # fmt: skip
    assert found.parts[-1].answer.endswith(
        " By the same estimate, 6 of 8 queries, with 75% of the pages, would get fewer clicks; for a single query that "
        "is a guess."
    )
    # With trust bias taken off there is an estimate for all queries, and these numbers are not it.
    inputs.against_shown.value_against_shown = replace(inputs.against_shown.value_against_shown, adjusted=True)
    adjusted = decision(inputs)
    assert adjusted.numbers["queries_that_lose"] is None
    assert not adjusted.parts[-1].tables
    assert "would get fewer" not in adjusted.parts[-1].answer


def test_what_changes_is_said_with_the_number_of_queries() -> None:
    moved = [_moved("a", [1, 0, 2, 3], 30), _moved("b", [0, 1, 3, 2], 60), _moved("c", [0, 1, 2, 3], 10)]
    assert decision(_inputs(LEAD, moved=moved)).parts[0].answer == (
        "On 30% of pages another result stands first, and on 60% the first three are not the same three. (3 queries "
        "with several results, each with the list that was shown most for it.)"
    )
    none = decision(_inputs(LEAD, moved=[]))
    assert (none.numbers["another_first"], none.parts[0].answer[:8]) == (0.0, "Nothing:")
    one = decision(_inputs(LEAD, moved=[_moved("a", [1, 0], 1)]))
    assert one.numbers["another_first"] == 1.0


@pytest.mark.parametrize(
    ("winner", "steps"),
    [
        (
            "new",
            [
                "Look at the most frequent queries below, and at those that may lose.",
                "Limit how far documents may move, if that matters: ultr train dla --log 'my log' --safe auto --out "
                "'my models/new-safe'",
                "Show it to a small part of the users and count their clicks: ultr export 'my models/new', then ultr "
                "serve.",
            ],
        ),
        (AS_SHOWN, ["Keep the order of today.", "Find out why: the sections below, and ultr doctor on the log."]),
        (
            None,
            [
                "Do not replace the order of today for all users on this evidence.",
                "Limit how far documents may move, if that matters: ultr train dla --log 'my log' --safe auto --out "
                "'my models/new-safe'",
                "Let users decide: show both orders, each to a part of them, or log some swaps and train again.",
            ],
        ),
    ],
)
def test_steps_by_verdict(winner: str | None, steps: list[str]) -> None:
    inputs = _inputs(LEAD, winner, shift=ExposureShift(10.0, 1.0, 1.0), log_name="my log")
    assert next_steps(inputs) == steps


def test_the_command_for_a_safe_one_is_that_of_the_training() -> None:
    inputs = _inputs(LEAD, "new", shift=ExposureShift(10.0, 1.0, 1.0), log_name="log")
    command = "ultr train dla --relevance trees --safe 2 --log 'my log' --out new --steps 40"
    inputs.subject.manifest.origin = SimpleNamespace(command=command)
    assert next_steps(inputs)[1].endswith(
        ": ultr train dla --relevance trees --log 'my log' --steps 40 --safe auto --out 'my models/new-safe'"
    )


def test_heads_say_how_often_their_list_was_shown_and_how_documents_are_called() -> None:
    moved = [_moved("hats", [1, 0], 1_000, pages=2_500)]
    found = heads(_inputs(moved=moved))
    assert found is not None
    assert [table.title for table in found.tables] == ["query hats: 2,500 impressions, 1,000 of them with this list"]
    assert found.answer == (
        "Those with several results, each with the list that was shown most for it. The share is how often a result "
        "was clicked there. This log has no ids of documents; they go by their rows in it."
    )
    assert list(found.tables[0].rows[0]) == ["place", "today", "clicks", "by new", "move"]
    assert found.numbers == [{"query": "hats", "impressions": 2_500, "distance": 2}]
    named = heads(_inputs(moved=moved, document_ids=np.array(["a", "b"])))
    assert named is not None
    assert named.answer.endswith("clicked there.")
    assert heads(_inputs(log=None)) is None

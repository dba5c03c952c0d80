"""The first sentences of a report and the parts of its page."""

from __future__ import annotations

import math
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from tests.reporting.fakes import FACTORS, LOG, model

from ultr.evaluation.trial import Answer
from ultr.metrics import Interval, PairedTest
from ultr.pages import Section, Verdict
from ultr.reporting.decision import ExpectedGain
from ultr.reporting.inputs import ReportInputs
from ultr.reporting.report import _quality, _summary, comparison_report, examination, report


def _inputs(leads: dict[str, PairedTest] | None = None, **change: Any) -> Any:
    own = SimpleNamespace(interval=lambda measure: Interval(0.7125, 0.7, 0.75))
    given = {
        "subject": SimpleNamespace(name="new"),
        "evaluations": {"new": own},
        "judged_name": "the test part",
        "leads": leads or {},
        "comparison": None,
        "against_shown": None,
    }
    return SimpleNamespace(**(given | change))


OWN = "new has an nDCG@10 of 0.713 on the test part (95 % interval 0.700 to 0.750)"


@pytest.mark.parametrize(
    ("test", "said"),
    [
        (PairedTest(0.125, 0.0625, 0.25, 0.01), "0.125 above raw (beyond chance)"),
        (PairedTest(0.125, 0.0, 0.25, 0.05), "0.125 above raw (within chance)"),
        (PairedTest(-0.125, -0.25, -0.0625, 0.01), "0.125 below raw (beyond chance)"),
        (PairedTest(-0.125, -0.25, 0.0, 0.05), "0.125 below raw (within chance)"),
        (PairedTest(0.0, 0.0, 0.0, 1.0), "0.000 below raw (within chance)"),
    ],
)
def test_leads_are_beyond_chance_if_their_interval_leaves_zero_out(test: PairedTest, said: str) -> None:
    assert _quality(_inputs({"raw": test})) == f"{OWN}: {said}."
    assert _quality(_inputs({"raw": test, "old": test})) == f"{OWN}: {said}, {said.replace('raw', 'old')}."


def test_a_single_query_has_no_interval() -> None:
    alone = SimpleNamespace(interval=lambda measure: Interval(0.7125, math.nan, math.nan))
    lead = PairedTest(0.125, math.nan, math.nan, 1.0)
    said = "new has an nDCG@10 of 0.713 on the test part: 0.125 above raw (within chance)."
    assert _quality(_inputs({"raw": lead}, evaluations={"new": alone})) == said


def test_without_leads_or_labels() -> None:
    assert _quality(_inputs()) == f"{OWN}."
    assert _quality(_inputs(evaluations={})) == "There are no labels to measure it by."


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer("new is better", "", winner="new"), "By clicks alone, new is better than raw."),
        (Answer("raw is better", "", winner="raw"), "By clicks alone, new is worse than raw."),
        (Answer("cannot tell", ""), "Whether new is better than raw, this log cannot tell."),
        (Answer("they rank alike", ""), "new and raw rank alike."),
    ],
)
def test_without_labels_clicks_say_which_of_two_is_better(answer: Answer, said: str) -> None:
    found = SimpleNamespace(names=("raw", "new"), value=answer)
    assert _quality(_inputs(evaluations={}, comparison=found)) == said


def test_the_gain_comes_before_the_quality(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _summary(_inputs()) == f"{OWN}."
    gain = ExpectedGain(Verdict.GOOD, Interval(0.06, 0.04, 0.09), "", 1.0, 1.0)
    monkeypatch.setattr(ExpectedGain, "of", lambda inputs: gain)
    assert _summary(_inputs()) == (
        f"Expected: 4% to 9% more clicks with new than with the order that users see today. {OWN}."
    )


def test_the_doctors_findings_are_folded_parts() -> None:
    found = SimpleNamespace(headline="All is well.", findings=[Section("volume")], as_json=lambda: {"log": "x"})
    section = examination(SimpleNamespace(diagnosis=found, log_name="my log"))  # type: ignore[arg-type]
    assert (section.answer, [part.folded for part in section.parts]) == ("All is well.", [True])
    assert section.commands == ["ultr doctor 'my log' --html doctor.html"]
    none = examination(SimpleNamespace(diagnosis=None))  # type: ignore[arg-type]
    assert none.advice == "This needs a log with clicks: give --log FOLDER."


def test_pages_have_the_decision_first_and_everything_else_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[report.__module__]
    names = ("quality", "orders", "bias", "plane", "learning", "provenance", "reproduction", "differences")
    for name in names:
        made = None if name == "plane" else Section(name)
        monkeypatch.setattr(module, name, lambda *_, made=made, **__: made)
    monkeypatch.setattr(module, "decision", lambda inputs: Section("decision"))
    monkeypatch.setattr(module, "heads", lambda inputs: None if inputs.log is None else Section("heads"))
    monkeypatch.setattr(module, "examination", lambda inputs: Section("examination"))
    monkeypatch.setattr(module, "next_steps", lambda inputs: ["a step"])
    monkeypatch.setattr(ExpectedGain, "of", lambda inputs: None)
    new, other = model("new", factors=FACTORS), model("other", factors=FACTORS)
    inputs = ReportInputs((new, other), log=LOG, chosen="new")
    vars(inputs)["comparison"] = None
    page = report(inputs, name="a run", command="ultr report run")
    assert [section.title for section in page.sections] == [
        "decision", "heads", "quality", "orders", "examination", "bias", "learning", "provenance", "reproduction",
    ]  # fmt: skip
    assert [section.folded for section in page.sections] == [False] * 2 + [True] * 7
    assert (page.title, page.steps) == ("Report on a run", ["a step"])
    assert page.command == "ultr report run"
    bare = ReportInputs((new, other), chosen="new")
    vars(bare)["comparison"] = None
    both = comparison_report(bare, other, command="ultr report new other")
    assert [section.title for section in both.sections] == [
        "decision", "differences", "quality", "learning", "bias", "orders", "reproduction",
    ]  # fmt: skip
    assert [section.folded for section in both.sections] == [False] + [True] * 6
    assert both.title == "new beside other"

"""Who is looked at, against whom, and what documents are called."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.reporting.fakes import FACTORS, LOG, model

from ultr.data.judged import JudgedLists
from ultr.evaluation import Assumption
from ultr.reporting import inputs as module
from ultr.reporting.inputs import ReportInputs

RAW, LABELS = model("raw", "click", factors=FACTORS), model("labels", "label")
OLD, NEW = model("old", factors=FACTORS, sign=-1.0), model("new", factors=FACTORS)
JUDGED = JudgedLists.of(features=[[4.0], [3.0], [2.0]], labels=[2, 1, 0], offsets=[0, 3], feature_names=["price"])
for each in (RAW, LABELS, OLD, NEW):
    vars(each.ranker)["feature_names"] = ("price",)


@pytest.mark.parametrize(
    ("models", "judged", "subject"),
    [
        ((RAW, OLD, NEW, LABELS), JUDGED, "new"),
        ((RAW, NEW, OLD, LABELS), JUDGED, "new"),
        ((RAW, OLD, NEW, LABELS), None, "old"),  # the first without labels
        ((RAW, OLD, LABELS), JUDGED, "old"),
        ((OLD, RAW), JUDGED, "old"),
        ((LABELS, RAW), None, "labels"),  # bounds alone
    ],
)
def test_the_subject_is_the_best_of_those_that_are_no_bounds(
    models: tuple[Any, ...], judged: JudgedLists | None, subject: str
) -> None:
    assert ReportInputs(models, judged=judged).subject.name == subject


def test_leads_are_those_over_every_other_model() -> None:
    found = ReportInputs((RAW, OLD, NEW), judged=JUDGED)
    # Both put the best first; the old one puts it last.
    ideal = 3 + 1 / np.log2(3)
    worst = (1 / np.log2(3) + 3 / 2) / ideal
    assert {name: test.difference for name, test in found.leads.items()} == pytest.approx({"raw": 0, "old": 1 - worst})
    assert ReportInputs((RAW, NEW)).leads == {}
    assert ReportInputs((RAW, NEW)).evaluations == {}


def test_documents_go_by_titles_and_ids_or_else_by_rows() -> None:
    ids = np.array(["a1", "b2", "c3"])
    assert ReportInputs((NEW,)).names(np.array([2, 0])) == ["document 2", "document 0"]
    named = ReportInputs((NEW,), document_ids=ids, titles={"c3": "A hat"})
    assert named.names(np.array([2, 0])) == ["A hat (c3)", "a1"]


def test_models_that_saw_clicks_know_factors() -> None:
    found = ReportInputs((RAW, NEW, LABELS))
    assert [each.name for each in found.click_models] == ["raw", "new"]
    assert found.unseen is None
    assert found.diagnosis is None
    assert found.moved == []
    assert not found.trained_on_log(NEW)


def test_a_log_without_a_click_is_not_examined() -> None:
    none = LOG.select(np.arange(3))
    silent = ReportInputs((NEW,), log=type(LOG).of(
        features=none.features, documents=none.documents, offsets=none.offsets, clicks=np.zeros(8, dtype=int)
    ))  # fmt: skip
    assert silent.diagnosis is None


def test_the_doctor_is_asked_as_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def fake(log: Any, **options: Any) -> str:
        asked.update(options, log=log)
        return "a diagnosis"

    monkeypatch.setattr(module, "diagnose", fake)
    found: Any = ReportInputs((NEW,), log=LOG, log_name="my log")
    assert found.diagnosis == "a diagnosis"
    assert (asked["log"], asked["source"], asked["samples"], asked["draws"]) == (LOG, "my log", 50, 199)
    assert "scores" not in asked


def test_the_subject_is_compared_with_its_rival_and_alone_with_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def fake(first: Any, second: Any, log: Any, *, unseen: Any, names: Any, value: None, assumption: Any) -> Any:
        asked.append((first, second, names, unseen, assumption))
        return SimpleNamespace(names=names)

    monkeypatch.setattr(module, "compare", fake)
    monkeypatch.setattr(module, "unseen_part", lambda rankers, log: ("unseen", list(rankers)))
    monkeypatch.setattr(Assumption, "of_test", lambda test, users: f"tested {test}, {users}")

    def with_diagnosis(inputs: ReportInputs, found: Any) -> ReportInputs:
        vars(inputs)["diagnosis"] = found
        return inputs

    tested = SimpleNamespace(dimension=SimpleNamespace(scalar="the scalar"), stopping="the users")
    both = with_diagnosis(ReportInputs((NEW, OLD, RAW), log=LOG, chosen="new"), tested)
    assert both.comparison is not None
    assert both.comparison.names == ("raw", "new")
    assert both.against_shown is both.comparison
    unseen = ("unseen", ["new", "old", "raw"])
    assert asked == [(RAW.ranker, NEW.ranker, ("raw", "new"), unseen, "tested the scalar, the users")]
    alone = with_diagnosis(ReportInputs((NEW,), log=LOG), None)
    assert alone.comparison is None
    assert alone.against_shown is not None
    assert alone.against_shown.names == ("new again", "new")
    assert asked[1] == (NEW.ranker, NEW.ranker, ("new again", "new"), ("unseen", ["new"]), None)
    assert with_diagnosis(ReportInputs((NEW, RAW)), None).comparison is None
    by_labels = with_diagnosis(ReportInputs((LABELS, RAW), log=LOG, chosen="labels"), None)
    assert by_labels.comparison is None
    assert by_labels.against_shown is None
    assert len(asked) == 2


def test_a_recorded_log_is_known_again() -> None:
    known: Any = SimpleNamespace(data=[SimpleNamespace(cuts_below=lambda versions: ())])
    other: Any = SimpleNamespace(data=[SimpleNamespace(cuts_below=lambda versions: None)])
    for provenance, trained in ((known, True), (other, False), (None, False)):
        one = model("one", factors=FACTORS, provenance=provenance)
        assert ReportInputs((one,), log=LOG).trained_on_log(one) is trained

"""Quality of the rankings: tables, leads and sentences, by values made up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.reporting.fakes import FACTORS, LOG, model

from ultr.data.judged import JudgedLists
from ultr.evaluation import Evaluation, QueryLikelihoods, UnseenPart
from ultr.metrics import Interval
from ultr.reporting import quality as module
from ultr.reporting.inputs import ReportInputs
from ultr.reporting.quality import quality

JUDGED = JudgedLists.of(features=np.eye(6), labels=[1, 0, 0, 1, 0, 0], offsets=[0, 2, 4, 6])
"""Two of three queries have a relevant document."""
VALUES = {"raw": [0.5, 0.5], "new": [0.75, 0.75], "labels": [1.0, 1.0]}


def _inputs(*methods: str, judged: JudgedLists | None = JUDGED, **other: Any) -> ReportInputs:
    names = {"click": "raw", "dla": "new", "label": "labels"}
    inputs = ReportInputs(
        tuple(model(names[method], method, factors=() if method == "label" else FACTORS) for method in methods),
        judged=judged,
        chosen="new",
        **other,
    )
    found = {
        each.name: Evaluation({"nDCG@5": np.array(VALUES[each.name]) / 2, "nDCG@10": np.array(VALUES[each.name])})
        for each in inputs.models
    }
    vars(inputs)["evaluations"] = {} if judged is None else found
    return inputs


def test_measures_leads_and_gaps_of_judged_lists() -> None:
    found = quality(_inputs("click", "dla", "label"))
    assert found.answer == (
        "Measured on the 2 queries of judged lists that have a relevant document. Gap closed: 0 % is training on raw "
        "clicks, 100 % is training on labels."
    )
    means, leads = found.tables
    assert not means.folded
    assert [dict(row) for row in means.rows] == [
        {"model": "raw", "nDCG@5": "0.250\n.250-.250", "nDCG@10": "0.500\n.500-.500", "gap closed": "0%"},
        {"model": "new", "nDCG@5": "0.375\n.375-.375", "nDCG@10": "0.750\n.750-.750", "gap closed": "50%"},
        {"model": "labels", "nDCG@5": "0.500\n.500-.500", "nDCG@10": "1.000\n1.000-1.000", "gap closed": "100%"},
    ]
    assert leads.title == "nDCG@10 of new minus that of the others, query by query, 95 % intervals"
    assert [(row["against"], row["difference"], row["low"]) for row in leads.rows] == [
        ("raw", "+0.2500", "+0.2500"),
        ("labels", "-0.2500", "-0.2500"),
    ]
    assert 0.4 < float(leads.rows[0]["p"]) < 0.6  # both signs of two queries are as extreme in half of the flips
    assert found.numbers["gap_closed"] == pytest.approx({"raw": 0.0, "new": 0.5, "labels": 1.0})
    (drawing,) = found.drawings().values()
    assert drawing.description.startswith("nDCG@10: raw 0.5")
    assert drawing.description.index("new") < drawing.description.index("labels")


def test_a_single_query_has_neither_intervals_nor_ends_of_a_lead() -> None:
    alone = JudgedLists.of(features=np.eye(2), labels=[1, 0], offsets=[0, 2])
    inputs = _inputs("click", "dla", judged=alone)
    for name, found in inputs.evaluations.items():
        inputs.evaluations[name] = Evaluation({measure: values[:1] for measure, values in found.values.items()})
    means, leads = quality(inputs).tables
    assert dict(means.rows[0]) == {"model": "raw", "nDCG@5": "0.250", "nDCG@10": "0.500"}
    assert dict(leads.rows[0]) == {"against": "raw", "difference": "+0.2500", "low": "", "high": "", "p": "1.0000"}


def test_models_are_drawn_from_the_worst_to_the_best_and_one_alone_leads_nobody() -> None:
    inputs = _inputs("label", "dla")
    found = quality(inputs)
    (drawing,) = found.drawings().values()
    assert drawing.description.index("new") < drawing.description.index("labels")
    assert found.answer == "Measured on the 2 queries of judged lists that have a relevant document."
    assert "gap closed" not in found.tables[0].rows[0]
    assert len(quality(_inputs("dla")).tables) == 1


def test_without_labels_and_clicks_something_is_asked_for() -> None:
    asked = "This needs judged lists, or the log: give --data or --log."
    assert quality(_inputs("dla", judged=None)).advice == asked
    by_labels = ReportInputs((model("labels", "label"),), log=LOG)
    vars(by_labels)["unseen"] = UnseenPart(LOG, "the log")
    assert quality(by_labels).advice == asked


UNSEEN = UnseenPart(LOG, "the 3 queries", warnings=("too good",), notes=("a note",))


def _by_clicks(monkeypatch: pytest.MonkeyPatch, comparison: Any) -> Any:
    monkeypatch.setattr(
        module, "click_fit", lambda ranker, log, unseen: SimpleNamespace(log_likelihood=-0.25, perplexity=1.5)
    )
    totals = SimpleNamespace(list_totals="totals", clicks="clicks")
    monkeypatch.setattr(QueryLikelihoods, "of", lambda ranker, log: totals)
    monkeypatch.setattr(module, "bootstrap_ratio", lambda totals, clicks: Interval(-1.5, -1.75, -1.25))
    inputs = _inputs("dla", "click", judged=None, log=LOG)
    vars(inputs).update(unseen=UNSEEN, comparison=comparison)
    return quality(inputs)


def test_without_labels_clicks_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _by_clicks(monkeypatch, None)
    assert found.advice == (
        "Warning: too good. Note: a note. To learn whether it ranks better than another model, give --against MODEL; "
        "with labels, --data."
    )
    (table,) = found.tables
    assert [tuple(row.values()) for row in table.rows] == [
        ("new", "-1.5000\n-1.7500 to -1.2500", "-0.2500", "1.5000"),
        ("raw", "-1.5000\n-1.7500 to -1.2500", "-0.2500", "1.5000"),
    ]
    assert found.answer.startswith("There are no judged lists, so clicks must tell, on the 3 queries.")
    assert found.numbers["compared_on"] == "the 3 queries"
    assert found.numbers["clicks"]["raw"]["perplexity"] == 1.5
    assert not found.parts


def test_a_comparison_by_clicks_brings_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = SimpleNamespace(verdict="yes", reason="why", winner="new")
    comparison = SimpleNamespace(
        names=("raw", "new"),
        answers={"value": answer},
        assumed="One number is enough.",
        parts=lambda: ["a part"],
    )
    found = _by_clicks(monkeypatch, comparison)
    assert found.advice == "Warning: too good. Note: a note. One number is enough."
    assert found.parts == ["a part"]
    assert found.numbers["against"] == "raw"
    assert found.numbers["answers"] == {"value": {"verdict": "yes", "reason": "why", "winner": "new"}}

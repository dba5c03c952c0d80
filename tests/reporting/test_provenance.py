"""Options and data of models, their differences, and the commands to repeat them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.reporting.fakes import FACTORS, LOG, model

from ultr.data.judged import JudgedLists
from ultr.methods.origin import Origin
from ultr.reporting.inputs import ReportInputs
from ultr.reporting.provenance import differences, facts_of, misfits, provenance, reproduction

KNOWN: Any = SimpleNamespace(data=[SimpleNamespace(cuts_below=lambda versions: ())])
OTHER: Any = SimpleNamespace(data=[SimpleNamespace(cuts_below=lambda versions: None)])
AS_RECORDED: dict[str, Any] = {"provenance": None}


def test_the_facts_of_a_model_are_its_options_data_and_versions() -> None:
    assert facts_of(model("new", factors=FACTORS)) == {
        "method": "dla",
        "seed": "3",
        "relevance model": "mlp",
        "hidden": "8, 4",
        "steps": "20",
        "features": "2",
        "bias factors": "position (3), device (2)",
        "learned from": "runs/log",
        "weights chosen by": "held-out clicks",
        "training data": "0123456789ab",
        "weights": "new-weights-",
        "version of ultr": "1.0",
        "threads": "2",
    }


@pytest.mark.parametrize(
    ("manifest", "facts"),
    [
        ({"options": {"rate": None, "relevance": {"kind": "trees"}}}, {"rate": None, "relevance model": "trees"}),
        ({"origin": None}, {"learned from": None, "weights chosen by": None, "bias factors": "none"}),
        (
            {"origin": Origin(command="c", data="letor-like=60")},
            {"learned from": "letor-like=60", "weights chosen by": "none"},
        ),
        ({"origin": Origin(command="c")}, {"learned from": ""}),
        (
            {"origin": Origin(command="c", validation="clicks", hold_out="query")},
            {"weights chosen by": "held-out clicks, by query"},
        ),
        (
            {"origin": Origin(command="c", validation="mq2007=x", hold_out="time")},
            {"weights chosen by": "mq2007=x, by time"},
        ),
        ({"choices": {"candidates": [{"dimension": 2}, {"dimension": 4}]}}, {"dimension chosen from": "2, 4"}),
        ({"provenance": SimpleNamespace(init_model="abcdefghijklmnop")}, {"began with weights": "abcdefghijkl"}),
        ({"provenance": None}, {"began with weights": None}),
    ],
)
def test_facts_that_not_every_model_has(manifest: dict[str, Any], facts: dict[str, str | None]) -> None:
    found = facts_of(model("new", manifest=manifest))
    assert {name: found.get(name) for name in facts} == facts


def test_models_stand_side_by_side_with_the_main_facts_first() -> None:
    new, labels = model("new", factors=FACTORS, provenance=KNOWN), model("labels", "label", manifest={"origin": None})
    judged = JudgedLists.of(features=[[1.0]] * 3, labels=[0, 1, 0], offsets=[0, 2, 3])
    found = provenance(
        ReportInputs((new, labels), log=LOG, log_name="my log", judged=judged, chosen="new", missing=("Give it.",))
    )
    assert found.advice == "Give it."
    assert found.answer.startswith("dla: ")
    assert "label:" not in found.answer
    assert found.answer.endswith(
        "The log my log has 35 impressions of 3 lists with 22 clicks. "
        "Rankings are measured on 2 judged queries of judged lists."
    )
    main, others, features = found.tables
    assert [table.folded for table in found.tables] == [False, True, True]
    assert [dict(row) for row in main.rows] == [
        {"": "method", "new": "dla", "labels": "label"},
        {"": "learned from", "new": "runs/log", "labels": ""},
        {"": "weights chosen by", "new": "held-out clicks", "labels": ""},
        {"": "seed", "new": "3", "labels": "3"},
        {"": "training data", "new": "0123456789ab", "labels": "0123456789ab"},
    ]
    assert {"": "features", "new": "2", "labels": "2"} in others.rows
    assert not {"seed", "method"} & {row[""] for row in others.rows}
    assert (features.title, features.rows) == ("the 2 features", [{"names": "price, age"}])
    assert found.numbers["log_is_that_of"] == ["new"]
    bare = provenance(ReportInputs((new,)))
    assert "The log" not in bare.answer
    assert "Rankings are measured" not in bare.answer
    assert bare.numbers["log_is_that_of"] == []


def test_what_differs_is_told_from_what_is_the_same() -> None:
    new = model("new", factors=FACTORS)
    other = model("other", factors=FACTORS, manifest={"options": {"seed": 4, "relevance": {"kind": "mlp"}}})
    found = differences(ReportInputs((new, other), chosen="new"), other)
    assert found.answer == "They learned from the same data."
    differ, same = found.tables
    assert (differ.folded, same.folded) == (False, True)
    assert [dict(row) for row in differ.rows] == [
        {"": "seed", "new": "3", "other": "4"},
        {"": "hidden", "new": "8, 4", "other": ""},
        {"": "steps", "new": "20", "other": ""},
    ]
    assert {"": "method", "both": "dla"} in same.rows
    assert not {"seed", "weights"} & {row[""] for row in same.rows}
    assert found.numbers["differ"]["hidden"] == ["8, 4", None]


def test_models_that_differ_in_nothing_and_in_their_data() -> None:
    new, twin = model("new", factors=FACTORS), model("twin", factors=FACTORS)
    found = differences(ReportInputs((new, twin), chosen="new", missing=("Give it.",)), twin)
    assert (found.answer, found.advice) == (
        "They learned from the same data. They differ in nothing that decides training.",
        "Give it.",
    )
    assert [table.title for table in found.tables] == ["what is the same"]
    other = model("other", factors=FACTORS, data_fingerprint="fedcba9876543210")
    found = differences(ReportInputs((new, other), chosen="new"), other)
    assert found.answer == "They learned from different data."
    assert list(found.numbers["differ"]) == ["training data"]


def test_commands_are_those_of_the_models_once_each_and_of_the_page() -> None:
    new, twin = model("new"), model("twin", manifest={"origin": Origin(command="ultr train new")})
    found = reproduction(ReportInputs((new, twin)), "ultr report")
    assert found.commands == ["ultr train new", "ultr report"]
    assert "its folder does not say" not in found.answer
    silent = model("silent", manifest={"origin": None})
    found = reproduction(ReportInputs((new, silent)), "ultr report")
    assert found.commands == ["ultr train new", "ultr report"]
    assert found.answer.endswith(
        " How silent was trained, its folder does not say: it was not `ultr train` that saved it."
    )


MAY_NOT = "What is said of the log below may not be what the model saw."


@pytest.mark.parametrize(
    ("models", "told"),
    [
        ([model("a", factors=FACTORS, provenance=KNOWN)], []),
        (
            [model("a", factors=FACTORS, provenance=KNOWN), model("b", factors=FACTORS, provenance=OTHER)],
            ["log is not the log that b learned from: its fingerprint is another.", MAY_NOT],
        ),
        (
            [model("a", factors=FACTORS, manifest=AS_RECORDED), model("b", factors=FACTORS, manifest=AS_RECORDED)],
            ["Whether a and b learned from log is not recorded.", MAY_NOT],
        ),
        (
            [model("a", factors=FACTORS, manifest=AS_RECORDED), model("b", factors=FACTORS, provenance=OTHER)],
            [
                "log is not the log that b learned from: its fingerprint is another.",
                "Whether a learned from log is not recorded.",
                MAY_NOT,
            ],
        ),
        ([model("labels", "label", provenance=OTHER)], []),
    ],
)
def test_another_log_than_that_of_the_training_is_told(models: list[Any], told: list[str]) -> None:
    assert list(misfits(ReportInputs(tuple(models), log=LOG))) == told
    assert list(misfits(ReportInputs(tuple(models)))) == []

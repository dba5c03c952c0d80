"""Learning curves: rows by stage, the best value and the words around them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.reporting.fakes import model

from ultr.methods.origin import Origin
from ultr.reporting.inputs import ReportInputs
from ultr.reporting.learning import learning
from ultr.train.checkpoint import Record

HISTORY = (
    Record("one", 500, 0.75, 0.5),
    Record("one", 1_000, 0.5, 0.625),
    Record("one", 1_500, 0.25, 0.6),
    Record("two", 10, 0.125, None),
    Record("two", 20, None, None),
)
RING = "Each stage of training has a chart of its own; a ring marks its highest validation value."
LAST = "Each stage of training has a chart of its own. Nothing was held out, so the last weights were kept."


def test_each_stage_has_a_row_with_its_last_loss_and_its_best_value() -> None:
    found = learning(ReportInputs((model("new", history=HISTORY), model("old"))))
    assert found.answer == RING
    (table,) = found.tables
    assert table.folded
    assert [tuple(row.values()) for row in table.rows] == [
        ("new", "one", "1,500", "0.2500", "0.6250", "1,000"),
        ("new", "two", "20", "0.1250", "", ""),
    ]
    assert list(table.rows[0]) == ["model", "stage", "steps", "last loss", "best value", "at step"]
    assert list(found.figures) == [
        "stage “one”: training loss",
        "stage “one”: held-out log-likelihood",
        "stage “two”: training loss",
    ]
    drawn = found.drawings()
    assert drawn["stage “one”: training loss"].description == "training loss over the steps: new from 0.7500 to 0.2500"
    assert drawn["stage “one”: held-out log-likelihood"].description == (
        "held-out log-likelihood over the steps: new from 0.5000 to 0.6000, best 0.6250"
    )
    assert found.numbers["new"][0] == {"stage": "one", "step": 500, "loss": 0.75, "value": 0.5}


def test_without_validation_there_is_no_ring_and_without_losses_no_chart() -> None:
    found = learning(ReportInputs((model("new", history=HISTORY[3:]),)))
    assert (found.answer, list(found.figures)) == (LAST, ["stage “two”: training loss"])
    silent = learning(ReportInputs((model("new", history=(Record("two", 20, None, None),)),)))
    assert not silent.figures
    assert tuple(silent.tables[0].rows[0].values()) == ("new", "two", "20", "", "", "")
    assert learning(ReportInputs((model("new"),))).tables == []


@pytest.mark.parametrize(
    ("models", "name"),
    [
        ([("dla", "clicks"), ("click", "clicks")], "held-out log-likelihood"),
        ([("lightgbm", "clicks")], "held-out nDCG@10"),
        ([("dla", "clicks"), ("lightgbm", "clicks")], "validation value"),
        ([("dla", "mq2007=data"), ("click", "letor-like=60")], "validation nDCG@10"),
        ([("dla", "mq2007=data"), ("click", "clicks")], "validation value"),
        ([("dla", "mq2007=data"), ("click", "none")], "validation value"),
        ([("dla", "mq2007=data"), ("click", None)], "validation value"),
        ([("dla", None)], "validation value"),
    ],
)
def test_the_validation_value_has_its_name_where_all_models_say_the_same(
    models: list[tuple[str, str | None]], name: str
) -> None:
    made = []
    for number, (method, validation) in enumerate(models):
        origin = None if validation is None else Origin(command="ultr train", validation=validation)
        manifest: dict[str, Any] = {"origin": origin}
        made.append(model(str(number), method, manifest=manifest, history=HISTORY[:2]))
    assert list(learning(ReportInputs(tuple(made))).figures)[1] == f"stage “one”: {name}"

"""Models of a folder: in which order, in which colours."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from tests.reporting.fakes import FACTORS, model

from ultr.methods.model_file import MANIFEST, WEIGHTS
from ultr.pages.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED
from ultr.reporting.model import Model, colours, models_of


@pytest.mark.parametrize(("method", "bound"), [("click", True), ("label", True), ("dla", False)])
def test_raw_clicks_and_labels_are_bounds(method: str, bound: bool) -> None:  # noqa: FBT001
    assert model("any", method).is_bound is bound


def test_a_model_knows_the_factors_of_its_log_but_for_those_it_leaves_out() -> None:
    position, device = FACTORS
    assert model("new", factors=FACTORS).knows(device)
    assert not model("new", factors=FACTORS, left_out_factors=("device",)).knows(device)
    assert model("new", factors=FACTORS, left_out_factors=("device",)).knows(position)
    assert not model("new", factors=(position,)).knows(device)


def test_bounds_are_grey_and_green_and_the_others_go_through_the_palette() -> None:
    others = [model(str(number)) for number in range(5)]
    found = colours([model("raw", "click"), *others, model("labels", "label")])
    assert [found[str(number)] for number in range(5)] == [BLUE, ORANGE, PURPLE, RED, BLUE]
    assert (found["raw"], found["labels"]) == (GREY, GREEN)
    assert len(found) == 7


def test_a_model_goes_by_the_name_of_its_folder_unless_it_is_given_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules[Model.__module__]
    monkeypatch.setattr(module, "load_manifest", lambda path: f"manifest of {path.name}")
    monkeypatch.setattr(module, "load", lambda path: f"ranker of {path.name}")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    found: Any = Model.load("run")
    assert (found.name, found.folder, found.manifest, found.ranker) == (
        "run",
        Path("run"),
        "manifest of run",
        "ranker of run",
    )
    assert Model.load(tmp_path / "run" / ".." / "run", name="mine").name == "mine"


def test_the_models_of_a_folder_come_from_raw_clicks_to_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    methods = {"a": "label", "b": "dla", "c": "click", "d": "upe"}
    monkeypatch.setattr(Model, "load", lambda folder: model(folder.name, methods[folder.name]))
    for name in (*methods, "e"):
        (tmp_path / name).mkdir()
        (tmp_path / name / MANIFEST).touch()
        if name != "e":  # without weights it is no model
            (tmp_path / name / WEIGHTS).touch()
    assert [each.name for each in models_of(tmp_path)] == ["c", "b", "d", "a"]
    assert [each.name for each in models_of(tmp_path / "b")] == ["b"]

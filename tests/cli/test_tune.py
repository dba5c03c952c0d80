"""`ultr tune`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.console import ultr

from ultr.cli.tune import _in_words
from ultr.methods import load
from ultr.tuning.search_folder import TriedSettings


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tune") / "log"
    ultr("simulate", "--data", "letor-like=60", "--impressions", 5_000, "--out", folder, "--quiet")
    return folder


def test_the_best_settings_are_told_and_their_model_is_written(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    command = ["tune", "click", "--log", log, "--trials", 3, "--set", "steps=5", "--set", "hidden=4"]
    said = ultr(*command, "--out", out, columns=80)
    assert "held-out log-likelihood of a click" in said.stdout
    assert "1, as given" in said.stdout
    assert "of 3 settings, " in said.stdout
    assert "trial 3 of 3: log-likelihood -" in said.stderr
    assert all(len(line) <= 80 for line in said.stderr.splitlines())
    assert not [path for path in tmp_path.iterdir() if path.name != "model"]
    ranker = load(out)
    # What was given is not searched.
    assert ranker.options["relevance"]["steps"] == 5
    assert set(ranker.choices["tuning"][0]["settings"]) == {"learning_rate", "weight_decay_epochs"}
    assert ranker.origin is not None
    assert ranker.origin.hold_out == "query"
    # The command that it names gives the same settings.
    [line] = [line for line in said.stdout.splitlines() if line.startswith("the same settings again: ")]
    words = line.removeprefix("the same settings again: ultr ").split()
    ultr(*words, "--quiet")
    assert load(tmp_path / "model-again").options == ranker.options


def test_the_same_as_json_or_without_a_word(log: Path, tmp_path: Path) -> None:
    command = ["tune", "click", "--log", log, "--trials", 2, "--set", "steps=5", "--set", "hidden=4"]
    said = ultr(*command, "--out", tmp_path / "first", "--quiet", "--json")
    assert said.stderr == ""
    content = json.loads(said.stdout)
    assert content["method"] == "click"
    assert content["settings"] in [each["settings"] for each in content["tried"]]
    said = ultr(*command, "--out", tmp_path / "second", "--quiet")
    assert (said.stdout, said.stderr) == ("", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dla", "click"], "held-out clicks compare settings of one method, not methods; tune dla and click one at a"),
        (["dla", "--set", "relevance=trees"], "give it by --relevance, not by --set"),
        (["lightgbm"], "does not predict clicks by the model that it ranks by"),
        (["click", "--trials", 0], "trials must be an integer of at least 1"),
        (["click", "--set", "hiden=4"], "did you mean 'hidden'"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(
    log: Path, tmp_path: Path, arguments: list[object], message: str
) -> None:
    said = ultr("tune", *arguments, "--log", log, "--out", tmp_path / "model", expect=2)
    assert message in said.stderr
    assert said.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("others", "lead", "said"),
    [
        (1, 1.7, "is beyond noise"),
        (1, 1.6, "is within noise"),
        (2, 1.97, "is beyond noise for the best of 2"),
        (2, 1.95, "is within noise for the best of 2"),
    ],
)
def test_the_lead_of_the_best_is_judged_as_the_best_of_those_that_were_tried(
    others: int, lead: float, said: str
) -> None:
    tried = [TriedSettings({"steps": 5}, -1.0, 0.0, 0.0, 1.0)]
    tried += [TriedSettings({"steps": 6 + number}, -0.9, lead, 1.0, 1.0) for number in range(others)]
    assert _in_words(tried[1], tried).endswith(said)

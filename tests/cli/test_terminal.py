"""What commands write to a terminal, and what they do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.console import ultr

TINY = ["--steps", 20, "--set", "hidden=4", "--set", "evaluate_every=10"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("terminal") / "log"
    said = ultr("simulate", "--data", "letor-like=60", "--impressions", 5_000, "--out", folder, "--quiet")
    assert (said.stdout, said.stderr) == ("", "")
    return folder


def test_a_bare_command_ends_with_a_sentence() -> None:
    said = ultr(expect=2)
    assert said.stderr.endswith("ultr: name a command, such as ultr demo; ultr COMMAND --help shows its options\n")


def test_validation_by_held_out_clicks_has_the_name_of_what_it_is(log: Path, tmp_path: Path) -> None:
    said = ultr("train", "vectorization", "--log", log, *TINY, "--out", tmp_path / "model", columns=80)
    clicks, base, _ = said.stdout.splitlines()
    assert clicks.startswith("stage clicks: 20 steps, loss ")
    assert ", best held-out log-likelihood -" in clicks
    assert ", best negative held-out loss " in base
    # One line for each record, however narrow the screen.
    lines = [line for line in said.stderr.splitlines() if "step" in line]
    assert [line.partition(": ")[0] for line in lines] == [
        "Vectorization d=3 · clicks · step 10",
        "Vectorization d=3 · clicks · step 20",
        "Vectorization d=3 · base · step 7",
    ]
    assert all(", best " in line for line in lines)
    assert ", held-out log-likelihood -" in lines[0]
    assert "minus" not in said.stdout + said.stderr


def test_quiet_commands_say_nothing_but_what_is_wrong(log: Path, tmp_path: Path) -> None:
    for command in (
        ["train", "click", "--log", log, *TINY, "--out", tmp_path / "model"],
        ["export", tmp_path / "model", "--to", "onnx", "--out", tmp_path / "model.onnx"],
        ["doctor", log, "--html", tmp_path / "doctor.html", "--samples", 5],
        ["reproduce", "click-matrix", "--out", tmp_path / "reproductions"],
    ):
        said = ultr(*command, "--quiet")
        assert (said.stdout, said.stderr) == ("", "")
    said = ultr("train", "click", "--log", log, *TINY, "--out", tmp_path / "model", "--quiet", expect=2)
    assert "is not empty" in said.stderr
    # The next command is not quiet any more.
    assert ultr("train", "click", "--log", log, *TINY, "--out", tmp_path / "other").stdout


def test_several_seeds_are_trained_by_one_command(log: Path, tmp_path: Path) -> None:
    said = ultr("train", "click", "--log", log, *TINY, "--seeds", 2, "--out", tmp_path / "model")
    assert [line.partition(":")[0] for line in said.stdout.splitlines()[:2]] == [
        "stage seed 0, clicks",
        "stage seed 1, clicks",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_long_query_is_not_repeated_as_a_name(tmp_path: Path) -> None:
    sql = "sql:SELECT " + ", ".join(f"column_{number}" for number in range(50)) + " FROM 'nothing.parquet'"
    said = ultr("prepare", sql, "--out", tmp_path / "log", expect=2)
    assert "column_40" not in said.stderr
    said = ultr("doctor", sql, expect=2)
    assert "column_40" not in said.stderr

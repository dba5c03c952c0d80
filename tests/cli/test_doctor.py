from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet
from tests.cli.console import ultr
from tests.diagnosis.logs import thorough
from tests.diagnosis.test_plan import log_of
from tests.preparation.test_log import GOOD, frame

from ultr.data.click_log import ClickLog
from ultr.data.exploration_plan import ExplorationPlan


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("doctor") / "log"
    thorough(pages=4_000).save(folder)
    return folder


def test_a_log_is_examined_in_words_tables_and_a_page(log: Path, tmp_path: Path) -> None:
    page = tmp_path / "doctor.html"
    text = ultr("doctor", log, "--samples", 5, "--full", "--html", page).stdout
    assert "Can bias be told from relevance?" in text
    assert "click rate by position" in text
    assert "What to do" in text
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    again = json.loads(ultr("doctor", log, "--samples", 5, "--json").stdout)
    assert again["log"] == str(log)
    assert len(again["findings"]) == 9


def test_a_log_of_one_position_is_examined_with_its_tables(tmp_path: Path) -> None:
    """No curve of position bias can be drawn for it."""
    count = 40
    alone = ClickLog.of(
        features=np.arange(count, dtype=np.float32)[:, None],
        documents=np.arange(count),
        offsets=np.arange(count + 1),
        impressions=np.full(count, 20),
        clicks=np.arange(count) % 10,
        queries=np.arange(count),
    )
    alone.save(tmp_path / "log")
    text = ultr("doctor", tmp_path / "log", "--samples", 5, "--full", columns=400).stdout
    assert "No estimator can tell: all documents were shown at one position." in text


def test_a_plan_is_written_and_said_in_words(tmp_path: Path) -> None:
    # 1 and 2 are linked, and 3 and 4; nothing leads from 2 to 3.
    apart = log_of(("uvxy", 10_000, [4_000, 2_000, 1_000, 500]), ("vuyx", 10_000, [3_000, 3_000, 700, 800]))
    apart.save(tmp_path / "log")
    text = ultr("doctor", tmp_path / "log", "--samples", 5, "--plan", tmp_path / "plan.json", columns=400).stdout
    assert "Exchange positions 2 and 3 (5.00%) of the pages" in text
    plan = ExplorationPlan.read(tmp_path / "plan.json")
    assert [(pair.first, pair.second) for pair in plan.pairs] == [(2, 3)]


def test_a_raw_log_is_prepared_on_the_way_and_nothing_is_left(tmp_path: Path) -> None:
    parquet.write_table(frame(GOOD), tmp_path / "raw.parquet")
    found = json.loads(ultr("doctor", tmp_path / "raw.parquet", "--samples", 5, "--json").stdout)
    assert found["findings"][0]["pages"] == 3
    assert [path.name for path in tmp_path.iterdir()] == ["raw.parquet"]


def test_a_raw_log_that_needs_options_is_sent_to_the_command_that_has_them(tmp_path: Path) -> None:
    parquet.write_table(frame(GOOD).drop_columns("click"), tmp_path / "raw.parquet")
    error = ultr("doctor", tmp_path / "raw.parquet", expect=2).stderr
    assert "with --clicks-from" in error
    assert error.endswith("; `ultr prepare` has these options, and writes a folder for `ultr doctor`\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no file nowhere"),
        (["LOG", "--columns", "yandex"], "prepared already; leave --columns out"),
        (["LOG", "--samples", 0], "samples must be"),
        (["LOG", "--model", "nowhere"], "nowhere"),
    ],
)
def test_a_mistake_ends_in_one_sentence(log: Path, arguments: list[object], message: str, tmp_path: Path) -> None:
    given = [log if argument == "LOG" else argument for argument in arguments]
    error = ultr("doctor", *given, "--html", tmp_path / "page.html", expect=2).stderr
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())

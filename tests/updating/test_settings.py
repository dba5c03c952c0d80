"""The settings of a run: written with words, read back the same, refused where they do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.updating.days import settings_for

from ultr.errors import DataError, OptionError
from ultr.updating import RunFolder, UpdateSettings


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"warm_steps": 7, "seed": 3, "source": 'odd "name" \\ ä {day}'},
        {"prepare": {"columns": "ubi", "features_from": "../documents.parquet"}},
        {"method": "auto", "options": {"dimension": 2, "hidden": [16, 8]}},
        {"method": "vectorization", "options": {"relevance": "trees", "rounds": 5}},
    ],
)
def test_they_are_read_back_as_they_were_written(tmp_path: Path, changed: dict[str, Any]) -> None:
    settings = settings_for(**changed)
    settings.write(tmp_path / "settings.toml")
    assert UpdateSettings.read(tmp_path / "settings.toml") == settings
    text = (tmp_path / "settings.toml").read_text()
    assert "# Share of the queries that no ranker of the run is trained on; the same ones every day.\n" in text


def test_the_estimator_has_the_options_and_a_warm_one_its_own_steps() -> None:
    settings = settings_for(warm_steps=7, seed=3)
    usual, warm = settings.estimator(), settings.estimator(warm=True)
    assert (usual.name, usual.seed) == ("click", 3)
    assert usual.relevance.content()["hidden"] == (8,)
    assert (usual.relevance.training().steps, warm.relevance.training().steps) == (20, 7)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tolerence": 1}, "did you mean 'tolerance'"),
        ({"tolerance": -0.1}, "tolerance in a test does not fit"),
        ({"reserve": 1.0}, "reserve in a test does not fit"),
        ({"source": "clicks.parquet"}, "{day}"),
        ({"method": "clik"}, "did you mean 'click'"),
        ({"options": {"hiden": [8]}}, "did you mean 'hidden'"),
        ({"options": {"hidden": "x"}}, "option hidden of method click cannot be 'x'"),
        ({"days": "many"}, "days in a test does not fit"),
    ],
)
def test_what_does_not_fit_is_one_sentence(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said.replace("{", r"\{")):
        settings_for(**changed)


def test_a_file_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    for content in (b"log = ", b"\xff\xfe"):
        (tmp_path / "settings.toml").write_bytes(content)
        with pytest.raises(DataError, match=r"TOML|cannot read"):
            UpdateSettings.read(tmp_path / "settings.toml")


def test_paths_are_seen_from_the_run_and_queries_stay_as_they_are(tmp_path: Path) -> None:
    settings = settings_for(prepare={"columns": "ubi", "features_from": "../{day}.csv", "memory": "1GB"})
    settings.write(tmp_path / "settings.toml")
    run = RunFolder(tmp_path)
    assert run.source("2026-03-02") == str(tmp_path.parent / "clicks" / "2026-03-02.parquet")
    assert run.prepare_options("2026-03-02") == {
        "columns": "ubi",
        "features_from": str(tmp_path.parent / "2026-03-02.csv"),
        "memory": "1GB",
    }
    query = "sql:SELECT * FROM 'clicks/*.parquet' WHERE day = '{day}'"
    settings_for(source=query).write(tmp_path / "settings.toml")
    assert RunFolder(tmp_path).source("2026-03-02") == query.replace("{day}", "2026-03-02")

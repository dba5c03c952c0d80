from __future__ import annotations

import re
import shlex
from pathlib import Path

import pyarrow
import pytest
from pyarrow import csv, parquet
from tests.cli.console import ultr
from tests.preparation.test_log import GOOD, frame

from ultr.preparation.columns import read_columns
from ultr.preparation.reasons import REASONS

PAGE = Path(__file__).parents[2] / "docs" / "prepare.md"


def blocks(language: str) -> list[str]:
    return [text for kind, text in re.findall(r"```(\w*)\n(.*?)```", PAGE.read_text(), re.DOTALL) if kind == language]


def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    keys = list(dict.fromkeys((row["query"], row["document"]) for row in GOOD))
    values = pyarrow.array([float(keys.index((row["query"], row["document"]))) for row in GOOD])
    table = frame(GOOD).append_column("bm25_title", values).append_column("age", values)
    parquet.write_table(table, "log.parquet")
    parquet.write_table(table.select(["query", "document", "age"]), "features.parquet")
    renamed = frame(GOOD).rename_columns(["session", "q", "sku", "slot", "hit", "device"])
    Path("logs").mkdir()
    csv.write_csv(renamed.append_column("page", [[1] * len(GOOD)]), "logs/2024-01.csv")
    (commands,) = blocks("")
    for line in commands.replace("csv.gz", "csv").splitlines():
        _, command, *arguments = shlex.split(line)
        smaller = ["--validate", "none", "--steps", "2", "--set", "base_steps=1", "--set", "hidden=4"]
        ultr(command, *arguments, *(["--overwrite"] if command == "prepare" else smaller))


def test_the_mapping_of_the_page_is_read(tmp_path: Path) -> None:
    (text,) = blocks("toml")
    (tmp_path / "mapping.toml").write_text(text)
    assert read_columns(tmp_path / "mapping.toml").features == ("bm25_*", "age")


def test_every_reason_has_a_place_on_the_page() -> None:
    section = PAGE.read_text().partition("## What is put aside")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("| ")]
    page, row = (" ".join(column) for column in zip(*rows, strict=True))
    shorter = {
        "two queries on one page": "two queries",
        "position below 1": "below 1",
        "position above 10,000": "above 10,000",
        "same document twice on a page": "the same document twice",
        "NaN in the features": "NaN or infinity in the features",
        "conflicting features": "features that differ",
    }
    for reason in REASONS:
        assert shorter.get(reason.text, reason.text) in (page if reason.whole_page else row)

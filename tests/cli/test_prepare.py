from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest
from benchmarks.prepare import write_log
from pyarrow import parquet
from tests.cli.console import ultr
from tests.preparation.test_log import GOOD, frame, spoiled, with_features

from ultr.data.click_log import ClickLog


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    parquet.write_table(with_features(GOOD), tmp_path / "raw.parquet")
    return tmp_path / "raw.parquet"


def test_a_raw_log_is_prepared_described_and_trained_on(raw: Path, tmp_path: Path) -> None:
    out = tmp_path / "log"
    text = ultr("prepare", raw, "--factor", "device", "--rare", 1, "--features", "bm*", "--out", out).stdout
    assert "query = query (guessed)" in text
    assert "5 documents with 1 feature; 1.50 impressions a list" in text
    assert ClickLog.load(out).impressions.sum() == 3
    train = ["train", "click", "--log", out, "--validate", "none", "--steps", 2, "--set", "hidden=4"]
    ultr(*train, "--out", tmp_path / "model")


def test_missing_features_are_told_and_trained_on(tmp_path: Path) -> None:
    table = with_features(GOOD)
    for number in range(7):
        values = [None if (row["query"], row["document"]) <= ("a", "xyz"[number % 3]) else 1.0 for row in GOOD]
        table = table.append_column(f"gap {number}", pyarrow.array(values, pyarrow.float64()))
    known = [None, *table["bm25"].to_pylist()[1:]]
    table = table.set_column(table.column_names.index("bm25"), "bm25", pyarrow.array(known, pyarrow.float64()))
    parquet.write_table(table, tmp_path / "raw.parquet")
    out = tmp_path / "log"
    text = ultr("prepare", tmp_path / "raw.parquet", "--features", "bm25", "--features", "gap*", "--out", out).stdout
    assert (
        "missing values in 8 of 8 features: gap 2 (66.7%), gap 5 (66.7%), gap 1 (50.0%), gap 4 (50.0%), gap 0 (33.3%) "
        "and 3 more; networks take the median (and an indicator, if enough were missing in training), "
        "trees take them as they are\n"
        "1 time a document was shown with features that had changed; each set of features counts as a document of its "
        "own\n"
    ) in text
    train = ["train", "click", "--log", out, "--validate", "none", "--steps", 2]
    warned = ultr(*train, "--set", "hidden=4", "--out", tmp_path / "network").stderr
    assert "ultr: missing values in 8 of 8 features: gap 2 (66.7%)" in warned
    assert "missing" not in ultr(*train, "--relevance", "trees", "--out", tmp_path / "trees").stderr
    vectors = ["train", "vectorization", *train[2:], "--relevance", "trees", "--set", "vector_steps=2"]
    assert "missing values in 8 of 8 features" in ultr(*vectors, "--out", tmp_path / "vectors").stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for little."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", folder], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("a small disk can be mounted by root alone")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.skipif(shutil.which("mount") is None, reason="there is no mount")
@pytest.mark.parametrize("memory", ["4GB", "20MB"])
def test_a_full_disk_ends_in_one_sentence(small_disk: Path, tmp_path: Path, memory: str) -> None:
    write_log(tmp_path / "raw.parquet", 50_000, features=2)
    command = ["prepare", tmp_path / "raw.parquet", "--features", "feature_*", "--memory", memory]
    said = ultr(*command, "--out", small_disk / "log", expect=2).stderr
    assert re.search(r"^ultr: the disk is full \(.*\); make space or [^\n]*\n\Z", said, re.MULTILINE)
    assert list(small_disk.iterdir()) == []


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_command_that_is_stopped_leaves_nothing(raw: Path, tmp_path: Path, sent: signal.Signals) -> None:
    out = tmp_path / "out" / "log"
    command = [sys.executable, "-m", "ultr", "prepare", str(raw), "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("out/.log-*")) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(sent)
    _, said = process.communicate()
    assert process.returncode == 128 + sent
    assert b"Traceback" not in said
    assert list((tmp_path / "out").iterdir()) == []


def test_rows_put_aside_are_shown_and_counted_for_machines(tmp_path: Path) -> None:
    parquet.write_table(frame(spoiled(0, position=0)), tmp_path / "raw.parquet")
    out = tmp_path / "log"
    text = ultr("prepare", tmp_path / "raw.parquet", "--out", out).stdout
    assert "position below 1" in text
    assert "the page" in text
    assert "rejected.parquet" in text
    again = ultr("prepare", tmp_path / "raw.parquet", "--out", out, "--overwrite", "--json").stdout
    summary = json.loads(again)
    assert summary["rows"] == {"read": 8, "kept": 5, "aside": 3}
    assert summary["reasons"][0]["reason"] == "position below 1"


@pytest.mark.parametrize(("again", "clicks"), [(GOOD[0], "1"), (GOOD[1], "0")])
def test_rows_that_are_there_twice_are_shown_for_rows_pages_and_clicks(
    again: dict[str, object], clicks: str, tmp_path: Path
) -> None:
    parquet.write_table(frame([*GOOD, again]), tmp_path / "raw.parquet")
    text = ultr("prepare", tmp_path / "raw.parquet", "--out", tmp_path / "log").stdout
    cells = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
    assert cells["read"] == ["kept", "aside", "repeated"]
    assert [cells[name][-1] for name in ("rows", "pages", "clicks")] == ["1", "0", clicks]


def test_times_labels_and_empty_pages_are_told(tmp_path: Path) -> None:
    table = frame(GOOD).append_column("day", [[f"2024-01-0{row['impression']}" for row in GOOD]])
    parquet.write_table(table.append_column("grade", [[3, 1, -1, 2, 1, -1, 0, 2]]), tmp_path / "raw.parquet")
    asked = ["--time", "day", "--periods", 2, "--label", "grade", "--unjudged", -1]
    out = tmp_path / "log"
    text = ultr("prepare", tmp_path / "raw.parquet", *asked, "--out", out).stdout
    assert "time = day; label = grade" in " ".join(text.split())
    assert "0 of 3 pages have no click" in text
    assert "2 periods of time; the first begins at 2024-01-01, the last at 2024-01-02" in text
    assert "3 of 5 documents have a label: 0, 1, 2\n1 document has labels that differ, and counts as not judged" in text
    summary = json.loads(
        ultr("prepare", tmp_path / "raw.parquet", *asked, "--out", out, "--overwrite", "--json").stdout
    )
    assert summary["periods"] == ["2024-01-01", "2024-01-02"]
    assert (summary["grades"], summary["judged"], summary["conflicting_labels"]) == (["0", "1", "2"], 3, 1)
    assert summary["empty_pages"] == 0
    log = ClickLog.load(out)
    assert log.split(0.5, by="time")[0].impressions.sum() == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--query", "qeury"], "did you mean 'query'; it has: impression, query, document"),
        (["--columns", "yadex"], "did you mean 'yandex'"),
        (["--engine", "flink"], "engine must be duckdb, spark or the connection string"),
        (["--features-from", "nowhere.csv"], "there is no file nowhere.csv"),
        (["--impression", "session"], "has no column 'session'"),
        (["--signal", "cart=bm25", "--signal", "cart=click"], "--signal gives a name twice; give each of cart once"),
    ],
)
def test_a_mistake_ends_in_one_sentence_and_leaves_nothing(
    arguments: list[str], message: str, raw: Path, tmp_path: Path
) -> None:
    error = ultr("prepare", raw, *arguments, "--out", tmp_path / "log", expect=2).stderr
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["raw.parquet"]


def test_a_day_is_added_with_the_options_of_the_log(tmp_path: Path) -> None:
    for number in (1, 2):
        days = pyarrow.array([f"2024-01-0{number}"] * len(GOOD))
        ids = pyarrow.array([10 * number + row["impression"] for row in GOOD])
        table = with_features(GOOD).set_column(0, "impression", ids).append_column("day", days)
        parquet.write_table(table, tmp_path / f"{number}.parquet")
    by_day = ["--time", "day", "--periods", "day", "--features", "bm25", "--out", tmp_path / "log"]
    ultr("prepare", tmp_path / "1.parquet", *by_day)
    text = ultr("prepare", tmp_path / "2.parquet", "--append", tmp_path / "log").stdout
    assert "2 periods of time; the first begins at 2024-01-01, the last at 2024-01-02" in text
    assert ClickLog.load(tmp_path / "log").impressions.sum() == 6


def test_clicks_come_from_a_table_of_events(tmp_path: Path) -> None:
    parquet.write_table(with_features(GOOD).drop_columns(["click"]), tmp_path / "shown.parquet")
    clicked = [(row["impression"], row["document"], "click") for row in GOOD if row["click"]]
    events = [*clicked, clicked[0], (1, "nowhere", "click"), (1, "x", "buy")]
    columns = {
        name: list(values)
        for name, values in zip(("impression", "document", "what"), zip(*events, strict=True), strict=True)
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "events.parquet")
    asked = ["--clicks-from", tmp_path / "events.parquet", "--action", "what", "--signal", "purchase=buy"]
    text = ultr("prepare", tmp_path / "shown.parquet", *asked, "--features", "bm25", "--out", tmp_path / "log").stdout
    assert "signals: purchase 1" in text
    assert "events on documents that were not shown, which are left out: click 1" in text
    assert "1 event was there already and counts once" in text
    log = ClickLog.load(tmp_path / "log")
    assert log.clicks.sum() == 3
    assert log.signal("purchase").sum() == 1

from __future__ import annotations

import json
import os
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet
from tests.serving.test_feedback import filled
from tests.serving.test_hourly_files import lines

from ultr.serving import parquet_files
from ultr.serving.exploration import SWAPS, Exploration
from ultr.serving.hourly_files import HourlyFiles
from ultr.serving.parquet_files import write_parquet
from ultr.serving.shown import Action, ShownList

NOON = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
LIST = ShownList(
    query_id="2026-05-01",
    user_query="2026-05-01T12:00:00Z",
    at=NOON,
    policy="abc",
    exploration=Exploration(SWAPS, 0.1),
    candidates=7,
    documents=("2026-01-01", "x"),
    scores=(1.0, -2.5),
    base_ranks=(1, 0),
)
"""Texts that look like times."""


def content(queries: int = 1) -> tuple[bytes, bytes]:
    actions = (Action("2026-05-01", "x", "click", NOON, 1), Action("never", "y", "cart", NOON, None))
    events = b"".join([*LIST.event_lines(), *(action.event_line() for action in actions)])
    return LIST.query_line() * queries, events * queries


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    return [
        filled(row)
        for path in sorted(folder.glob(f"{table}-*.parquet"))
        for row in parquet.read_table(path).to_pylist()
    ]


def test_an_hour_that_is_over_is_parquet_with_the_same_content(tmp_path: Path) -> None:
    files = HourlyFiles(tmp_path, most_bytes=10**6, parquet=True)
    queries, events = content()
    files.write(queries, events, now=NOON)
    assert not list(tmp_path.glob("ubi*"))
    files.write(queries, events, now=NOON + HOUR)
    files.close()
    assert rows(tmp_path, "ubi_queries") == [json.loads(line) for line in queries.splitlines()] * 2
    assert rows(tmp_path, "ubi_events") == [json.loads(line) for line in events.splitlines()] * 2
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".parquet"] * 4, "no draft is left"


def test_a_file_is_read_in_pieces_whatever_is_first_seen_in_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_files, "_CHUNK_BYTES", 300)
    given = [
        {"query_id": "a", "event_attributes": {"object": {"object_id": "x"}}},
        {"query_id": "b" * 400, "event_attributes": {"object": {"object_id": "1"}, "position": {"ordinal": 3}}},
        {"query_id": "c", "event_attributes": {"object": {"object_id": "y"}, "ultr": {"team": "A", "score": 1}}},
        {"query_id": "d", "event_attributes": {"object": {"object_id": "z"}, "ultr": {"team": "B", "score": 1.5}}},
    ]
    source = tmp_path / ".ubi_events.jsonl.part"
    source.write_text("".join(json.dumps(each) + "\n" for each in given))
    assert write_parquet(source, tmp_path / "all.parquet", threading.Event())
    assert [filled(row) for row in parquet.read_table(tmp_path / "all.parquet").to_pylist()] == given


def test_what_cannot_be_turned_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet_files, "write_parquet", full)
    files = HourlyFiles(tmp_path, most_bytes=10**6, parquet=True)
    files.write(*content(), now=NOON)
    files.close()
    assert len(lines(tmp_path, "ubi_queries")) == 1
    assert len(lines(tmp_path, "ubi_events")) == 4
    assert not list(tmp_path.glob(".*"))
    assert not list(tmp_path.glob("*.parquet"))


def test_a_line_that_is_no_json_stays_in_its_file(tmp_path: Path) -> None:
    files = HourlyFiles(tmp_path, most_bytes=10**6, parquet=True)
    files.write(b"not json\n", b'{"action_name": "click"}\n', now=NOON)
    files.close()
    assert lines(tmp_path, "ubi_queries") == ["not json"]
    assert rows(tmp_path, "ubi_events") == [{"action_name": "click"}]


def test_what_a_killed_process_left_becomes_parquet_once(tmp_path: Path) -> None:
    killed = HourlyFiles(tmp_path, most_bytes=10**6)
    killed.write(*content(2), now=NOON)
    for draft in killed._drafts.values():
        os.write(draft, b'{"query_id": "cut o')
        os.close(draft)
    (draft_of_queries,) = tmp_path.glob(".ubi_queries-*")
    # It was killed while it made a Parquet file, and another time just before it removed the draft.
    name = draft_of_queries.name.removesuffix(".jsonl.part")
    (tmp_path / f"{name}.parquet.part").write_bytes(b"PAR1")
    parquet.write_table(pyarrow.table({"x": [1]}), tmp_path / f"{name[1:]}.parquet")
    HourlyFiles(tmp_path, most_bytes=10**6, parquet=True).close()
    assert [row["query_id"] for row in rows(tmp_path, "ubi_queries")] == ["2026-05-01"] * 2
    assert len(rows(tmp_path, "ubi_events")) == 8
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".parquet"] * 2


def test_writing_does_not_wait_for_parquet_and_stopping_does_not_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()

    def slow(source: Path, target: Path, hurry: threading.Event) -> bool:
        goes_on.set()
        assert hurry.wait(30)
        return False

    monkeypatch.setattr(parquet_files, "write_parquet", slow)
    monkeypatch.setattr(parquet_files, "_CLOSE_SECONDS", 0.1)
    files = HourlyFiles(tmp_path, most_bytes=10**6, parquet=True)
    begin = time.monotonic()
    for hour in range(5):
        files.write(*content(), now=NOON + hour * HOUR)
    assert goes_on.wait(10)
    files.close()
    assert time.monotonic() - begin < 10
    end = time.monotonic() + 10
    while len(lines(tmp_path, "ubi_queries")) < 5 and time.monotonic() < end:
        time.sleep(0.01)
    assert len(lines(tmp_path, "ubi_queries")) == 5
    assert len(lines(tmp_path, "ubi_events")) == 20


def test_the_oldest_parquet_files_give_way(tmp_path: Path) -> None:
    removed: list[None] = []
    files = HourlyFiles(tmp_path, most_bytes=200_000, parquet=True, removed=lambda: removed.append(None))
    for hour in range(40):
        files.write(*content(5), now=NOON + hour * HOUR)
        end = time.monotonic() + 10
        while len(list(tmp_path.glob(".*"))) > 2 and time.monotonic() < end:
            time.sleep(0.002)
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 200_000
    files.close()
    kept = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert 100_000 < kept <= 200_000
    names = {
        table: sorted(path.name[-30:] for path in tmp_path.glob(f"{table}-*"))
        for table in ("ubi_queries", "ubi_events")
    }
    assert names["ubi_queries"] == names["ubi_events"]
    assert len(removed) == 80 - 2 * len(names["ubi_queries"])

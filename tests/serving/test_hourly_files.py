from __future__ import annotations

import errno
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ultr.errors import OptionError
from ultr.serving.hourly_files import HourlyFiles

NOON = datetime(2026, 5, 1, 12, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def lines(folder: Path, table: str) -> list[str]:
    return [line for path in sorted(folder.glob(f"{table}-*.jsonl")) for line in path.read_text().splitlines()]


def test_a_file_gets_its_name_when_its_hour_is_over(tmp_path: Path) -> None:
    files = HourlyFiles(tmp_path, most_bytes=10**6)
    files.write(b"q1\n", b"e1\n", now=NOON)
    files.finish(unless_hour=NOON + timedelta(minutes=29))
    assert visible(tmp_path) == []
    files.write(b"q2\n", b"e2\n", now=NOON + HOUR)
    assert [name[:24] for name in visible(tmp_path)] == ["ubi_events-2026-05-01T12", "ubi_queries-2026-05-01T1"]
    assert lines(tmp_path, "ubi_queries") == ["q1"]
    files.finish(unless_hour=NOON + 2 * HOUR)
    assert lines(tmp_path, "ubi_queries") == ["q1", "q2"]
    assert lines(tmp_path, "ubi_events") == ["e1", "e2"]


def test_what_a_killed_process_left_is_named_without_the_line_that_was_cut(tmp_path: Path) -> None:
    killed = HourlyFiles(tmp_path, most_bytes=10**6)
    killed.write(b"q1\nq2\n", b"e1\n", now=NOON)
    for draft in killed._drafts.values():
        os.write(draft, b"x" * 200_000)
        # The system closes them when a process dies.
        os.close(draft)
    HourlyFiles(tmp_path, most_bytes=10**6)
    assert lines(tmp_path, "ubi_queries") == ["q1", "q2"]
    assert lines(tmp_path, "ubi_events") == ["e1"]


def test_the_drafts_of_a_living_process_are_left_alone(tmp_path: Path) -> None:
    living = HourlyFiles(tmp_path, most_bytes=10**6)
    living.write(b"q1\n", b"e1\n", now=NOON)
    other = HourlyFiles(tmp_path, most_bytes=10**6)
    assert visible(tmp_path) == []
    other.write(b"q2\n", b"e2\n", now=NOON)
    living.finish()
    other.finish()
    assert sorted(lines(tmp_path, "ubi_queries")) == ["q1", "q2"]


def test_a_full_disk_leaves_whole_batches_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = HourlyFiles(tmp_path, most_bytes=10**6)
    files.write(b"q1\n", b"e1\n", now=NOON)
    write, left = os.write, [5]

    def until_full(file: int, content: bytes) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = write(file, bytes(content)[: left[0]])
        left[0] -= written
        return written

    with monkeypatch.context() as full:
        full.setattr(os, "write", until_full)
        # The events fit, and two bytes of the queries.
        with pytest.raises(OSError, match="No space"):
            files.write(b"q2\n", b"e2\n", now=NOON)
    files.write(b"q3\n", b"e3\n", now=NOON)
    files.finish()
    assert lines(tmp_path, "ubi_queries") == ["q1", "q3"]
    assert lines(tmp_path, "ubi_events") == ["e1", "e3"]


def test_the_oldest_files_give_way_in_pairs_and_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    removed: list[None] = []
    most = 8_000
    files = HourlyFiles(tmp_path, most_bytes=most, removed=lambda: removed.append(None))
    theirs = tmp_path / "ubi_queries-2025.jsonl"
    theirs.write_bytes(b"x" * 10_000)
    for number in range(60):
        line = f"{number:02d} {'x' * 396}\n".encode()
        files.write(line, line, now=NOON + number * timedelta(minutes=20))
        assert sum(path.stat().st_size for path in tmp_path.iterdir() if path != theirs) <= most
    files.finish()
    assert theirs.exists(), "what the service did not write stays"
    theirs.unlink()
    kept = [int(line[:2]) for line in lines(tmp_path, "ubi_queries")]
    assert [int(line[:2]) for line in lines(tmp_path, "ubi_events")] == kept
    assert kept == list(range(kept[0], 60))
    assert len(kept) >= 0.7 * most / 800
    assert len(removed) == 2 * 60 - 2 * len(kept)


def test_a_folder_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OptionError, match="give another folder"):
        HourlyFiles(tmp_path / "file" / "log", most_bytes=10**6)

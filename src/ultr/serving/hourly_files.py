"""The folder of a log: hourly files that appear when they are whole, the oldest of which give way."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from ultr.errors import OptionError
from ultr.locks import lock
from ultr.serving.parquet_files import DRAFT, LINES, PARQUET, ClosedFile, Publisher, publish

QUERIES, EVENTS = "ubi_queries", "ubi_events"
_TABLES = (EVENTS, QUERIES)
"""Events come first in all that is written: one without its query is left out by who reads, but a query without its
events would be a list that nobody clicked."""
_FILE = re.compile(
    rf"\.?(?:{EVENTS}|{QUERIES})-(?P<key>\d{{4}}-\d\d-\d\dT\d\d-[0-9a-f]{{8}}-\d{{6,}})"
    r"\.(?:jsonl|parquet)(?P<draft>\.part)?"
)
"""Names of the files of the service; others in the folder are left alone."""
_PIECES = 8
"""The files of an hour are ended early at this part of the bytes, so that what gives way is a part of them."""


class HourlyFiles:
    """Writes both tables into a draft each, which gets its name with the hour; killed, the next process names it.

    Drafts are JSON lines, which can be read however far they got. With `parquet`, they are turned into that once their
    hour is over.
    """

    def __init__(
        self, folder: Path, *, most_bytes: int, parquet: bool = False, removed: Callable[[], object] = lambda: None
    ) -> None:
        self.folder = folder
        self.most_bytes = most_bytes
        self._removed = removed
        self._process, self._number = secrets.token_hex(4), 0
        self._key = ""
        self._drafts: dict[str, int] = {}
        """Open files, by table."""
        self._sizes: dict[str, int] = {}
        self._publisher = Publisher() if parquet else None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._recover()
            (folder / f".{self._process}").touch()
            (folder / f".{self._process}").unlink()
        except OSError as error:
            raise OptionError(f"cannot write to --log-to {folder}: {error.strerror}; give another folder") from error

    def write(self, queries: bytes, events: bytes, *, now: datetime) -> None:
        """Add lines to both tables, or to none of them: an `OSError`, such as of a full disk, leaves no piece."""
        hour = hour_of(now)
        size = len(queries) + len(events)
        held = sum(self._sizes.values())
        if self._drafts and (not self._key.startswith(hour) or held + size > self.most_bytes // _PIECES):
            self.finish()
        if not self._drafts:
            self._begin(hour)
        before = dict(self._sizes)
        try:
            for table, lines in zip(_TABLES, (events, queries), strict=True):
                _write_all(self._drafts[table], lines)
                self._sizes[table] += len(lines)
        except OSError:
            for table, end in before.items():
                os.ftruncate(self._drafts[table], end)
            self._sizes = before
            raise

    def finish(self, *, unless_hour: datetime | None = None) -> None:
        """Give the files their names, unless their hour is this one."""
        if unless_hour is not None and self._key.startswith(hour_of(unless_hour)):
            return
        drafts, self._drafts = self._drafts, {}
        for draft in drafts.values():
            with suppress(OSError):
                os.fsync(draft)
        if drafts:
            self._publish([ClosedFile(self._path(table), draft) for table, draft in drafts.items()])

    def close(self) -> None:
        """Give all files their names; nothing is written any more."""
        self.finish()
        if self._publisher is not None:
            self._publisher.close()

    def _publish(self, files: Sequence[ClosedFile]) -> None:
        if self._publisher is None:
            publish(files, LINES)
        else:
            self._publisher.put(files)

    def _path(self, table: str) -> Path:
        return self.folder / f".{table}-{self._key}{LINES}{DRAFT}"

    def _begin(self, hour: str) -> None:
        self._make_room()
        self._number += 1
        self._key = f"{hour}-{self._process}-{self._number:06d}"
        try:
            for table in _TABLES:
                self._drafts[table] = _open(self._path(table))
        except OSError:
            # Empty ones, which the next process takes away.
            for draft in self._drafts.values():
                os.close(draft)
            self._drafts = {}
            raise
        self._sizes = dict.fromkeys(_TABLES, 0)

    def _make_room(self) -> None:
        """Remove the oldest hours of all processes until another piece fits, both tables of an hour together."""
        sizes: dict[str, int] = {}
        held = 0
        for path in self.folder.iterdir():
            # Another process may name or remove a file in between.
            with suppress(FileNotFoundError):
                if found := _FILE.fullmatch(path.name):
                    size = path.stat().st_size
                    held += size
                    if not found["draft"]:
                        sizes[found["key"]] = sizes.get(found["key"], 0) + size
        for key in sorted(sizes):
            if held <= self.most_bytes - self.most_bytes // _PIECES:
                return
            # The queries go first, for the reason that they come last.
            for name in (f"{table}-{key}{ending}" for table in reversed(_TABLES) for ending in (LINES, PARQUET)):
                with suppress(FileNotFoundError):
                    (self.folder / name).unlink()
                    self._removed()
            held -= sizes[key]

    def _recover(self) -> None:
        """Name the drafts of processes that were killed, without a line that was cut off."""
        found = (_FILE.fullmatch(path.name) for path in self.folder.glob(f".*{LINES}{DRAFT}"))
        for key in sorted({name["key"] for name in found if name}):
            drafts: list[ClosedFile] = []
            with suppress(BlockingIOError):
                for table in _TABLES:
                    path = self.folder / f".{table}-{key}{LINES}{DRAFT}"
                    with suppress(FileNotFoundError):
                        drafts.append(ClosedFile(path, _open(path, new=False)))
                        _drop_cut_line(drafts[-1].descriptor)
                self._publish(drafts)
                continue
            for draft in drafts:
                os.close(draft.descriptor)


def hour_of(time: datetime) -> str:
    """The hour of a time in UTC, as files are named by it."""
    return f"{time.astimezone(UTC):%Y-%m-%dT%H}"


def _open(path: Path, *, new: bool = True) -> int:
    """An open file that a living process has locked."""
    flags = os.O_RDWR | os.O_APPEND | (os.O_CREAT if new else 0)
    locked = lock(path, flags)
    return os.open(path, flags, 0o644) if locked is None else locked


def _write_all(file: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


def _drop_cut_line(file: int) -> None:
    """Shorten a file to its last line break."""
    end = os.fstat(file).st_size
    while end:
        start = max(0, end - 2**16)
        found = os.pread(file, end - start, start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    os.ftruncate(file, end)

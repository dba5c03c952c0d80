"""The way from an answer to the log: a queue with an end, and one thread that writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from threading import Event, Lock, Thread

from ultr.serving.hourly_files import HourlyFiles, hour_of
from ultr.serving.shown import Action, ShownList

FLUSH_SECONDS = 1.0
"""At most so much of what was answered is lost by a process that is killed."""
MOST_WAITING = 100_000
"""Impressions and events that wait to be written; more are dropped."""
_CHUNK_BYTES = 2**20
_CLOSE_SECONDS = 5.0

Entry = ShownList | Action
Told = Callable[[Entry, str], object]
"""Is called for each entry with `logged`, `queue` or `disk`, as it was written or lost."""


class Journal:
    """Takes entries without ever waiting, and writes them once a second."""

    def __init__(self, files: HourlyFiles, told: Told, *, most_waiting: int = MOST_WAITING) -> None:
        self._files = files
        self._told = told
        self._most = most_waiting
        self._lock = Lock()
        self._waiting: list[Entry] = []
        self._weight = 0
        self._closed = False
        self._wake = Event()
        self._thread = Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def put(self, entry: Entry) -> bool:
        """Let an entry be written; False if too many wait for it."""
        weight = 1 + (len(entry.documents) if isinstance(entry, ShownList) else 0)
        with self._lock:
            fits = not self._closed and self._weight + weight <= self._most
            if fits:
                self._waiting.append(entry)
                self._weight += weight
            if self._weight > self._most // 2:
                self._wake.set()
        if not fits:
            self._told(entry, "queue")
        return fits

    def close(self) -> bool:
        """Write what waits and give the files their names; False if the disk holds that up."""
        with self._lock:
            self._closed = True
        self._wake.set()
        self._thread.join(_CLOSE_SECONDS)
        return not self._thread.is_alive()

    def _run(self) -> None:
        closed = False
        while not closed:
            self._wake.wait(FLUSH_SECONDS)
            self._wake.clear()
            with self._lock:
                closed = self._closed
                entries, self._waiting, self._weight = self._waiting, [], 0
            for at, chunk in _chunks(entries, now=datetime.now(UTC)):
                self._write(chunk, at)
            self._finish(closed=closed)

    def _write(self, chunk: Sequence[tuple[Entry, bytes, bytes]], at: datetime) -> None:
        queries = b"".join(query for _, query, _ in chunk)
        events = b"".join(lines for _, _, lines in chunk)
        try:
            self._files.write(queries, events, now=at)
        except OSError:
            result = "disk"
        else:
            result = "logged"
        for entry, _, _ in chunk:
            self._told(entry, result)

    def _finish(self, *, closed: bool) -> None:
        try:
            if closed:
                self._files.close()
            else:
                self._files.finish(unless_hour=datetime.now(UTC))
        except OSError:
            # The drafts stay, and the next process names them.
            return


def _chunks(entries: Sequence[Entry], *, now: datetime) -> Iterator[tuple[datetime, list[tuple[Entry, bytes, bytes]]]]:
    """Entries with their lines of queries and of events, in pieces of about a megabyte, and the time of each piece.

    Its lists are of one hour, so that a list is in the file of its own day, however late it is written.
    """
    chunk: list[tuple[Entry, bytes, bytes]] = []
    size, at = 0, next((entry.at for entry in entries if isinstance(entry, ShownList)), now)
    for entry in entries:
        if isinstance(entry, ShownList):
            if chunk and hour_of(entry.at) != hour_of(at):
                yield at, chunk
                chunk, size = [], 0
            at = entry.at
            query, events = entry.query_line(), b"".join(entry.event_lines())
        else:
            query, events = b"", entry.event_line()
        chunk.append((entry, query, events))
        size += len(query) + len(events)
        if size >= _CHUNK_BYTES:
            yield at, chunk
            chunk, size = [], 0
    if chunk:
        yield at, chunk

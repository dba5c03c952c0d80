"""Closed files of JSON lines as Parquet, made beside the service by a thread that yields to requests."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from ultr.serving import logs

LINES, PARQUET, DRAFT = ".jsonl", ".parquet", ".part"
_CHUNK_BYTES = 2**20
_CHUNKS = 8
"""Chunks that become one row group."""
_NICE = 10
_MOST_WAITING = 2
_CLOSE_SECONDS = 2.0


@dataclass(frozen=True)
class ClosedFile:
    """A hidden file of JSON lines that nothing is added to any more, locked by this process."""

    path: Path
    """Such as `.ubi_events-....jsonl.part`."""
    descriptor: int

    @property
    def name(self) -> str:
        """Name without ending and without the dot of hidden files."""
        return self.path.name.removeprefix(".").removesuffix(DRAFT).removesuffix(LINES)

    def publish(self, ending: str, *, hurry: threading.Event | None = None) -> None:
        """Give it its name: as Parquet, or as it is if that fails or there is a hurry; an empty one goes away."""
        try:
            if not self.path.stat().st_size:
                self.path.unlink()
            elif ending == LINES or not self._convert(hurry or threading.Event()):
                self.path.rename(self.path.with_name(f"{self.name}{LINES}"))
        finally:
            os.close(self.descriptor)

    def _convert(self, hurry: threading.Event) -> bool:
        import pyarrow

        draft = self.path.with_name(f".{self.name}{PARQUET}{DRAFT}")
        try:
            if write_parquet(self.path, draft, hurry):
                draft.rename(self.path.with_name(f"{self.name}{PARQUET}"))
                # A process that is killed before this makes the same file once more.
                self.path.unlink()
                return True
        except (OSError, pyarrow.ArrowException) as error:
            logs.write("kept as JSON lines", level=logging.WARNING, error=error)
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        return False


def publish(files: Sequence[ClosedFile], ending: str, *, hurry: threading.Event | None = None) -> None:
    """Give files that belong together their names in this order; after an `OSError` the rest stays hidden."""
    for number, file in enumerate(files):
        try:
            file.publish(ending, hurry=hurry)
        except OSError:
            for other in files[number + 1 :]:
                os.close(other.descriptor)
            raise


class Publisher:
    """Publishes files on a thread of its own."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Sequence[ClosedFile] | None] = SimpleQueue()
        self._hurry = threading.Event()
        self._thread = threading.Thread(target=self._run, name="parquet", daemon=True)
        self._thread.start()

    def put(self, files: Sequence[ClosedFile]) -> None:
        """Let files that belong together be published in this order; as they are if others wait already.

        What waits cannot give way to newer files.
        """
        if self._waiting.qsize() < _MOST_WAITING:
            self._waiting.put(files)
        else:
            publish(files, LINES)

    def close(self) -> None:
        """Publish what waits, as it is where Parquet would take too long."""
        self._waiting.put(None)
        self._thread.join(_CLOSE_SECONDS)
        self._hurry.set()
        self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        with suppress(OSError, AttributeError):
            # On Linux, the priority of a thread.
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        while (files := self._waiting.get()) is not None:
            with suppress(OSError):
                # What cannot be named now stays hidden, and the next process names it.
                publish(files, LINES if self._hurry.is_set() else PARQUET, hurry=self._hurry)


def write_parquet(lines: Path, target: Path, hurry: threading.Event) -> bool:
    """Write JSON lines as Parquet; False if there was a hurry before its end.

    Types are those of all lines together, which are read twice, a megabyte at a time.
    """
    import pyarrow
    from pyarrow import parquet

    schema = None
    for table in _tables(lines, None):
        known = [table.schema] if schema is None else [schema, table.schema]
        schema = pyarrow.unify_schemas(known, promote_options="permissive")
        if hurry.is_set():
            return False
    tables = _tables(lines, schema)
    with parquet.ParquetWriter(target, schema, compression="zstd") as writer:
        while group := list(islice(tables, _CHUNKS)):
            writer.write_table(pyarrow.concat_tables(group))
            if hurry.is_set():
                return False
    # Else a service keeps for good what it took for a moment of each hour.
    pyarrow.default_memory_pool().release_unused()
    with target.open("rb") as written:
        os.fsync(written.fileno())
    return True


def _tables(lines: Path, schema: Any | None) -> Iterator[Any]:
    """The lines as Arrow tables of a schema; without one, types are guessed, but for texts that may look like times."""
    import pyarrow
    from pyarrow import json

    given = _texts(queries="queries" in lines.name) if schema is None else schema
    parse = json.ParseOptions(given, unexpected_field_behavior="infer" if schema is None else "error")
    for chunk in _chunks(lines):
        read = json.ReadOptions(use_threads=False, block_size=len(chunk) + 1)
        yield json.read_json(pyarrow.BufferReader(chunk), read_options=read, parse_options=parse)


def _texts(*, queries: bool) -> Any:
    """The fields of a table that are texts, whatever they look like."""
    import pyarrow

    text = pyarrow.string()
    fields: dict[str, Any] = dict.fromkeys(("application", "query_id", "timestamp"), text)
    if queries:
        fields |= {"client_id": text, "user_query": text, "query_response_hit_ids": pyarrow.list_(text)}
    else:
        named = pyarrow.struct({"object_id": text})
        fields |= {"action_name": text, "event_attributes": pyarrow.struct({"object": named})}
    return pyarrow.schema(fields)


def _chunks(lines: Path) -> Iterator[bytes]:
    """Whole lines, a megabyte at a time."""
    with lines.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            yield chunk + (b"" if chunk.endswith(b"\n") else stream.readline())

"""One JSON object per line on stderr; never what a request contains."""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from queue import Full, Queue
from threading import Thread

NAME = "ultr.serving"
_LOGGERS = (NAME, "uvicorn.error")
_STDERR = 2
_MOST_WAITING = 10_000
"""Lines that wait to be written; more are dropped."""
_CLOSE_SECONDS = 1.0
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")
_PROCESS, _NUMBERS = secrets.token_hex(4), count(1)
"""Request ids are numbers after something random that tells processes apart."""


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            # An exception's own words may quote the request; where it happened does not.
            error = record.exc_info[1]
            frames = traceback.extract_tb(error.__traceback__)
            fields["exception"] = type(error).__name__
            fields["at"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-8:]]
        return json.dumps(fields)


class _Writer(logging.Handler):
    """Writes from a thread of its own, so that a pipe that nobody reads holds up the log and nothing else."""

    def __init__(self, dropped: Callable[[], object]) -> None:
        super().__init__()
        self.setFormatter(_Lines())
        self._dropped = dropped
        self._waiting: Queue[str | None] = Queue(_MOST_WAITING)
        self._thread = Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Let a line be written, if not too many wait for it."""
        try:
            self._waiting.put_nowait(self.format(record))
        except Full:
            self._dropped()

    def close(self) -> None:
        """Write what waits, if somebody reads it."""
        with suppress(Full):
            self._waiting.put_nowait(None)
        self._thread.join(_CLOSE_SECONDS)
        super().close()

    def _write(self) -> None:
        while (line := self._waiting.get()) is not None:
            rest = f"{line}\n".encode()
            try:
                while rest:
                    rest = rest[os.write(_STDERR, rest) :]
            except OSError:
                self._dropped()


def configure(level: str, *, dropped: Callable[[], object] = lambda: None) -> None:
    """Send the lines of the service and the errors of uvicorn to stderr; `dropped` is called for each that is lost.

    What uvicorn warns of, requests that are no HTTP or ask for a websocket, the service tells or answers itself.
    """
    handler = _Writer(dropped)
    for name, lowest in zip(_LOGGERS, (level.upper(), "ERROR"), strict=True):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(lowest)


def close() -> None:
    """Write what waits, and wait a moment for it."""
    for handler in logging.getLogger(NAME).handlers:
        handler.close()


def write(event: str, *, level: int = logging.INFO, error: BaseException | None = None, **fields: object) -> None:
    """Write one line."""
    logging.getLogger(NAME).log(level, event, extra={"fields": fields}, exc_info=error)


def request_id(given: str) -> str:
    """The id that a client or proxy gave, if it is short and plain; else the next one."""
    return given if _PLAIN.fullmatch(given) else f"{_PROCESS}-{next(_NUMBERS)}"

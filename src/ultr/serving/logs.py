"""One JSON object per line on stderr; never what a request contains."""

from __future__ import annotations

import json
import logging
import re
import secrets
import sys
import traceback
from datetime import UTC, datetime
from itertools import count

NAME = "ultr.serving"
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


def configure(level: str) -> None:
    """Send the lines of the service and the warnings of uvicorn to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    for name, lowest in ((NAME, level.upper()), ("uvicorn.error", "WARNING")):
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
        logger.setLevel(lowest)


def write(event: str, *, level: int = logging.INFO, error: BaseException | None = None, **fields: object) -> None:
    """Write one line."""
    logging.getLogger(NAME).log(level, event, extra={"fields": fields}, exc_info=error)


def request_id(given: str) -> str:
    """The id that a client or proxy gave, if it is short and plain; else the next one."""
    return given if _PLAIN.fullmatch(given) else f"{_PROCESS}-{next(_NUMBERS)}"

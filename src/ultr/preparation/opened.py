"""A raw log opened as one table: files, a database, a frame, or impressions with events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ultr.preparation.engine import Engine
from ultr.preparation.options import Options
from ultr.preparation.sources import is_columnar, name_of, open_table
from ultr.preparation.ubi import ubi_rows


@dataclass(frozen=True)
class Opened:
    """A log as a table."""

    table: Any
    name: str
    """Name of the log in messages."""
    cheap: bool
    """True if its columns can be read several times at little cost."""
    roles: Mapping[str, Any] = field(default_factory=dict)
    """Roles of columns that follow from where it comes from."""
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    """Events on documents that were not shown, by signal."""
    notes: tuple[str, ...] = ()
    """What else was found, in sentences."""


def open_log(engine: Engine, log: object, options: Options) -> Opened:
    """A log with its events, if they are in a table of their own."""
    name = name_of(log)
    if options.ubi:
        table, elsewhere = ubi_rows(engine, log, options.taken_along())
        return Opened(table, name, cheap=False, elsewhere={"click": elsewhere} if elsewhere else {})
    return Opened(open_table(engine, log), name, cheap=is_columnar(log))

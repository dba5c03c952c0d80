"""Queries that were shown lately, which events refer to."""

from __future__ import annotations

import sys
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import Literal

MOST_BYTES = 64 * 2**20
"""Size of what is remembered, about 50,000 lists of ten documents."""
_QUERY_BYTES = 600
"""Size of a query without its documents, about."""
LATE = timedelta(minutes=30)
_MOST_ACTIONS = 100
"""Actions of a query of which a repetition is noticed."""

Joined = Literal["joined", "duplicate", "late", "not_shown", "unknown"]
JOINED: tuple[Joined, ...] = ("joined", "duplicate", "late", "not_shown", "unknown")


@dataclass(slots=True)
class _Answered:
    documents: tuple[str, ...]
    at: datetime
    is_kept: bool = False
    """True once it was answered and given to the log."""
    actions: set[tuple[str, str]] = field(default_factory=set)


class RecentQueries:
    """Remembers shown lists by their id, the oldest of which are forgotten."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._queries: OrderedDict[str, _Answered] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def claim(self, query_id: str, documents: tuple[str, ...], at: datetime) -> bool:
        """Take an id for a list; False if another list has it."""
        with self._lock:
            known = self._queries.get(query_id)
            if known is not None:
                return known.documents == documents
            self._queries[query_id] = _Answered(documents, at)
            self._bytes += _size(documents)
            while self._bytes > self._most:
                _, oldest = self._queries.popitem(last=False)
                self._bytes -= _size(oldest.documents)
            return True

    def is_kept(self, query_id: str) -> bool:
        """True if the list of this id was given to the log."""
        with self._lock:
            return (known := self._queries.get(query_id)) is not None and known.is_kept

    def keep(self, query_id: str) -> None:
        """Remember that the list of this id was given to the log."""
        with self._lock:
            if (known := self._queries.get(query_id)) is not None:
                known.is_kept = True

    def join(self, query_id: str, document: str, action: str, at: datetime) -> tuple[Joined, int | None]:
        """The relation of an action to what was shown, and the rank, from 0, of its document there."""
        with self._lock:
            known = self._queries.get(query_id)
            if known is None or not known.is_kept:
                return "unknown", None
            if document not in known.documents:
                return "not_shown", None
            rank = known.documents.index(document)
            if (document, action) in known.actions:
                return "duplicate", rank
            if len(known.actions) < _MOST_ACTIONS:
                known.actions.add((document, action))
            return ("late" if at - known.at > LATE else "joined"), rank


def _size(documents: tuple[str, ...]) -> int:
    return _QUERY_BYTES + sys.getsizeof(documents) + sum(map(sys.getsizeof, documents))

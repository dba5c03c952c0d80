"""The record of how a part was cut out of a click log, so that the rest of the log can be found again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

HELD_OUT = 0.1
"""Share of a log that is held out by default."""
SPLITS = ("query", "page", "time", "hash")
BY_QUERY = ("query", "hash")
"""Splits that put whole queries aside."""


@dataclass(frozen=True)
class Split:
    """One cut: the log that was cut, how, and which of its two parts this is.

    >>> Split("the log's fingerprint", "query", 0.2).opposite
    Split(parent="the log's fingerprint", by='query', share=0.2, seed=0, part='held-out')
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    parent: str
    """Fingerprint of the log that was cut."""
    by: Literal["query", "page", "time", "hash", "selection"]
    """`selection`: lists that somebody chose, which only the parent could be compared with."""
    share: float = 0.0
    """Share of the parent that was held out; a selection has none."""
    seed: int = 0
    part: Literal["kept", "held-out"] = "kept"

    @property
    def opposite(self) -> Split:
        """The other part of the same cut."""
        return replace(self, part="held-out" if self.part == "kept" else "kept")

    def is_apart_from(self, other: Split) -> bool:
        """True if the two are the two parts of one cut, which share no page."""
        return self.by != "selection" and self == other.opposite

"""An answer to one question about a log: in words, with what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ultr.pages import Table


class Verdict(StrEnum):
    """The gravity of an answer."""

    GOOD = "good"
    CAREFUL = "careful"
    """It can be trained on, if what the advice says is borne in mind."""
    BAD = "bad"
    """A ranker trained on the log as it is cannot be trusted."""
    UNKNOWN = "unknown"
    """The log does not tell."""


@dataclass(frozen=True)
class Finding:
    """The answer to one question."""

    name: str
    question: str
    verdict: Verdict
    answer: str
    advice: str = ""
    """Advice; empty where all is well."""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """Every number behind the answer, as JSON has it."""
    tables: tuple[Table, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The finding as plain values, without the tables: the numbers are their content."""
        texts = ("name", "question", "verdict", "answer", "advice")
        return {name: str(getattr(self, name)) for name in texts} | dict(self.numbers)


def sentences(parts: Sequence[str]) -> str:
    """Parts as sentences one after the other.

    >>> sentences(["there are few clicks", "", "log more of them"])
    'There are few clicks. Log more of them.'
    """
    return " ".join(f"{part[0].upper()}{part[1:]}." for part in parts if part)

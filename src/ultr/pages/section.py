"""A section: a question, its answer in words, and what the answer rests on.

The doctor's findings, the parts of a report, a comparison and the result of an experiment are all sections, so that
each is measured and worded in one place and shown wherever it is wanted: on a page, on a screen, in a notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ultr.pages.drawing import Drawing
from ultr.pages.table import Table

Draw = Callable[[], Drawing | None]
"""Draws a figure when a page is made; None where there is nothing to see."""


class Verdict(StrEnum):
    """The gravity of an answer."""

    GOOD = "good"
    CAREFUL = "careful"
    """It can be used, if what the advice says is borne in mind."""
    BAD = "bad"
    """It cannot be trusted as it is."""
    UNKNOWN = "unknown"
    """The data do not tell."""


@dataclass(frozen=True)
class Section:
    """A question and its answer."""

    title: str
    answer: str = ""
    """Words; an empty line starts a new paragraph."""
    verdict: Verdict | None = None
    advice: str = ""
    """Advice on what to do or to bear in mind; empty where all is well."""
    tables: Sequence[Table] = ()
    figures: Mapping[str, Draw] = field(default_factory=dict)
    """By caption."""
    numbers: Any = field(default_factory=dict)
    """Every number behind the answer, as JSON has it; a page does not show them."""
    name: str = ""
    """A short name, by which machines know it."""
    word: str = ""
    """The word that stands for the verdict, if not its own."""
    parts: Sequence[Section] = ()
    """Answers to smaller questions."""
    commands: Sequence[str] = ()
    """Commands to type."""
    folded: bool = False
    """Shown only when it is opened."""

    @property
    def badge(self) -> str:
        """The verdict in a word; empty without one."""
        return "" if self.verdict is None else self.word or str(self.verdict)

    def drawings(self) -> dict[str, Drawing]:
        """The figures that there is something to see on, by caption."""
        drawn = {caption: draw() for caption, draw in self.figures.items()}
        return {caption: drawing for caption, drawing in drawn.items() if drawing is not None}

    def as_json(self) -> dict[str, Any]:
        """The words and the numbers, without tables: the numbers are their content."""
        words = {"question": self.title, "verdict": self.badge, "answer": self.answer, "advice": self.advice}
        return {"name": self.name, **words, **self.numbers}


def sentences(parts: Sequence[str]) -> str:
    """Parts as sentences one after the other.

    >>> sentences(["there are few clicks", "", "log more of them"])
    'There are few clicks. Log more of them.'
    """
    return " ".join(f"{part[0].upper()}{part[1:]}." for part in parts if part)

"""A page of sections, each with words, tables and drawings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from ultr.files import new_file
from ultr.pages.drawing import Drawing
from ultr.pages.table import Table
from ultr.version import __version__

GENERATOR = "ultr"


@dataclass(frozen=True)
class Badge:
    """A word with a tone: good, careful, bad or unknown."""

    text: str
    tone: str


@dataclass(frozen=True)
class Point:
    """One of several answers in a section."""

    title: str
    text: str
    badge: Badge | None = None
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Section:
    """A part of a page."""

    title: str
    text: str = ""
    advice: str = ""
    badge: Badge | None = None
    drawings: Sequence[Drawing] = ()
    tables: Sequence[Table] = ()
    points: Sequence[Point] = ()
    commands: Sequence[str] = ()
    """Commands to type."""
    numbers: Mapping[str, Any] = field(default_factory=dict)
    """The numbers behind it, for machines; the page does not show them."""


@dataclass(frozen=True)
class Page:
    """A page that stands alone."""

    title: str
    summary: str
    sections: Sequence[Section]
    steps: Sequence[str] = ()
    """Things to do, in order."""
    footer: str = ""

    def html(self) -> str:
        """The page as one HTML text."""
        from jinja2 import Environment, StrictUndefined

        template = files("ultr.pages").joinpath("page.html").read_text(encoding="utf-8")
        environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        return environment.from_string(template).render(page=self, generator=f"{GENERATOR} {__version__}")

    def write(self, path: str | Path) -> None:
        """Write the page to a file, whole or not at all."""
        text = self.html()
        with new_file(path) as draft:
            draft.write_text(text, encoding="utf-8")


def is_page(path: str | Path) -> bool:
    """True if a file is a page that `Page.write` wrote."""
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        return f'<meta name="generator" content="{GENERATOR} ' in file.read(2_000)

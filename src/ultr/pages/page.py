"""A page of sections, each with words, tables and drawings."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from ultr.files import new_file
from ultr.pages.drawing import Drawing
from ultr.pages.table import Table
from ultr.printable import visible
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
        environment = Environment(
            autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_shown
        )
        generator, policy = f"{GENERATOR} {__version__}", _policy(template)
        return environment.from_string(template).render(page=self, generator=generator, policy=policy)

    def write(self, path: str | Path) -> None:
        """Write the page to a file, whole or not at all."""
        text = self.html()
        with new_file(path) as draft:
            draft.write_text(text, encoding="utf-8")


def _shown(value: Any) -> Any:
    """Text with marks that would turn it around made visible; drawings have done so themselves."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _policy(template: str) -> str:
    """The policy for browsers: a page may run its own script, by its hash, and ask for nothing outside."""
    script = template.partition("<script>")[2].partition("</script>")[0]
    own = b64encode(sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{own}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def is_page(path: str | Path) -> bool:
    """True if a file is a page that `Page.write` wrote."""
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        return f'<meta name="generator" content="{GENERATOR} ' in file.read(2_000)

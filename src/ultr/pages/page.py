"""A page of sections."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ultr.files import new_file
from ultr.pages.section import Section
from ultr.printable import visible
from ultr.version import __version__

if TYPE_CHECKING:
    from markupsafe import Markup

GENERATOR = "ultr"


@dataclass(frozen=True)
class Page:
    """A page that stands alone."""

    title: str
    summary: str
    sections: Sequence[Section]
    steps: Sequence[str] = ()
    """Things to do, in order."""
    command: str = ""
    """The command that writes it."""

    def html(self) -> str:
        """The page as one HTML text."""
        return self._rendered("page.html")

    def fragment(self) -> str:
        """The page without head and script, as a notebook shows it."""
        return self._rendered("fragment.html")

    def _rendered(self, template: str) -> str:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        environment = Environment(
            loader=PackageLoader("ultr.pages", "."),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_shown,
        )
        environment.filters["unbroken"] = _unbroken
        words = f"{self.title} {self.summary} {' '.join(each.title + each.answer for each in self.sections)}"
        return environment.get_template(template).render(
            page=self,
            generator=f"{GENERATOR} {__version__}",
            policy=_policy(),
            # Several pages may stand in one notebook, and ids must not meet.
            prefix=f"u{sha256(words.encode()).hexdigest()[:8]}",
        )

    def write(self, path: str | Path) -> None:
        """Write the page to a file, whole or not at all."""
        text = self.html()
        with new_file(path) as draft:
            draft.write_text(text, encoding="utf-8")

    def as_json(self) -> dict[str, Any]:
        """The numbers of every section by its name."""
        return {
            "title": self.title,
            "summary": self.summary,
            **{section.name: section.numbers for section in self.sections},
        }


def notebook(page: Page) -> str | None:
    """The page for a notebook; None, so that plain text is shown, where the libraries for pages are not there."""
    try:
        return page.fragment()
    except ImportError:
        return None


def _shown(value: Any) -> Any:
    """Text with marks that would turn it around made visible; drawings have done so themselves."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _unbroken(text: str) -> Markup:
    """Text in which no option of a command, such as `--log`, is broken into two lines at its hyphens."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"(?<!\S)--[\w-]+", r'<span class="option">\g<0></span>', str(escape(visible(text)))))


def _policy() -> str:
    """The policy for browsers: a page may run its own script, by its hash, and ask for nothing outside."""
    template = files("ultr.pages").joinpath("page.html").read_text(encoding="utf-8")
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

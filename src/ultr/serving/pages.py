"""The pages of the service, each in one piece that loads nothing from elsewhere."""

from __future__ import annotations

from importlib.resources import files

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content that the browser may load for a page: nothing from elsewhere."""
_SHARED = {"/* page.css */": "page.css", "/* page.js */": "page.js", "<!-- token form -->": "token_form.html"}
"""Files that all pages have in common, by the marks that stand in their places."""


def page(name: str) -> str:
    """A page by the name of its file."""
    text = _read(name)
    for mark, file in _SHARED.items():
        text = text.replace(f"{mark}\n", _read(file))
    return text


def _read(name: str) -> str:
    return files("ultr.serving").joinpath(name).read_text(encoding="utf-8")

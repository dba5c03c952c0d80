"""Values as a notebook shows them: a title and a small table, without styles and without anything from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from ultr.printable import visible


def as_html(title: str, rows: Sequence[Mapping[str, str]], *, note: str = "") -> str:
    """Rows of text under a title, escaped; the columns are the keys of the first row.

    >>> as_html("1 < 2", [{"position": "1", "rate": "0.5"}])
    '<p>1 &lt; 2</p><table><tr><th>position</th><th>rate</th></tr><tr><td>1</td><td>0.5</td></tr></table>'
    """
    head = "".join(f"<th>{_shown(column)}</th>" for column in rows[0]) if rows else ""
    lines = ["".join(f"<td>{_shown(cell)}</td>" for cell in row.values()) for row in rows]
    table = "".join(f"<tr>{line}</tr>" for line in (head, *lines)) if rows else ""
    end = f"<p>{_shown(note)}</p>" if note else ""
    return f"<p>{_shown(title)}</p>" + (f"<table>{table}</table>" if table else "") + end


def _shown(text: str) -> str:
    return escape(visible(text))

"""Examples in docstrings as code: Markdown would take `>>>` for a quotation."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", flags=re.DOTALL | re.MULTILINE)


class Doctests(griffe.Extension):
    """Puts the examples of each docstring into a code block."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for each object that was found."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)

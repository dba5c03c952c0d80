"""The reference of the command line, written from the commands themselves at every build.

The page asks for it with a comment, `<!-- commands -->`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import Parameter, getdoc, signature
from typing import Any, get_args

from typer.models import ArgumentInfo

from ultr.cli import app


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the commands in their place."""
    return markdown.replace("<!-- commands -->", "\n".join(_lines())) if "<!-- commands" in markdown else markdown


def _lines() -> Iterator[str]:
    for each in app.registered_commands:
        assert each.callback is not None
        yield f"## ultr {each.callback.__name__}\n\n{getdoc(each.callback)}\n"
        yield '<div class="options" markdown>\n\n| | |\n|---|---|'
        yield from _rows(each.callback)
        yield "\n</div>\n"


def _rows(command: Callable[..., Any]) -> Iterator[str]:
    for parameter in signature(command, eval_str=True).parameters.values():
        kind, note = get_args(parameter.annotation)[:2]
        if isinstance(note, ArgumentInfo):
            name = note.metavar or parameter.name.upper()
        else:
            # In an annotation, what stands first is no default but the name.
            name = note.default if isinstance(note.default, str) else f"--{parameter.name.replace('_', '-')}"
            if kind is not bool:
                name += f" {note.metavar or _value(kind)}"
        help_text = " ".join(note.help.split()).replace("|", "\\|")
        yield f"| `{name}` | {help_text} {_default(parameter)} |"


def _value(kind: Any) -> str:
    """The word for a value: NUMBER, PATH or TEXT."""
    names = {each.__name__ for each in (kind, *get_args(kind)) if isinstance(each, type)}
    return "NUMBER" if names & {"int", "float"} else "PATH" if "Path" in names else "TEXT"


def _default(parameter: Parameter) -> str:
    value = parameter.default
    if value is Parameter.empty:
        return "**Needed.**"
    return "" if value is None or value is False else f"Default: `{value}`."

"""Output of the commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from ultr import files
from ultr.printable import visible

if TYPE_CHECKING:
    from rich.status import Status
    from rich.text import Text

    from ultr.data.click_log import ClickLog
    from ultr.pages import Section


_BETWEEN, _EDGE = 2, 1
"""Blanks that a table has for each column, and at its edge."""
_LONGEST_NUMBER = 40
"""Letters of a cell beyond which it is a sentence, even if it begins with a number."""
_NARROWEST_TEXT = 20
"""A column of words is not made narrower than this, if its words are longer."""
_WIDEST_FIRST = 36
"""A first column that leaves too little room for the others wraps at this width."""

_quiet = ContextVar("quiet", default=False)


def hush(quiet: bool) -> None:
    """Print neither progress nor summaries from now on, or do so again."""
    _quiet.set(quiet)


def is_quiet() -> bool:
    """True if neither progress nor summaries are to be printed."""
    return _quiet.get()


def echo(text: str = "", *, err: bool = False) -> None:
    """Print lines, with what would act on the terminal made visible; if quiet, only those for standard error."""
    if err or not is_quiet():
        typer.echo(visible(text), err=err)


def tell(text: str) -> None:
    """Print what goes on to standard error, unless quiet."""
    if not is_quiet():
        echo(text, err=True)


def shown(text: str, style: str = "") -> Text:
    """The same for what rich prints, without markup."""
    from rich.text import Text

    return Text(visible(text), style=style)


def status(text: str) -> Status:
    """Show on stderr what goes on as long as the block lasts."""
    from rich.console import Console

    return Console(stderr=True, quiet=is_quiet()).status(shown(text))


def print_json(content: Any) -> None:
    """Print JSON and nothing else; what has no value is null."""
    typer.echo(files.as_json(content))


def print_table(rows: Sequence[Mapping[str, str]], *, title: str = "") -> None:
    """Print rows as a table, numbers to the right; the columns are the keys of the first row.

    A table that is too wide for the screen goes on below, with its first column again.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    if is_quiet():
        return
    if title:
        echo(title)
    rows = [{visible(column): visible(cell) for column, cell in row.items()} for row in rows]
    console = Console()
    first, *others = rows[0]
    beside = _width(rows, first)
    if _EDGE + sum(_width(rows, each) for each in (first, *others)) > console.width:
        beside = min(beside, _WIDEST_FIRST)
    for part in _that_fit(rows, others, console.width - beside - _EDGE):
        table = Table(header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        columns = [first, *part]
        # Headings break where there is no room for them in one line; numbers never do.
        tight = _EDGE + sum(_width(rows, each, heading=len(each)) for each in columns) > console.width
        wraps = beside < _width(rows, first)
        table.add_column(shown(first), no_wrap=not wraps, width=beside - _BETWEEN if wraps else None)
        for column in part:
            numeric = _is_numeric(rows, column)
            table.add_column(
                shown(column),
                justify="right" if numeric else "left",
                width=_width(rows, column) - _BETWEEN if numeric and tight else None,
            )
        for row in rows:
            table.add_row(*(shown(row[column]) for column in columns))
        console.print(table)


def print_section(section: Section) -> None:
    """Print the words of a section and its tables."""
    for paragraph in f"{section.answer}\n\n{section.advice}".strip().split("\n\n"):
        echo(paragraph)
    for table in section.tables:
        print_table(table.rows, title=f"\n{table.title}")


def _is_numeric(rows: Sequence[Mapping[str, str]], column: str) -> bool:
    """True if some cell begins with a number and none is a sentence."""
    cells = [row[column] for row in rows]
    return any(cell[:1] in tuple("0123456789.+-") for cell in cells) and max(map(_cell_width, cells)) <= _LONGEST_NUMBER


def _that_fit(rows: Sequence[Mapping[str, str]], others: Sequence[str], free: int) -> Iterator[list[str]]:
    """The columns beside the first in groups that fit what is free; numbers are not broken, words are."""
    group: list[str] = []
    for column in others:
        needed = _width(rows, column)
        if not _is_numeric(rows, column):
            needed = min(needed, _NARROWEST_TEXT)
        if group and sum(_width(rows, each) for each in group) + needed > free:
            yield group
            group = []
        group.append(column)
    yield group


def _width(rows: Sequence[Mapping[str, str]], column: str, *, heading: int = 0) -> int:
    """What a column takes of the screen, with its heading broken into words unless it has a length of its own."""
    words = heading or max(map(len, column.split()), default=0)
    return _BETWEEN + max([words, *(_cell_width(row[column]) for row in rows)])


def _cell_width(text: str) -> int:
    return max(map(len, text.split("\n")))


def print_log(log: ClickLog, folder: Path, *, as_json: bool) -> None:
    """Print what a click log holds: totals and the click rate of each position."""
    if as_json:
        seen = log.position.values.max(initial=-1) + 1
        rates = log.totals(log.position).rates[:seen]
        print_json(
            {
                "folder": str(folder),
                "lists": log.lists,
                "queries": len(np.unique(log.queries)),
                "impressions": int(log.impressions.sum()),
                "clicks": int(log.clicks.sum()),
                "signals": {signal.name: int(signal.totals.sum()) for signal in log.signals},
                "click_rate_by_position": [round(rate, 6) for rate in rates.tolist()],
            }
        )
        return
    from ultr.data.notebook_tables import position_rows

    echo(f"{folder}: {log}")
    for signal in log.signals:
        echo(f"signal {signal.name}: {signal.totals.sum():,}")
    print_table(position_rows(log))

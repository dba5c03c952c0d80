"""Findings of an experiment: tables, figures and every number, and the folder that holds them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ultr.experiments.stored_tables import StoredTables
from ultr.files import new_folder, write_json
from ultr.pages import Table
from ultr.pages.drawing import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT = "ultr findings 1"


def file_name(clicks: str, label: str) -> str:
    """Name of the file for the figure of one ranker in one click setting.

    >>> file_name("real", "Vectorization d=2")
    'real-clicks-vectorization-d-2'
    """
    return "-".join([clicks, "clicks", *re.findall("[a-z0-9]+", label.lower())])


@dataclass(frozen=True)
class Findings:
    """Tables, notes, numbers and figures of an experiment."""

    title: str
    tables: Sequence[Table]
    notes: Sequence[str]
    """Notes on how to read the tables."""
    content: Any
    """Every number, as JSON has it."""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    """By name."""

    def write(self, folder: Path, command: str, provenance: dict[str, Any]) -> None:
        """Write everything, in place of what an earlier run of the command left there."""
        with new_folder(folder, overwrite=True) as draft:
            StoredTables.now(self.title, command, self.tables, self.content).write(draft / "tables.json")
            (draft / "tables.md").write_text(self.as_markdown(), encoding="utf-8")
            (draft / "tables.tex").write_text(self.as_latex(), encoding="utf-8")
            write_json(draft / "results.json", self.content)
            write_json(
                draft / "manifest.json", {"format": FORMAT, "title": self.title, "command": command, **provenance}
            )
            for name, figure in self.figures.items():
                save_figure(figure, draft, name)

    def as_markdown(self) -> str:
        """Tables and notes as Markdown."""
        parts = [f"# {self.title}", *(f"**{table.title}**\n\n{table.as_markdown()}" for table in self.tables)]
        return "\n\n".join([*parts, *self.notes]).replace("\n\n\n", "\n\n") + "\n"

    def as_latex(self) -> str:
        """The tables as LaTeX."""
        return "\n".join(replace(table, title=f"{self.title}: {table.title}").as_latex() for table in self.tables)

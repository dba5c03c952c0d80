"""The folder with what an experiment found: tables, figures, every number, and a page of all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ultr.experiments.stored_tables import StoredTables
from ultr.files import new_folder, write_json
from ultr.pages import Page, Section

FORMAT = "ultr findings 1"


def write_findings(found: Section, folder: Path, command: str, provenance: dict[str, Any]) -> None:
    """Write everything, in place of what an earlier run of the command left there."""
    with new_folder(folder, overwrite=True) as draft:
        StoredTables.now(found.title, command, found.tables, found.numbers).write(draft / "tables.json")
        (draft / "tables.md").write_text(as_markdown(found), encoding="utf-8")
        tables = (replace(table, title=f"{found.title}: {table.title}") for table in found.tables)
        (draft / "tables.tex").write_text("\n".join(table.as_latex() for table in tables), encoding="utf-8")
        write_json(draft / "results.json", found.numbers)
        write_json(draft / "manifest.json", {"format": FORMAT, "title": found.title, "command": command, **provenance})
        Page(found.title, "", [found]).write(draft / "page.html")
        for caption, drawing in found.drawings().items():
            drawing.save(draft, caption)


def as_markdown(found: Section) -> str:
    """Tables and words as Markdown."""
    parts = [f"# {found.title}", *(f"**{table.title}**\n\n{table.as_markdown()}" for table in found.tables)]
    return "\n\n".join([*parts, found.answer]).replace("\n\n\n", "\n\n") + "\n"

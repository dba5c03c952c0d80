from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SHOWN = """
import ast, sys

names = {"__name__": "__main__"}
for number, source in enumerate(SOURCES):
    tree = ast.parse(source, f"cell {number}")
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, f"cell {number}", "exec"), names)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
        show = getattr(value, "_repr_html_", None)
        print((show or value.__repr__)())
"""
"""The cells of a notebook one after the other, with what a notebook shows of each."""


def cells(notebook: Path) -> list[dict[str, Any]]:
    content = json.loads(notebook.read_text())
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    found: list[dict[str, Any]] = content["cells"]
    return found


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_run_in_a_process_of_their_own(notebook: Path, tmp_path: Path) -> None:
    sources = ["".join(cell["source"]) for cell in cells(notebook) if cell["cell_type"] == "code"]
    script = tmp_path / "cells.py"
    script.write_text(f"SOURCES = {sources!r}\n{SHOWN}")
    ended = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "<table>" in ended.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cells.py"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_outputs_are_kept_and_every_cell_has_a_name(notebook: Path) -> None:
    found = cells(notebook)
    assert len({cell["id"] for cell in found}) == len(found)
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in found)


def test_there_are_two_notebooks() -> None:
    assert len(NOTEBOOKS) == 2

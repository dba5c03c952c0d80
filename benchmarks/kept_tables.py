"""The tables that a benchmark prints, kept for the pages of the documentation.

    python -m benchmarks.kept_tables docs/results/head-queries.json head_queries --seeds 5

The first word is the file, the second the module, and the rest are its options. What it prints is shown as always; its
tables go into the file, each under the line above it, with every measurement, the machine, the command, the date and
the versions. `ultr reproduce docs` writes them into the pages. `python -m benchmarks` keeps those of what it runs in
`build/tables`.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from benchmarks.machine import Machine
from benchmarks.measurement import Measurement, read
from ultr.experiments.stored_tables import StoredTables
from ultr.pages import Table


def tables(printed: str) -> Iterator[Table]:
    """The Markdown tables in a text, each with the line above it as its title.

    >>> [table] = tables("two threads\\n\\n| step | ms |\\n|---|---|\\n| DLA | 12 |\\n")
    >>> table.title, table.rows
    ('two threads', [{'step': 'DLA', 'ms': '12'}])
    """
    title, lines = "", list[str]()
    for line in [*printed.splitlines(), ""]:
        if line.startswith("|"):
            lines.append(line)
            continue
        if lines:
            yield _table(title, lines)
            title, lines = "", []
        title = line.strip("# :") or title


def keep(file: Path, module: str, options: Sequence[str]) -> tuple[int, list[Measurement]]:
    """Run a benchmark and keep its tables if it ends well; its exit code and its measurements."""
    machine = Machine.here()
    with tempfile.TemporaryDirectory() as scratch:
        numbers = Path(scratch) / "measurements.json"
        command = ["-m", f"benchmarks.{module}", *options]
        code, printed = _shown([sys.executable, *command, "--json", str(numbers)])
        found = read(numbers) if numbers.is_file() else []
    name = module.replace("_", " ")
    made = [replace(each, title=each.title or name) for each in tables(printed)] or [_of_measurements(found)]
    if code == 0 and made[0].rows:
        told = shlex.join(["python", *command[:2], *map(_without_folder, options)])
        content = {"machine": asdict(machine), "measurements": [asdict(each) for each in found]}
        file.parent.mkdir(parents=True, exist_ok=True)
        StoredTables.now(name, told, made, content).write(file)
    return code, found


def _shown(command: Sequence[str]) -> tuple[int, str]:
    """Run a command whose output is shown line by line; its exit code and what it printed."""
    lines = []
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return process.returncode, "".join(lines)


def _table(title: str, lines: Sequence[str]) -> Table:
    names, _, *rows = ([cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines)
    columns = [
        f"{name} ({n})" if (n := names[: place + 1].count(name)) > 1 else name for place, name in enumerate(names)
    ]
    return Table(title, [dict(zip(columns, row, strict=True)) for row in rows])


def _of_measurements(found: Sequence[Measurement]) -> Table:
    return Table("measurements", [{"what": each.name, "value": f"{each.shown} {each.unit}"} for each in found])


def _without_folder(option: str) -> str:
    """An option with FOLDER in the place of a folder of this machine, as in `mq2007=FOLDER`."""
    name, equals, path = option.rpartition("=")
    return f"{name}{equals}FOLDER" if Path(path).is_dir() else option


if __name__ == "__main__":
    sys.exit(keep(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])[0])

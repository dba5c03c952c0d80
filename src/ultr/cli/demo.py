"""`ultr demo`: the whole way on generated data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ultr.cli import options, output


def demo(
    out: Annotated[Path, typer.Option(help="Folder for log, models, table, plot and report.")] = Path("demo"),
    seed: options.Seed = 0,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Simulate biased clicks on generated data, debias them, and compare with raw clicks and with labels.

    Takes about a minute on two cores. Example: `ultr demo --out demo`
    """
    from ultr.experiments.demo import REPORT, run

    output.hush(quiet)
    result = run(out, seed=seed, overwrite=overwrite, say=output.tell, progress=not quiet)
    if json:
        output.print_json(result.as_json())
        return
    output.print_table(
        result.rows(separator="\n"), title="nDCG on held-out judged queries, 95 % intervals over queries"
    )
    output.echo(f"gap closed: 0 % is training on raw clicks, 100 % is training on labels\n{out}: models, results, plot")
    output.echo(f"{out / REPORT}: what was trained, how good it is and what it learned, as a page")

"""`ultr doctor`: what must be known about a click log before training on it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from ultr import checks
from ultr.cli import options, output
from ultr.errors import DataError, OptionError

if TYPE_CHECKING:
    from ultr.arrays import Doubles
    from ultr.data.click_log import ClickLog
    from ultr.diagnosis import Diagnosis
    from ultr.preparation.summary import Summary

TONES = {"good": "green", "careful": "yellow", "bad": "red", "unknown": "dim"}


def doctor(
    log: Annotated[
        str,
        typer.Argument(
            help="Folder of a click log; or a raw log as `ultr prepare` reads it, if its columns are plain."
        ),
    ],
    columns: Annotated[
        str | None,
        typer.Option(
            help="For a raw log: a TOML file with the names of columns, or expedia, sogou, trec2014, trivago, ubi, "
            "yandex."
        ),
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="Model folder, to group documents by its scores where the log has no labels.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Also write a page with all tables and plots to this file.")] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            help="Also write the smallest exploration that would identify the bias to this JSON file, for "
            "`ultr serve --explore`."
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Print the tables behind the answers too.")] = False,
    samples: Annotated[int, typer.Option(help="Resamples for the intervals of the curves.")] = 200,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Examine a click log: how much there is, how biased it is, and whether it can be debiased.

    Example: `ultr doctor log --html doctor.html`
    """
    from ultr.diagnosis import diagnose
    from ultr.diagnosis.plan import in_words
    from ultr.preparation.sources import name_of

    output.hush(quiet)
    checks.integer("samples", samples, at_least=1)
    with output.status(f"examining {name_of(log)}"), tempfile.TemporaryDirectory() as work:
        clicks, summary = _read(log, columns, Path(work))
        found = diagnose(clicks, summary=summary, scores=_scores(model, clicks), samples=samples, source=log, seed=seed)
        if html is not None:
            found.page().write(html)
    explored = None if plan is None else found.plan
    if plan is not None and explored is not None:
        explored.write(plan)
    if json:
        output.print_json(found.as_json())
        return
    _print(found, full=full)
    if explored is not None:
        output.echo(f"{in_words(explored)} The plan: {plan}\n")
    output.echo(
        f"All tables and plots: {html}" if html else "Tables and plots: --html doctor.html; tables here: --full"
    )


def _read(log: str, columns: str | None, work: Path) -> tuple[ClickLog, Summary | None]:
    """A saved click log with its summary, if it was prepared, or a raw one prepared on the way."""
    from ultr.data.click_log import ClickLog
    from ultr.preparation.log import prepare
    from ultr.preparation.sources import name_of
    from ultr.preparation.summary import Summary

    # The name of a query is another than its text, which may be too long for a path.
    if name_of(log) == log and (Path(log) / "manifest.json").is_file():
        if columns is not None:
            raise OptionError(f"{log} is prepared already; leave --columns out")
        clicks = ClickLog.load(log)
        # All of it is looked at anyway, so that it is worth knowing first whether it is the log that was written.
        clicks.fingerprint()
        return clicks, Summary.read(log)
    try:
        prepared = prepare(log, work / "log", columns=columns)
    except DataError as error:
        # The options that it may name are not those of this command.
        raise DataError(
            f"{error}; `ultr prepare` has these options, and writes a folder for `ultr doctor`"
            if " --" in str(error)
            else str(error)
        ) from error
    return prepared.log, prepared.summary


def _scores(model: Path | None, log: ClickLog) -> Doubles | None:
    if model is None:
        return None
    from ultr.methods import load

    ranker = load(model)
    known = log.with_features(ranker.feature_names).with_categories(ranker.categories)
    return ranker.score(known.features).astype(np.float64)


def _print(found: Diagnosis, *, full: bool) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    console = Console(quiet=output.is_quiet())
    console.print(output.shown(f"\n{found.headline}\n", "bold"))
    table = Table(box=SIMPLE, show_header=False, padding=(0, 1, 1, 0), pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for finding in found.findings:
        answer = output.shown(f"{finding.title}\n", "bold").append(output.shown(finding.answer, "not bold"))
        table.add_row(output.shown(finding.badge, TONES[finding.badge]), answer)
    console.print(table)
    if full:
        for finding in found.findings:
            for each in finding.tables:
                output.print_table(each.rows, title=each.title or finding.name)
    console.print(output.shown("What to do", "bold"))
    for number, step in enumerate(found.steps, start=1):
        console.print(output.shown(f"{number}. {step}"))
    output.echo()

"""`ultr update`: a day of clicks, a new ranker, and a gate between it and what is served."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultr.cli import options, output
from ultr.data.column_names import listed
from ultr.errors import OptionError

if TYPE_CHECKING:
    from ultr.updating import LedgerEntry

NEEDED = ("log", "source", "served")


def update(
    run: Annotated[Path, typer.Argument(help="Folder of the run: its settings, logs, models and ledger.")],
    log_day: Annotated[
        str | None, typer.Option(metavar="DATE", help="Take in this day, such as 2026-11-17, and decide.")
    ] = None,
    rollback: Annotated[bool, typer.Option("--rollback", help="Serve the model that was served before.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Do the work and say what would be decided; nothing is exchanged.")
    ] = False,
    init: Annotated[bool, typer.Option("--init", help="Begin a run; the options below are for this.")] = False,
    log: Annotated[Path | None, typer.Option(help="Click log to begin with, prepared with --periods day.")] = None,
    source: Annotated[
        str | None, typer.Option(help="Raw log of a day, as `ultr prepare` reads it, with {day} for the date.")
    ] = None,
    served: Annotated[Path | None, typer.Option(help="File that `ultr serve` watches.")] = None,
    model: Annotated[
        Path | None, typer.Option(help="Model to begin with, which the served file was exported from; else trained.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="Method to train by; by default auto.")] = None,
    days: Annotated[int | None, typer.Option(help="Days that the log keeps; by default 28.")] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Loss of clicks that the lower bound may show; by default 0.01.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same result; by default 0.")] = None,
    settings: options.Set = None,
    prepare: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Option of `ultr prepare` that every day needs, such as columns=ubi."),
    ] = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Take in a day of clicks, train, compare with what is served, and serve the new ranker if the gate lets it.

    Exit code 0 means that the day is decided, whatever was decided; 2 that it is not, and why.

    Example: `ultr update run --log-day 2026-11-17`
    """
    output.hush(quiet)
    given = {
        "log": log,
        "source": source,
        "served": served,
        "model": model,
        "method": method,
        "days": days,
        "tolerance": tolerance,
        "seed": seed,
        "set": settings,
        "prepare": prepare,
    }
    asked = {name: value for name, value in given.items() if value is not None}
    if [init, log_day is not None, rollback].count(True) != 1:
        raise OptionError("give one of --log-day DATE, --rollback and --init")
    if not init and asked:
        raise OptionError(f"--{next(iter(asked))} is for --init; afterwards it stands in {run / 'settings.toml'}")
    if init and dry_run:
        raise OptionError("--dry-run is for --log-day and --rollback")
    from ultr.updating import RunFolder, roll_back
    from ultr.updating import update as take_in

    progress = not (json or quiet)
    if init:
        entry = _begin(run, asked, progress=progress)
    elif rollback:
        entry = roll_back(RunFolder(run), dry_run=dry_run)
    else:
        assert log_day is not None
        entry = take_in(RunFolder(run), log_day, dry_run=dry_run, progress=progress)
    if json:
        output.print_json(entry.model_dump() | {"dry_run": dry_run})
        return
    _print(entry, run, dry_run=dry_run)


def _begin(run: Path, asked: dict[str, Any], *, progress: bool) -> LedgerEntry:
    from ultr.methods import flat_options
    from ultr.methods import method as method_of
    from ultr.updating import UpdateSettings, begin
    from ultr.updating.settings import seen_from_run

    if missing := [name for name in NEEDED if name not in asked]:
        raise OptionError(f"--init needs --{' and --'.join(missing)}")
    model, chosen = asked.pop("model", None), asked.pop("set", None)
    kind = method_of(asked.get("method", "auto"))
    relevance = next((text.partition("=")[2] for text in chosen or () if text.startswith("relevance=")), None)
    types = flat_options.types(kind, relevance)
    content = asked | {name: seen_from_run(run, str(asked[name])) for name in NEEDED}
    content["options"] = options.parse_settings(chosen, types, of=f"method {kind.name}")
    content["prepare"] = dict(options.pair(text, "--prepare") for text in asked.get("prepare", ()))
    for name in ("features_from", "clicks_from"):
        if name in content["prepare"]:
            content["prepare"][name] = seen_from_run(run, content["prepare"][name])
    found = UpdateSettings.of(content, where="--init")
    return begin(run, found, model=model, progress=progress)


def _print(entry: LedgerEntry, run: Path, *, dry_run: bool) -> None:
    data, found, training = entry.data, entry.judgement, entry.training
    if data:
        counts = data["log"]
        output.echo(
            f"log: {data['days'][0]} to {data['days'][1]}, {counts['queries']:,} queries, "
            f"{counts['impressions']:,} pages, {counts['clicks']:,} clicks"
        )
        if missing := data["missing_days"]:
            output.echo(
                f"days between that are not in it: {listed(missing)}; days are added in order, so they stay out"
            )
    if entry.doctor:
        output.echo("doctor: " + ", ".join(f"{name} {verdict}" for name, verdict in entry.doctor.items()))
    if training:
        start = f"anew ({training['anew']})" if training["anew"] else f"from the weights {training['init_model'][:12]}"
        output.echo(f"training: {training['method']}, {start}, {training['seconds']:.0f} s")
    if found:
        shift = found["shift"]
        output.echo(f"compared on {found['compared_on']}: {found['why']}")
        for remark in found["remarks"]:
            output.echo(remark)
        output.echo(
            f"exposure against what is served: median factor {shift['median']:.2f}, up to {shift['growth']:.1f} times "
            f"as much, down to 1 / {shift['fall']:.1f}"
        )
    would = "would be " if dry_run else ""
    output.echo(f"{would}{entry.decision}: {entry.reason}")
    output.echo(f"{would}served: {entry.model}")
    if not dry_run:
        output.echo(f"{run / 'ledger' / f'{entry.number:06d}.json'} has every number")

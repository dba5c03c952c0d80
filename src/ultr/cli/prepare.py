"""`ultr prepare`: a collapsed click log from a raw one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultr.cli import options, output
from ultr.errors import OptionError
from ultr.field_docs import field_docs
from ultr.preparation.options import Options
from ultr.preparation.robots import RobotRules

if TYPE_CHECKING:
    from ultr.preparation.summary import Summary

_FLAGS = {"factors": "--factor", "signals": "--signal", "event_columns": "--event-column"}
"""Options that are given one at a time, under a name of one."""
_JOINED = ("impression", "features")
"""Options that are given as a,b,c, once or several times."""
_MAPPINGS = ("signals", "event_columns")
_KINDS: dict[str, Any] = {"bool": bool, "float": float, "int": int, "int | None": int | None, "str": str}
"""Types of options that are no text or may not be left out."""
_ROBOTS = tuple(each.name for each in fields(RobotRules))


def prepare(
    log: Annotated[
        str,
        typer.Argument(
            help="Parquet, CSV, TSV or JSON lines: a file, a folder or a quoted pattern; sql:SELECT ... over files; "
            "duckdb:FILE?table=NAME; a table of --engine. One row for each shown document, or for each result page."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Folder for the click log; by default that of --append.")] = None,
    append: Annotated[
        Path | None, typer.Option(help="Add the days of LOG to this click log, which was prepared with --periods day.")
    ] = None,
    last: Annotated[int | None, typer.Option(help="Keep so many days, those before are dropped.")] = None,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
    **given: Any,
) -> None:
    """Collapse a raw click log, and account for every row: kept, or put aside with a reason.

    Example: `ultr prepare log.parquet --query qid --factor device --features 'bm25_*' --out log`
    """
    from ultr.preparation.log import prepare as prepare_log
    from ultr.preparation.sources import name_of

    output.hush(quiet)
    asked = _asked(given)
    told = None if json else lambda line: output.echo(f"{line}\n")
    with output.status(f"reading {name_of(log)}"):
        prepared = prepare_log(log, out, overwrite=overwrite, append=append, last=last, told=told, **asked)
    folder = out or append
    assert folder is not None, "prepare has refused it"
    if json:
        output.print_json({"folder": str(folder), **prepared.summary.as_json()})
        return
    _print_summary(prepared.summary, folder)
    output.print_log(prepared.log, folder, as_json=False)


def _parameters() -> Iterator[Parameter]:
    """The options of a preparation as options of the command, with their descriptions."""
    described = field_docs(Options) | field_docs(RobotRules)
    for each in [*fields(Options), *fields(RobotRules)]:
        if each.name in ("guessed", "robots"):
            continue
        default: Any = None if each.default in (MISSING, ()) else each.default
        kind: Any = _KINDS.get(str(each.type), str | None)
        flag = _FLAGS.get(each.name, f"--{each.name.replace('_', '-')}")
        if each.name in (*_FLAGS, *_JOINED, "unjudged"):
            kind, default = list[str] | None, None
        note = Annotated[kind, typer.Option(flag, help=described[each.name])]
        yield Parameter(each.name, Parameter.KEYWORD_ONLY, default=default, annotation=note)


def _signature() -> Signature:
    own = [
        parameter.replace(kind=Parameter.KEYWORD_ONLY)
        for parameter in Signature.from_callable(prepare, eval_str=True).parameters.values()
        if parameter.kind is not Parameter.VAR_KEYWORD
    ]
    first = [each for each in own if each.name not in ("overwrite", "quiet", "json")]
    return Signature([*first, *_parameters(), *(each for each in own if each not in first)])


prepare.__signature__ = _signature()  # type: ignore[attr-defined]


def _asked(given: dict[str, Any]) -> dict[str, Any]:
    """The options as `prepare` takes them; what was not given is left to it."""
    rules = {name: given.pop(name) for name in _ROBOTS}
    defaults = {each.name: each.default for each in fields(Options)}
    asked = {name: value for name, value in given.items() if value is not None and str(value) != str(defaults[name])}
    for name in _JOINED:
        if name in asked:
            asked[name] = [each.strip() for text in asked[name] for each in text.split(",") if each.strip()]
    for name in _MAPPINGS:
        if name in asked:
            pairs = [options.pair(text, _FLAGS[name]) for text in asked[name]]
            asked[name] = {key.strip(): value.strip() for key, value in pairs}
            if len(asked[name]) < len(pairs):
                raise OptionError(f"{_FLAGS[name]} gives a name twice; give each of {', '.join(asked[name])} once")
    if asked.get("periods", "day") != "day":
        asked["periods"] = _whole(asked["periods"])
    if (robots := RobotRules(**rules)) != RobotRules():
        asked["robots"] = robots
    return asked


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise OptionError(f"periods must be an integer or day, got {text!r}") from error


def _print_summary(summary: Summary, out: Path) -> None:
    output.print_table(
        [{"": name, **{key: f"{value:,}" for key, value in row.items()}} for name, row in summary.tallies().items()]
    )
    if summary.reasons:
        table = [
            {
                "put aside": each.reason,
                "goes": "the page" if each.whole_page else "the row",
                "rows": f"{each.rows:,}",
                "clicks": f"{each.clicks:,}",
                "on pages": f"{each.pages:,}",
            }
            for each in summary.reasons
        ]
        output.print_table(table, title=f"the rows are in {out / 'rejected.parquet'}")
    if summary.factors:
        table = [
            {
                "factor": each.name,
                "levels": f"{each.levels:,}" + (" bins" if each.edges else ""),
                "values merged into other": f"{each.rare_values:,}",
                "impressions of those": f"{each.rare_impressions:,}",
            }
            for each in summary.factors
        ]
        output.print_table(table)
    for line in summary.lines():
        output.echo(line)
    output.echo("")

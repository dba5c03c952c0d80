"""`ultr prepare`: a collapsed click log from a raw one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultr.cli import options, output

if TYPE_CHECKING:
    from ultr.preparation import Summary


def prepare(
    log: Annotated[
        str,
        typer.Argument(
            help="Parquet, CSV, TSV or JSON lines: a file, a folder or a quoted pattern; or duckdb:FILE?table=NAME. "
            "One row for each shown document, or for each result page with lists."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the click log.")],
    query: Annotated[str | None, typer.Option(help="Column of the query.")] = None,
    document: Annotated[str | None, typer.Option(help="Column of the document, or of the list of documents.")] = None,
    position: Annotated[
        str | None, typer.Option(help="Column of the position; a list of documents needs none.")
    ] = None,
    click: Annotated[str | None, typer.Option(help="Column of the click, 0 or 1; of a page also as 0100.")] = None,
    impression: Annotated[
        str | None, typer.Option(help="Column that tells result pages apart; several as a,b.")
    ] = None,
    time: Annotated[str | None, typer.Option(help="Column of the time of the page, for splits by time.")] = None,
    periods: Annotated[int, typer.Option(help="Into how many parts the time is cut, with as many pages each.")] = 10,
    label: Annotated[
        str | None, typer.Option(help="Column of a judge's grade of the document, to examine the log by.")
    ] = None,
    unjudged: Annotated[
        list[str] | None, typer.Option(help="A label that says that there is none, such as -1; repeatable.")
    ] = None,
    factor: Annotated[list[str] | None, typer.Option(help="Column that is a cause of bias, repeatable.")] = None,
    features: Annotated[str | None, typer.Option(help="Columns of features as a,b,c or by pattern as bm25_*.")] = None,
    features_from: Annotated[
        str | None, typer.Option(help="A second table with the features, joined by query and document.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="A TOML file with the names of columns, or yandex, sogou, trec2014, ubi.")
    ] = None,
    positions_from: Annotated[int | None, typer.Option(help="Number of the first position, by default 1.")] = None,
    engine: Annotated[
        str, typer.Option(help="duckdb, spark, or the connection string of another Ibis back end (untested).")
    ] = "duckdb",
    memory: Annotated[str, typer.Option(help="What the engine may use before it spills to disk.")] = "4GB",
    rare: Annotated[
        int, typer.Option(help="A value of a factor with fewer impressions becomes the level `other`.")
    ] = 100,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Also count which documents were clicked together, which pair-debias needs.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop where a row would be put aside.")] = False,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Collapse a raw click log, and account for every row: kept, or put aside with a reason.

    Example: `ultr prepare log.parquet --query qid --factor device --features 'bm25_*' --out log`
    """
    from ultr.preparation import prepare as prepare_log

    with output.status(f"reading {log}"):
        prepared = prepare_log(
            log,
            out,
            query=query,
            document=document,
            position=position,
            click=click,
            impression=_names(impression) or None,
            time=time,
            periods=periods,
            label=label,
            unjudged=unjudged or (),
            factors=factor or (),
            features=_names(features),
            features_from=features_from,
            columns=columns,
            positions_from=positions_from,
            engine=engine,
            memory=memory,
            rare=rare,
            pairs=pairs,
            strict=strict,
            overwrite=overwrite,
        )
    if json:
        output.print_json({"folder": str(out), **prepared.summary.as_json()})
        return
    _print_summary(prepared.summary, out)
    output.print_log(prepared.log, out, as_json=False)


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _print_summary(summary: Summary, out: Path) -> None:
    columns = summary.columns
    roles = {"impression": ", ".join(columns.impression)}
    roles |= {role: getattr(columns, role) for role in ("query", "document", "position", "click", "time", "label")}
    said = [f"{role} = {name}{' (guessed)' if role in columns.guessed else ''}" for role, name in roles.items() if name]
    shape = "one row a result page" if summary.one_row_a_page else "one row a shown document"
    typer.echo(f"{summary.source}: {shape}; columns: {'; '.join(said)}\n")
    tallies = {"rows": summary.rows, "pages": summary.pages, "clicks": summary.clicks}
    rows = [
        {"": name, **{key: f"{value:,}" for key, value in tally.as_json().items()}} for name, tally in tallies.items()
    ]
    output.print_table(rows)
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
    if summary.elsewhere:
        typer.echo(
            f"{sum(summary.elsewhere.values()):,} clicks are on documents that were not shown, and are left out\n"
        )
    if summary.factors:
        table = [
            {
                "factor": each.name,
                "levels": f"{each.levels:,}",
                "values merged into other": f"{each.rare_values:,}",
                "impressions of those": f"{each.rare_impressions:,}",
            }
            for each in summary.factors
        ]
        output.print_table(table)
    for line in _facts(summary):
        typer.echo(line)
    typer.echo("")


def _facts(summary: Summary) -> Iterator[str]:
    from ultr.data.missing_values import in_words

    yield from summary.notes
    yield (
        f"{summary.documents:,} documents with {summary.features:,} features; "
        f"{summary.collapse_ratio:.2f} impressions a list"
    )
    if summary.missing:
        yield in_words(summary.missing, summary.features)
    yield f"{summary.empty_pages:,} of {summary.pages.kept:,} pages have no click"
    if not summary.features:
        yield "without features it can be examined, but not trained on; give --features or --features-from to train"
    if summary.periods:
        first, last = summary.periods[0], summary.periods[-1]
        yield f"{len(summary.periods):,} periods of time; the first begins at {first}, the last at {last}"
    if summary.columns.label is not None:
        levels = f": {', '.join(summary.grades)}" if summary.grades else ""
        yield f"{summary.judged:,} of {summary.documents:,} documents have a label{levels}"
    if summary.conflicting_labels:
        yield f"{summary.conflicting_labels:,} documents have labels that differ, and count as not judged"

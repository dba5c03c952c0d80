"""`ultr reproduce`: an experiment of the paper, or one of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ultr.cli import options, output
from ultr.errors import OptionError


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            help="An experiment, or a TOML file with one of your own; without it, all are listed. `docs` writes the "
            "tables of the documentation in this folder from what is stored in docs/results."
        ),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="The data set as `NAME=FOLDER` (yahoo, istella-s, mslr, mq2007, ...), or `letor-like=QUERIES`; "
            "by default the first one that the experiment names."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A shorter form, about five minutes on two cores.")] = False,
    as_published: Annotated[
        bool,
        typer.Option(
            "--as-published",
            help="The paper's own protocol: AdaGrad on sessions that are never the same twice, 15,000 steps, 8 runs.",
        ),
    ] = False,
    seeds: Annotated[str | None, typer.Option(help="Seeds in place of the experiment's, as `0,1,2`.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Any key of the experiment, as in `simulation.impressions=100000`."
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Runs side by side, one thread each; by default one for each core.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for finished runs and findings.")] = Path("reproductions"),
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Reproduce an experiment of the paper: tables and figures with every number behind them.

    Finished runs are kept. A reproduction that was stopped goes on where it was, and a finished one is free.

    Example: `ultr reproduce real-clicks --quick`
    """
    from ultr.experiments.reproduce import reproduce as run
    from ultr.experiments.spec import read_spec, shipped

    output.hush(quiet)
    if name is None:
        rows = [{"experiment": each, "title": read_spec(each).title} for each in shipped()]
        if json:
            output.print_json(rows)
        else:
            output.print_table(rows, title="ultr reproduce NAME")
        return
    if name == "docs":
        if data or quick or as_published or seeds or settings or workers or out != Path("reproductions"):
            raise OptionError("`ultr reproduce docs` runs no experiment and takes none of its options; leave them out")
        _write_docs(json=json)
        return
    try:
        found, folder = run(
            name,
            out=out,
            data=data,
            quick=quick,
            as_published=as_published,
            seeds=None if seeds is None else _numbers(seeds),
            changes=settings or (),
            workers=workers,
            say=output.tell,
        )
    except KeyboardInterrupt:
        output.echo("ultr: stopped; start the same command again to go on where it was", err=True)
        raise typer.Exit(130) from None
    if json:
        output.print_json({"folder": str(folder), "findings": found.numbers})
        return
    for table in found.tables:
        output.print_table(table.rows, title=f"{found.title} · {table.title}")
    for note in found.answer.split("\n\n"):
        output.echo(note)
    output.echo(f"{folder}: all on one page; tables as Markdown and LaTeX, numbers as JSON, figures as SVG and PNG")


def _write_docs(*, json: bool) -> None:
    """Write the tables of the documentation, and say which of them are not stored or not of this code."""
    from ultr.experiments.documentation import write_pages

    pages = write_pages(Path("docs"))
    if json:
        output.print_json(
            [
                {"page": str(each.page), "changed": each.changed, "missing": each.missing, "older": each.older}
                for each in pages
            ]
        )
        return
    for page in pages:
        output.echo(f"{page.page}: {'written' if page.changed else 'as it was'}")
        if page.missing:
            output.echo(f"  left as they are, since nothing is stored of them: {', '.join(page.missing)}")
        if page.older:
            output.echo(f"  stored by other code than this: {', '.join(page.older)}")


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise OptionError(f"--seeds takes numbers with commas between them, as 0,1,2, got {text!r}")
    return [int(part) for part in parts]

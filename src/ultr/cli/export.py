"""`ultr export`: a ranker as a file that other programs run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultr import checks
from ultr.cli import options, output

if TYPE_CHECKING:
    from ultr.exporting import Export

TARGETS = ("onnx",)


def export(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    to: Annotated[str, typer.Option(help="The kind of file: onnx.")] = "onnx",
    out: Annotated[Path | None, typer.Option(help="The file; by default MODEL.onnx beside the folder.")] = None,
    form: Annotated[
        str, typer.Option(help="What the graph takes: `lists` (padded, with a mask) or `flat` (with offsets).")
    ] = "lists",
    pointwise: Annotated[
        bool,
        typer.Option(
            "--pointwise",
            help="For engines that score one document at a time: one base vector for all queries; tells its cost.",
        ),
    ] = False,
    data: Annotated[
        str | None,
        typer.Option(
            help="Judged lists to check the file on, NAME=FOLDER or an SVMlight, CSV or Parquet file; by default the "
            "training lists that the model kept."
        ),
    ] = None,
    part: options.Part = "test",
    fold: options.Fold = 1,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Write a ranker as one ONNX graph, with scaling, networks and projection inside, and check it against the model.

    Example: `ultr export model --to onnx`
    """
    from ultr.exporting import export as export_ranker
    from ultr.methods import load

    checks.one_of("--to", to, TARGETS)
    ranker = load(model)
    lists = None if data is None else options.read_part(data, part, fold=fold, names=ranker.feature_names)
    folder = model if model.name.strip(".") else model.resolve()
    file = folder.with_name(f"{folder.name}.onnx") if out is None else out
    written = export_ranker(ranker, file, form=form, pointwise=pointwise, lists=lists, overwrite=overwrite)
    where = "training lists" if data is None else options.name_of_part(data, part)
    if json:
        output.print_json({"model": str(model), "file": str(file), "checked_on": where} | written.as_json())
    else:
        _print(written, file, where, by_clicks=data is None and ranker.method != "label")


def _print(written: Export, file: Path, where: str, *, by_clicks: bool) -> None:
    from ultr.scoring import FORMS

    card, parity, cost = written.card, written.parity, written.cost
    typer.echo(f"{file}: {card.method}, {len(card.feature_names)} features, {written.size / 1000:,.0f} kB")
    typer.echo(FORMS[card.form])
    model = "the model with what lists add held fixed" if card.pointwise else "the model"
    typer.echo(
        f"the same as {model} on {parity.documents:,} documents of {parity.queries:,} lists ({where}): largest "
        f"difference {parity.largest_difference:.1e} where scores spread by {parity.spread:.2g}, "
        f"Kendall's tau {parity.kendall_tau:.4f}"
    )
    typer.echo("a missing feature (NaN) counts as its typical value in the training data")
    if not card.pointwise:
        return
    if cost is None:
        typer.echo("what it costs to score documents one by one is not known: no candidate is relevant; give --data")
        return
    labels = "by clicks of the shown order, give --data for labels" if by_clicks else "by labels"
    change = cost.change
    typer.echo(
        f"documents one by one: nDCG@10 {cost.pointwise:.4f}, in their lists {cost.model:.4f} "
        f"({change.difference:+.4f} [{change.low:+.4f}, {change.high:+.4f}], {cost.queries:,} queries, {labels})"
    )

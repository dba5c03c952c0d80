"""`ultr export`: a ranker as a file that other programs run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultr import checks
from ultr.cli import options, output
from ultr.errors import OptionError

if TYPE_CHECKING:
    from ultr.exporting import Export
    from ultr.methods.ranker import Ranker

ONNX = "onnx"


def export(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    to: Annotated[
        str,
        typer.Option(
            help="The kind of file: onnx; and of trees lightgbm, xgboost, elasticsearch-ltr, opensearch-ltr, elastic, "
            "solr, vespa, ranklib."
        ),
    ] = ONNX,
    out: Annotated[
        Path | None, typer.Option(help="The file; by default MODEL.onnx or MODEL.TARGET.json beside the folder.")
    ] = None,
    feature_map: Annotated[
        Path | None, typer.Option(help="A JSON file with the engine's own names: {feature of the model: name}.")
    ] = None,
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
    """Write a ranker as one file for other programs, and check it against the model.

    An ONNX graph has scaling, networks and projection inside; a ranker by trees also goes to search engines.

    Example: `ultr export model --to onnx`
    """
    from ultr.exporting import export as export_ranker
    from ultr.exporting.engines.targets import TARGETS
    from ultr.methods import load

    checks.one_of("--to", to, [ONNX, *TARGETS])
    ranker = load(model)
    if to != ONNX:
        if pointwise or data is not None or form != "lists":
            raise OptionError(f"--form, --pointwise and --data are for onnx; leave them out with --to {to}")
        _export_forest(ranker, model, to, out, feature_map, overwrite=overwrite, json=json)
        return
    if feature_map is not None:
        raise OptionError("--feature-map is for engines; an ONNX graph takes features by their place")
    lists = None if data is None else options.read_part(data, part, fold=fold, names=ranker.feature_names)
    file = _beside(model, "onnx") if out is None else out
    written = export_ranker(ranker, file, form=form, pointwise=pointwise, lists=lists, overwrite=overwrite)
    where = "training lists" if data is None else options.name_of_part(data, part)
    if json:
        output.print_json({"model": str(model), "file": str(file), "checked_on": where} | written.as_json())
    else:
        trees = ranker.model.by_name["relevance"].takes_missing
        _print(written, file, where, by_clicks=data is None and ranker.method != "label", trees=trees)


def _beside(model: Path, ending: str) -> Path:
    folder = model if model.name.strip(".") else model.resolve()
    return folder.with_name(f"{folder.name}.{ending}")


def _export_forest(
    ranker: Ranker,
    model: Path,
    to: str,
    out: Path | None,
    feature_map: Path | None,
    *,
    overwrite: bool,
    json: bool,
) -> None:
    from dataclasses import asdict

    from ultr.exporting.engines.targets import TARGETS
    from ultr.exporting.forest_file import export_forest
    from ultr.files import read_json

    names = {} if feature_map is None else read_json(feature_map)
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise OptionError(f'{feature_map} must be a JSON object of names, such as {{"bm25": "title_bm25"}}')
    file = _beside(model, f"{to}.{TARGETS[to].ending}") if out is None else out
    written = export_forest(ranker, file, to=to, feature_map=names, overwrite=overwrite)
    if json:
        output.print_json({"model": str(model), "file": str(file)} | asdict(written))
        return
    typer.echo(f"{file}: {ranker.method}, {written.trees} trees for {to}, {written.size / 1000:,.0f} kB")
    typer.echo(
        f"the same as the model on {written.documents:,} documents, with values missing and on thresholds among them: "
        f"largest difference {written.largest_difference:.1e}"
    )
    if written.shift:
        typer.echo(f"{written.shift:.4g} is added to every score, so that none is below 0; the order is the same")
    if not written.knows_missing:
        typer.echo("the format knows no missing values: fill every feature, in training as well as in scoring")


def _print(written: Export, file: Path, where: str, *, by_clicks: bool, trees: bool) -> None:
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
    how = "goes where the trees learned to send it" if trees else "counts as its typical value in the training data"
    typer.echo(f"a missing feature (NaN) {how}")
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

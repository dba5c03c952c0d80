"""`ultr export`: a ranker as a file that other programs run."""

from __future__ import annotations

from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from ultr import checks
from ultr.cli import options, output
from ultr.data.column_names import listed
from ultr.errors import OptionError
from ultr.files import check_new_file, check_new_folder, read_json

if TYPE_CHECKING:
    from ultr.data.judged import JudgedLists
    from ultr.exporting import Distillation, Export, ForestExport
    from ultr.exporting.cost import Cost
    from ultr.methods.ranker import Ranker
    from ultr.relevance.relevance_model import Relevance

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
    distil: Annotated[
        bool,
        typer.Option(
            "--distil",
            help="Teach another ranker by the model's scores and export that: a forest for engines that take only "
            "trees, one network for onnx, such as in the place of several seeds; tells its cost.",
        ),
    ] = False,
    log: Annotated[
        Path | None,
        typer.Option(help="With --distil: the click log to teach on; by default the training lists the model kept."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Judged lists to check the file on, NAME=FOLDER or an SVMlight, CSV or Parquet file; by default the "
            "training lists that the model kept. With --distil, to measure on, and without --log to teach on "
            "(the train part)."
        ),
    ] = None,
    part: options.Part = "test",
    fold: options.Fold = 1,
    keep: Annotated[
        Path | None, typer.Option(help="With --distil: a model folder for the student, to evaluate or serve it.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="With --distil: an option of the trees or of the network, repeatable."
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Write a ranker as one file for other programs, and check it against the model.

    An ONNX graph has scaling, networks and projection inside; a ranker by trees also goes to search engines, and a
    network by --distil.

    Example: `ultr export model --to onnx`
    """
    from ultr.exporting import export as export_ranker
    from ultr.exporting import export_forest
    from ultr.exporting.engines.targets import TARGETS
    from ultr.methods import load
    from ultr.methods.origin import Origin
    from ultr.scoring import LIST_FORMS

    output.hush(quiet)
    checks.one_of("--to", to, [ONNX, *TARGETS])
    if not distil and (log is not None or keep is not None or settings):
        raise OptionError("--log, --keep and --set are for --distil; add it or leave them out")
    if to == ONNX and feature_map is not None:
        raise OptionError("--feature-map is for engines; an ONNX graph takes features by their place")
    if to != ONNX and (pointwise or form != "lists" or (data is not None and not distil)):
        raise OptionError(f"--form, --pointwise and --data are for onnx; leave them out with --to {to}")
    ranker = load(model)
    ending = ONNX if to == ONNX else f"{to}.{TARGETS[to].ending}"
    file = _beside(model, ending) if out is None else out
    names = _feature_map(feature_map)
    checks.one_of("form", form, LIST_FORMS)
    if distil or to != ONNX:
        # What takes long begins where its result can be written.
        check_new_file(file, overwrite=overwrite)
    if keep is not None:
        check_new_folder(keep, overwrite=overwrite)
    taught = _distil(ranker, log, data, part, fold, _student(ranker, to, settings)) if distil else None
    student = ranker if taught is None else taught.distillation.ranker
    content: dict[str, Any] = {"model": str(model), "file": str(file)}
    if to != ONNX:
        forest = export_forest(student, file, to=to, feature_map=names, overwrite=overwrite)
        content |= asdict(forest)
        if not json:
            _print_forest(forest, ranker, taught, file, to)
    else:
        lists = None if data is None else options.read_part(data, part, fold=fold, like=ranker)
        written = export_ranker(student, file, form=form, pointwise=pointwise, lists=lists, overwrite=overwrite)
        where = "training lists" if data is None else options.name_of_part(data, part)
        content |= {"checked_on": where} | written.as_json()
        if not json:
            by_clicks = data is None and ranker.method != "label"
            _print(written, file, where, by_clicks=by_clicks, trees=student.model.takes_missing)
            if taught is not None:
                taught.print("network")
    if json:
        if taught is not None:
            content["distillation"] = taught.distillation.as_json() | {"taught_with": taught.where}
        output.print_json(content)
    if taught is not None and keep is not None:
        origin = Origin(command=options.command_line())
        taught.distillation.ranker.save(keep, overwrite=overwrite, origin=origin)


def _beside(model: Path, ending: str) -> Path:
    folder = model if model.name.strip(".") else model.resolve()
    return folder.with_name(f"{folder.name}.{ending}")


def _feature_map(path: Path | None) -> dict[str, str]:
    names = {} if path is None else read_json(path)
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise OptionError(f'{path} must be a JSON object of names, such as {{"bm25": "title_bm25"}}')
    return names


def _student(ranker: Ranker, to: str, settings: list[str] | None) -> Relevance:
    """Trees for engines, and for ONNX a network as large as those of the ranker, with other options where given."""
    from ultr.methods.distilled import TREES
    from ultr.relevance import MLP
    from ultr.relevance.kinds import relevance_of

    own = relevance_of(ranker.options["relevance"])
    student: Relevance = TREES if to != ONNX else own if isinstance(own, MLP) else MLP()
    of = "trees" if to != ONNX else "a network"
    hints = get_type_hints(type(student))
    types = {each.name: hints[each.name] for each in fields(student)}
    student = replace(student, **options.parse_settings(settings, types, of=of))
    student.check()
    return student


def _distil(
    ranker: Ranker,
    log: Path | None,
    data: str | None,
    part: str,
    fold: int,
    relevance: Relevance,
) -> Taught:
    """What a ranker teaches on a log, on judged lists, or on the training lists that it kept."""
    from ultr.data.click_log import ClickLog
    from ultr.exporting import distil

    source: ClickLog | JudgedLists | None = None
    lists, where, by_clicks = None, "training lists", ranker.method != "label"
    if log is not None:
        source, where = ClickLog.load(log).with_categories(ranker.categories, what=str(log)), str(log)
    elif data is not None:
        source = options.read_part(data, "train", fold=fold, like=ranker)
        where, by_clicks = options.name_of_part(data, "train"), False
    if data is not None and (log is not None or (part != "train" and not Path(data).is_file())):
        lists, by_clicks = options.read_part(data, part, fold=fold, like=ranker), False
    made = distil(ranker, source, lists=lists, relevance=relevance, progress=not output.is_quiet())
    others = "others" if lists is None else options.name_of_part(str(data), part)
    return Taught(made, where, others, by_clicks=by_clicks)


class Taught(NamedTuple):
    """A distillation, and the names of what it was taught and measured on."""

    distillation: Distillation
    where: str
    others: str
    by_clicks: bool

    def print(self, student: str) -> None:
        """Say how near the student comes to the model, and what it costs."""
        made = self.distillation
        mixed = f" and of {made.mixed:,} with features mixed" if made.mixed else ""
        output.echo(
            f"taught by the model's scores of {made.taught_on:,} lists{mixed} ({self.where}); on {made.measured_on:,} "
            f"lists ({self.others}) Kendall's tau {made.kendall_tau:.4f}, the same document at the top of "
            f"{made.same_top:.0%}"
        )
        if made.cost is None:
            output.echo("what it costs is not known: no candidate is relevant; give --data")
        else:
            output.echo(f"by the {student}: {_priced(made.cost, 'by the model', by_clicks=self.by_clicks)}")


def _print_forest(written: ForestExport, ranker: Ranker, taught: Taught | None, file: Path, to: str) -> None:
    what = "" if taught is None else "distilled into "
    output.echo(f"{file}: {ranker.method}, {what}{written.trees} trees for {to}, {written.size / 1000:,.0f} kB")
    missing = "missing and " if written.knows_missing else ""
    output.echo(
        f"the same as the {'model' if taught is None else 'forest'} on {written.documents:,} documents, with values "
        f"{missing}on thresholds among them: largest difference {written.largest_difference:.1e}"
    )
    if taught is not None:
        taught.print("forest")
    if written.shift:
        output.echo(f"{written.shift:.4g} is added to every score, so that none is below 0; the order is the same")
    if not written.knows_missing:
        output.echo("the format knows no missing values: fill every feature, in training as well as in scoring")
        gaps = [name for name, share in zip(ranker.feature_names, ranker.scaling.missing, strict=True) if share]
        if gaps:
            which = listed(gaps, most=5)
            output.echo(f"the model was trained with values of {which} missing, so this file does not rank as it does")
    if written.categories is not None:
        count = len(ranker.categories)
        output.echo(f"{count} categorical features are taken as codes; {written.categories} has the code of each value")


def _priced(cost: Cost, instead_of: str, *, by_clicks: bool) -> str:
    """nDCG@10 of what was exported beside that of the model."""
    labels = "by clicks of the shown order, give --data for labels" if by_clicks else "by labels"
    change = cost.change
    return (
        f"nDCG@10 {cost.exported:.4f}, {instead_of} {cost.model:.4f} "
        f"({change.difference:+.4f} [{change.low:+.4f}, {change.high:+.4f}], {cost.queries:,} queries, {labels})"
    )


def _print(written: Export, file: Path, where: str, *, by_clicks: bool, trees: bool) -> None:
    from ultr.relevance.preprocessing import FEWEST_TO_INDICATE
    from ultr.scoring import FORMS

    card, parity, cost = written.card, written.parity, written.cost
    output.echo(f"{file}: {card.method}, {len(card.feature_names)} features, {written.size / 1000:,.0f} kB")
    output.echo(FORMS[card.form])
    model = "the model with what lists add held fixed" if card.pointwise else "the model"
    output.echo(
        f"the same as {model} on {parity.documents:,} documents of {parity.queries:,} lists ({where}): largest "
        f"difference {parity.largest_difference:.1e} where scores spread by {parity.spread:.2g}, "
        f"Kendall's tau {parity.kendall_tau:.4f}"
    )
    how = "goes where the trees learned to send it" if trees else "counts as its typical value in the training data"
    if not trees and any(FEWEST_TO_INDICATE <= share <= 1 - FEWEST_TO_INDICATE for share in card.missing.values()):
        how += "; the network also knows that it is missing where 1 to 99 % of the training documents miss it"
    output.echo(f"a missing feature (NaN) {how}")
    if card.missing:
        missing = listed([f"{name} ({share:.1%})" for name, share in card.missing.items()], most=5)
        output.echo(f"missing in training: {missing}; a service refuses other gaps by default")
    if card.categories:
        values = listed([f"{name} ({len(values):,} values)" for name, values in card.categories.items()], most=5)
        output.echo(f"taken as codes, the places of values on the card of the file: {values}")
    if not card.pointwise:
        return
    if cost is None:
        output.echo("what it costs to score documents one by one is not known: no candidate is relevant; give --data")
        return
    output.echo(f"documents one by one: {_priced(cost, 'in their lists', by_clicks=by_clicks)}")

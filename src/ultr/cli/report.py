"""`ultr report`: a trained model, or two of them, as one page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultr.cli import options, output
from ultr.errors import DataError, OptionError, UltrError

if TYPE_CHECKING:
    from ultr.data.click_log import ClickLog
    from ultr.data.judged import JudgedLists
    from ultr.reporting import Model, ReportInputs

NAME = "report.html"


def report(
    run: Annotated[Path, typer.Argument(help="Model folder, or a folder with several models, such as that of a demo.")],
    other: Annotated[Path | None, typer.Argument(help="Another one to compare it with.")] = None,
    out: Annotated[Path | None, typer.Option(help="The page; by default report.html in the folder of the run.")] = None,
    log: Annotated[
        Path | None,
        typer.Option(help="Folder of the click log; by default that of the training, if it is still there."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Judged lists: NAME=FOLDER (its test part), letor-like, or an SVMlight, CSV or Parquet file."
        ),
    ] = None,
    fold: Annotated[int | None, typer.Option(help="Which fold of --data; by default that of the training.")] = None,
    against: Annotated[
        list[Path] | None, typer.Option(help="Model to set beside it, such as one by `click` or `label`; repeatable.")
    ] = None,
    titles: Annotated[
        Path | None, typer.Option(help="A CSV or Parquet file with the id and the title of each document.")
    ] = None,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Write one page on a run: what it changes for users and what that brings; below, what it learned and from what.

    The page stands alone: it opens offline, on a phone and on paper. Example: `ultr report model --against raw`
    """
    from ultr.pages import is_page
    from ultr.reporting import comparison_report
    from ultr.reporting import report as report_on
    from ultr.reporting.report import FORMAT

    output.hush(quiet)
    target = out or run / NAME
    if target.is_dir():
        raise OptionError(f"{target} is a folder; give --out a file such as {target / NAME}")
    if target.exists() and not overwrite and not is_page(target):
        raise OptionError(f"{target} is not a page of ultr; give another --out, or ask to overwrite it (--overwrite)")
    command = options.command_line()
    with output.status(f"reading {run}") as status:
        inputs, second = _inputs(run, other, against or [], log=log, data=data, fold=fold, titles=titles)
        status.update(output.shown(f"looking at {inputs.subject.name}"))
        found = (
            report_on(inputs, name=str(run), command=command)
            if second is None
            else comparison_report(inputs, second, command=command)
        )
        found.write(target)
    if json:
        output.print_json({"format": FORMAT} | found.as_json() | {"page": str(target)})
        return
    output.echo(found.summary)
    if inputs.unseen is not None and not inputs.evaluations:
        for sentence in inputs.unseen.remarks:
            output.echo(sentence)
    for sentence in inputs.missing:
        output.echo(f"not shown: {sentence}")
    output.echo(f"{target}")


def _inputs(
    run: Path,
    other: Path | None,
    against: list[Path],
    *,
    log: Path | None,
    data: str | None,
    fold: int | None,
    titles: Path | None,
) -> tuple[ReportInputs, Model | None]:
    """All that the report is made of, and the model that the subject is compared with, if there is one."""
    from ultr.data.log_folder import read_document_ids
    from ultr.datasets.titles import read_titles
    from ultr.reporting import Model, ReportInputs, models_of

    first = models_of(run)
    second = [] if other is None else models_of(other)
    beside = [Model.load(path) for path in against]
    models = _named([*first, *second, *beside])
    missing: list[str] = []
    told: list[str] = []
    clicks, log_name = _log(models, log, missing, told)
    judged, judged_name = _judged(models, data, fold, missing, told)
    for sentence in told:
        output.echo(sentence, err=True)
    ids = None if clicks is None else read_document_ids(Path(log_name), len(clicks.features))
    if titles is not None and ids is None:
        missing.append(
            f"The titles of {titles} are left out: the log has no ids of documents; prepare it from raw rows."
        )
    inputs = ReportInputs(
        models=tuple(models),
        log=clicks,
        log_name=log_name,
        judged=judged,
        judged_name=judged_name,
        document_ids=ids,
        titles={} if titles is None else read_titles(titles),
        missing=tuple(missing),
    )
    if len(models) == len(first):
        return inputs, None
    ends = len(first), len(first) + len(second)
    subject = replace(inputs, models=inputs.models[: ends[0]]).subject
    if other is None:
        return replace(inputs, chosen=subject.name), None
    compared = replace(inputs, models=inputs.models[ends[0] : ends[1]]).subject
    return replace(inputs, models=(subject, compared, *inputs.models[ends[1] :]), chosen=subject.name), compared


def _named(models: list[Model]) -> list[Model]:
    """The models, by their paths where two folders have one name."""
    names = [model.name for model in models]
    named = [replace(model, name=str(model.folder)) if names.count(model.name) > 1 else model for model in models]
    if len({model.name for model in named}) < len(named):
        raise OptionError("a model is given twice; give each of them once")
    return named


def _log(models: list[Model], given: Path | None, missing: list[str], told: list[str]) -> tuple[ClickLog | None, str]:
    """The log that is given, or else the first that a model says it learned from and that is still there."""
    from ultr.methods.origin import found_from

    if given is not None:
        return _read_log(models, str(given)), str(given)
    origins = [(model, origin) for model in models if (origin := model.manifest.origin) is not None]
    paths = {found_from(model.folder, origin.log): model for model, origin in origins if origin.log}
    gone = [path for path in paths if not Path(path).is_dir()]
    for path, model in paths.items():
        if path in gone:
            continue
        told.append(_named_by("log", path, model))
        try:
            return _read_log(models, path), path
        except DataError as error:
            missing.append(f"The log {path} cannot be used: {error}.")
    where = f" {gone[0]} is not there any more." if gone else ""
    missing.append(f"What the log says is left out.{where} Give it with --log FOLDER.")
    return None, ""


def _named_by(what: str, source: str, model: Model) -> str:
    """A sentence on files that are read because a manifest, perhaps a stranger's, names them."""
    return f"{what}: {source}, which the manifest of {model.name} names; --{what} gives another"


def _read_log(models: list[Model], path: str) -> ClickLog:
    from ultr.data.click_log import ClickLog
    from ultr.methods.known_levels import check_factors

    log = ClickLog.load(path)
    log.fingerprint()
    if not log.clicks.any():
        raise DataError(f"{path} has no click, so there is nothing to report of it; give another log")
    for model in models:
        if tuple(model.manifest.feature_names) != log.feature_names:
            raise DataError(f"{path} has other features than {model.name}; give the log of its training")
        if model.ranker.categories != log.categories:
            raise DataError(f"{path} has other categories than {model.name}; give the log of its training")
        learned = [factor for factor in model.ranker.factors if factor.name in model.ranker.learned_factors]
        try:
            check_factors(log, learned)
        except DataError as error:
            raise DataError(f"{path} does not fit {model.name}: {error}") from error
    return log


def _judged(
    models: list[Model], given: str | None, fold: int | None, missing: list[str], told: list[str]
) -> tuple[JudgedLists | None, str]:
    """The judged lists that are given, or else the test part of the data set that chose weights or trained a bound."""
    from ultr.datasets.layouts import LAYOUTS
    from ultr.datasets.source import LETOR_LIKE
    from ultr.methods.origin import found_from

    origins = [(model, origin) for model in models if (origin := model.manifest.origin) is not None]
    if given is not None:
        first_fold, seed = (origins[0][1].fold, origins[0][1].seed) if origins else (1, 0)
        return _read_judged(models, given, fold or first_fold, seed)
    sources = {
        (found_from(model.folder, source), fold or origin.fold, origin.seed): model
        for model, origin in origins
        for source in (origin.data, origin.validation)
        if source is not None and source.partition("=")[0] in (LETOR_LIKE, *LAYOUTS)
    }
    for (source, chosen, seed), model in sources.items():
        told.append(_named_by("data", source, model))
        try:
            return _read_judged(models, source, chosen, seed)
        except (UltrError, OSError) as error:
            missing.append(f"Rankings cannot be measured on {source}: {error}.")
    if not sources:
        missing.append(
            "No judged lists are known; give --data NAME=FOLDER or a file (SVMlight, CSV, Parquet) "
            "to measure rankings by labels."
        )
    return None, ""


def _read_judged(models: list[Model], source: str, fold: int, seed: int) -> tuple[JudgedLists, str]:
    options.common_categories({model.name: model.ranker for model in models})
    judged = options.read_part(source, "test", fold=fold, seed=seed, like=models[0].ranker)
    for model in models:
        if tuple(model.manifest.feature_names) != judged.feature_names:
            raise DataError(f"{source} has other features than {model.name}; give the data it was trained for")
    return judged, source if Path(source).is_file() else f"the test part of {source}"

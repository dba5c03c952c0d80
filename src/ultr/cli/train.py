"""`ultr train`: a ranker from a click log."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultr.cli import options, output
from ultr.errors import OptionError
from ultr.files import check_new_folder

if TYPE_CHECKING:
    from ultr.data.click_log import ClickLog
    from ultr.data.judged import JudgedLists
    from ultr.methods.origin import Origin
    from ultr.methods.ranker import Ranker
    from ultr.train.checkpoint import Record

CLICKS = "clicks"


def train(
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    method: Annotated[
        str,
        typer.Argument(
            help="Such as vectorization, dla or click; an unknown one lists all. `label` learns from --data. By "
            "default `auto`: raw clicks, corrected by debiased ones as far as the log bears it."
        ),
    ] = "auto",
    log: Annotated[Path | None, typer.Option(help="Folder of the click log.")] = None,
    data: Annotated[str | None, typer.Option(help="Judged lists to learn from, for the method `label`.")] = None,
    validate: Annotated[
        str,
        typer.Option(
            help="How to choose the weights: `clicks` (a held-out tenth of the log), `none`, "
            "or labels, as a data set NAME=FOLDER (its validation part) or an SVMlight, CSV or Parquet file."
        ),
    ] = CLICKS,
    hold_out: Annotated[
        str,
        typer.Option(
            help="What a tenth of is held out for `--validate clicks`: query, page, time (the last), or hash (queries "
            "by a digest of their ids, the same ones in every log)."
        ),
    ] = "query",
    fold: options.Fold = 1,
    dimension: Annotated[
        str | None,
        typer.Option(
            help="Length of the vectors of the method vectorization, or `auto`: the smallest that no larger one beats "
            "on held-out clicks."
        ),
    ] = None,
    relevance: Annotated[
        str | None,
        typer.Option(
            help="The relevance model: `mlp`, or `trees`, which needs the extra of this name; by default `mlp`, of "
            "lightgbm and xgboost `trees`."
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Training steps of the first stage; with trees, its rounds.")
    ] = None,
    propensities: Annotated[
        Path | None,
        typer.Option(
            help="For inverse-propensity and doubly-robust: a file (JSON, CSV, or one number per line), or the folder "
            "of a click log whose rankings were random."
        ),
    ] = None,
    value: Annotated[
        str | None,
        typer.Option(
            metavar="SIGNAL=WEIGHT,...",
            help="Rank by what follows the click: weights of the log's signals, such as click=1,cart=3,purchase=20.",
        ),
    ] = None,
    signal: Annotated[str | None, typer.Option(help="The same for one signal: `--value SIGNAL=1`.")] = None,
    safe: Annotated[
        str | None,
        typer.Option(
            metavar="FACTOR",
            help="Stay near the order of the log: no document's exposure moves by more than this factor, such as 2, "
            "nor farther than held-out clicks speak for; `auto`: as far as they do.",
        ),
    ] = None,
    init_model: Annotated[
        Path | None,
        typer.Option(
            help="Model folder to begin with, of the same method, sizes and features: a warm start. Trees are trained "
            "anew in any case."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same result; by default 0.")] = None,
    seeds: Annotated[
        int | None,
        typer.Option(help="Train with so many seeds and average their rankers into one; by default 1."),
    ] = None,
    settings: options.Set = None,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Train a ranker. A run that was killed goes on where it was when it is started again.

    Several processes, on one machine or many, train it together under `torchrun`.

    Example: `ultr train --log log --out model`, or a method of your choice: `ultr train dla --log log --out model`
    """
    from ultr.data.judged import JudgedLists
    from ultr.methods import flat_options, load
    from ultr.methods import method as method_of
    from ultr.methods.auto import Auto
    from ultr.methods.value_option import NO_VALUE, in_words
    from ultr.train.process_group import ProcessGroup

    output.hush(quiet)
    kind = method_of(method)
    if dimension == "auto" and kind is Auto:
        raise OptionError("only vectorization chooses its dimension; name that method, or give a number")
    types = flat_options.types(kind, relevance)
    chosen = options.method_settings(method, relevance, settings)
    if propensities is not None:
        if "propensities" not in types:
            way_out = "leave --propensities out or use inverse-propensity or doubly-robust"
            raise OptionError(f"method {method} takes no propensities; {way_out}")
        if "propensities" in chosen:
            raise OptionError("propensities are given twice, by --propensities and by --set; keep one of them")
        chosen["propensities"] = options.read_propensities(propensities)
    if signal is not None:
        if value is not None:
            raise OptionError("--signal NAME is short for --value NAME=1; give one of them")
        value = f"{signal}=1"
    of_steps = "steps" if "steps" in types else "rounds"
    others = {"seed": seed, "seeds": seeds, "dimension": dimension, "value": value, of_steps: steps}
    for name, given in others.items():
        if given is None:
            continue
        if name not in types:
            why = f": {NO_VALUE}" if name == "value" else ""
            raise OptionError(f"method {method} has no option {name}{why}")
        if name in chosen:
            raise OptionError(f"option {name} is given twice")
        chosen[name] = options.parse_value(name, given, types[name]) if isinstance(given, str) else given
    estimator = flat_options.estimator(kind, chosen)
    check_new_folder(out, overwrite=overwrite)
    judged = kind.learns_from is JudgedLists
    if judged and (log is not None or data is None):
        raise OptionError("method label learns from labels; give it --data NAME=FOLDER and no --log")
    if not judged and (log is None or data is not None):
        raise OptionError(f"method {method} learns from clicks; give it --log FOLDER and no --data")
    earlier = None if init_model is None else load(init_model)
    largest = None if safe is None else _largest_factor(safe, validate, judged=judged)
    group, place = ProcessGroup.of_environment(), out.resolve()
    busy = f"another training is writing {out}; wait until it is done, or give another --out"
    with group.alone(place.with_name(f".{place.name}.lock"), busy=busy):
        source, validation = _sources(log, data, validate, hold_out, fold=fold, seed=seed or 0, safe=safe is not None)
        if estimator.value is not None and group.leads:
            output.tell(in_words(estimator.value))
        checkpoint = place.with_name(f".{place.name}.checkpoint")
        try:
            ranker = estimator.fit(
                source, validation=validation, init_model=earlier, checkpoint=checkpoint, progress=not quiet
            ).ranker_
            if largest is not None:
                ranker = _made_safe(ranker, source, validation, largest, propensities=chosen.get("propensities"))
        except KeyboardInterrupt:
            onwards = " to go on from the last checkpoint" if checkpoint.exists() else ""
            output.echo(f"ultr: stopped; start the same command again{onwards}", err=True)
            raise typer.Exit(130) from None
        if group.leads:
            origin = _origin(out, log, data, validate, hold_out, fold=fold, seed=seed or 0)
            ranker.save(out, overwrite=overwrite, origin=origin)
            checkpoint.unlink(missing_ok=True)
        group.shut_down()
    if not group.leads:
        return
    by_labels = isinstance(validation, JudgedLists)
    stages = [_summary(stage, ranker.history) for stage in dict.fromkeys(record.stage for record in ranker.history)]
    if json:
        validated_by = None if validation is None else "nDCG@10" if by_labels else kind.held_out_measure
        content = {"model": str(out), "method": method, "validated_by": validated_by, "stages": stages}
        output.print_json(content | {"choices": ranker.choices})
        return
    _print_candidates(ranker)
    _print_users(ranker)
    _print_shrinkage(ranker)
    _print_safe(ranker)
    for stage in stages:
        loss = "" if stage["loss"] is None else f", loss {stage['loss']:.4f}"
        measure = "nDCG@10" if by_labels else kind.measure_of(stage["stage"])
        best = "" if stage["best"] is None else f", best {measure} {stage['best']:.4f}"
        output.echo(f"stage {stage['stage']}: {stage['steps']} steps{loss}{best}")
    output.echo(f"{out}: a ranker by the method {method}")


def _origin(
    out: Path, log: Path | None, data: str | None, validate: str, hold_out: str, *, fold: int, seed: int
) -> Origin:
    """The origin in the model's manifest: how it was trained."""
    from ultr.methods.origin import Origin, seen_from

    # Labels choose the weights of what learns from them, unless others are given.
    labels = validate if validate not in (CLICKS, "none") else data if validate == CLICKS else None
    return Origin(
        command=options.command_line(),
        log=None if log is None else seen_from(out, str(log)),
        data=None if data is None else seen_from(out, data),
        validation=validate if labels is None else seen_from(out, labels),
        hold_out=hold_out if log is not None and validate == CLICKS else None,
        fold=fold,
        seed=seed,
    )


def _print_candidates(ranker: Ranker) -> None:
    """The dimensions that were tried, if there are several; the first seed chooses."""
    choices = ranker.choices.get("seeds", [ranker.choices])[0]
    rows = [
        {
            "dimension": str(each["dimension"]),
            "held-out log-likelihood of a click": f"{each['log_likelihood']:.5f}",
            "to the chosen one": "chosen" if each["dimension"] == choices["dimension"] else f"{each['lead']:+.5f}",
            "standard error": "" if each["dimension"] == choices["dimension"] else f"{each['error']:.5f}",
        }
        for each in choices.get("candidates", ())
    ]
    if rows:
        output.print_table(rows, title="dimension: the smallest that no larger one beats by 1.64 standard errors")


def _print_users(ranker: Ranker) -> None:
    """The share of users who stop after a click, which is the same for all seeds."""
    if stopping := ranker.choices.get("seeds", [ranker.choices])[0].get("stopping"):
        output.echo(
            f"users stop: {stopping:.0%} look at nothing further after a click, so that clicks below clicked documents "
            "count more"
        )


def _print_shrinkage(ranker: Ranker) -> None:
    """The share of the correction by debiased clicks that is kept, and the reason."""
    for choices in ranker.choices.get("seeds", [ranker.choices]):
        if "kept" in choices:
            output.echo(
                f"{choices['kept']:.0%} of what debiasing changes is kept: two halves of the queries, debiased apart, "
                f"agree on it with a correlation of {choices['agreement']:.2f}; the rest stays as raw clicks have it"
            )


def _largest_factor(safe: str, validate: str, *, judged: bool) -> float | str:
    """The largest factor that `--safe` allows, or `auto`."""
    from ultr.methods.safe import AUTO, allowed

    if judged:
        raise OptionError("method label learns from labels, not from a log with an order; leave --safe out")
    if validate != CLICKS:
        raise OptionError("--safe goes by held-out clicks; leave --validate out")
    largest = safe if safe == AUTO else options.parse_value("safe", safe, float)
    allowed(largest)
    return largest


def _made_safe(
    ranker: Ranker,
    log: ClickLog | JudgedLists,
    held_out: ClickLog | JudgedLists | None,
    largest: float | str,
    *,
    propensities: Sequence[float] | None,
) -> Ranker:
    from ultr.data.click_log import ClickLog
    from ultr.methods.safe import make_safe
    from ultr.train.process_group import ProcessGroup
    from ultr.train.progress import Bar

    assert isinstance(log, ClickLog)
    assert isinstance(held_out, ClickLog)
    bar = Bar("logged order") if ProcessGroup.of_environment().leads and not output.is_quiet() else None
    seed = int(ranker.options.get("seed", 0))
    return make_safe(ranker, log, held_out, largest=largest, propensities=propensities, seed=seed, observer=bar)


def _print_safe(ranker: Ranker) -> None:
    """The factors that were tried, if the ranker was made safe."""
    from ultr.methods.safe import SAFE, in_words

    if (choice := ranker.choices.get(SAFE)) is None:
        return
    what = "clicks" if choice["counted"] == "click" else f"value ({choice['counted']})"
    rows = [
        {
            "exposure moves by at most": "any factor" if each["factor"] is None else f"{each['factor']:g}",
            "gain over the logged order": f"{each['gain']:+.1%}",
            **{end: "" if isnan(each[end]) else f"{each[end]:+.1%}" for end in ("low", "high")},
            "": "chosen" if each["factor"] == choice["factor"] else "",
        }
        for each in choice["tried"]
    ]
    output.print_table(rows, title=f"safe: discounted debiased {what} on held-out queries, 95 % intervals")
    for sentence in in_words(choice):
        output.echo(sentence)


def _summary(stage: str, history: Sequence[Record]) -> dict[str, Any]:
    records = [record for record in history if record.stage == stage]
    values = [record.value for record in records if record.value is not None]
    return {"stage": stage, "steps": records[-1].step, "loss": records[-1].loss, "best": max(values, default=None)}


def _sources(
    log: Path | None, data: str | None, validate: str, hold_out: str, *, fold: int, seed: int, safe: bool
) -> tuple[ClickLog | JudgedLists, ClickLog | JudgedLists | None]:
    """The clicks or labels to learn from, and those that choose the weights."""
    from ultr.data.click_log import ClickLog
    from ultr.data.split import HELD_OUT
    from ultr.methods.safe import evidence_share

    source: ClickLog | JudgedLists
    if log is not None:
        source = ClickLog.load(log)
        if validate == CLICKS:
            return source.split(evidence_share(source) if safe else HELD_OUT, by=hold_out, seed=seed)
    else:
        assert data is not None
        if validate == CLICKS:
            splits = options.read_splits(data, fold=fold, seed=seed)
            return splits.train, splits.validation
        source = options.read_part(data, "train", fold=fold, seed=seed)
    if validate == "none":
        return source, None
    return source, options.read_part(validate, "validation", fold=fold, seed=seed, like=source)

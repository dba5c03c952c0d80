"""`ultr compare`: which of two rankers is better, by clicks alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ultr import checks
from ultr.cli import options, output
from ultr.errors import OptionError


def compare(
    a: Annotated[Path, typer.Argument(help="Model folder.")],
    b: Annotated[Path, typer.Argument(help="Model folder that may be better.")],
    log: Annotated[Path, typer.Option(help="Folder of a click log. Queries that a model was trained on are left out.")],
    propensities: Annotated[
        Path | None,
        typer.Option(
            help="A file (JSON, CSV, or one number per line), or the folder of another click log; "
            "by default they are estimated from the swaps in --log."
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(
            help="How to estimate them: em (default for --log), all-pairs, adjacent-chain, pivot, "
            "or click-rate for a log whose rankings were random (default for --propensities LOG)."
        ),
    ] = None,
    weighting: Annotated[str, typer.Option(help="ips or self-normalised.")] = "ips",
    utility: Annotated[str, typer.Option(help="clicks (expected on an impression) or dcg.")] = "clicks",
    looks: Annotated[
        int,
        typer.Option(
            min=1,
            help="How often you look in all while the log grows, this time included. Intervals hold for all of them "
            "together, so that you may stop at the first winner.",
        ),
    ] = 1,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Is ranker B better than A, and than raw clicks? By a click log alone, or `cannot tell` where it does not say.

    The answer holds as far as one propensity for each position describes the bias of the log, which is tested. Where
    documents ranked high and low have different ones, trust bias is taken off, or intervals are wide enough for both.

    Example: `ultr compare raw model --log log`
    """
    from ultr.bias import EM, ESTIMATORS, click_rate_propensities
    from ultr.data.click_log import ClickLog
    from ultr.evaluation.comparison import AS_SHOWN
    from ultr.evaluation.comparison import compare as compare_rankers
    from ultr.evaluation.shift import shift_from_log
    from ultr.evaluation.unseen_part import unseen_part
    from ultr.methods import load
    from ultr.methods.value_option import as_sum

    if weighting == "doubly-robust":
        raise OptionError("doubly-robust needs a model of relevance, which only ultr.evaluation.compare takes")
    names = str(a), str(b)
    rankers = [load(path) for path in (a, b)]
    categories = options.common_categories(dict(zip(names, rankers, strict=True)))
    clicks = ClickLog.load(log).with_categories(categories, what=str(log))
    for name, ranker in zip(names, rankers, strict=True):
        if value := ranker.options.get("value"):
            output.echo(f"{name} ranks by value ({as_sum(value)}), and is compared by clicks", err=True)
    if estimator is not None:
        checks.one_of("estimator", estimator, ESTIMATORS)
    # None of them, to estimate them from the swaps of the log.
    given = None if propensities is None else options.read_propensities(propensities, estimator)
    if propensities is None and estimator == "click-rate":
        given = tuple(click_rate_propensities(clicks).tolist())
    comparison = compare_rankers(
        rankers[0],
        rankers[1],
        clicks,
        propensities=given,
        estimator=EM if estimator in {None, "click-rate"} else str(estimator),
        weighting=weighting,
        utility=utility,
        names=names,
        unseen=unseen_part(dict(zip(names, rankers, strict=True)), clicks),
        looks=looks,
        seed=seed,
    )
    shifts = {name: shift_from_log(ranker, comparison.unseen.log) for name, ranker in zip(names, rankers, strict=True)}
    if json:
        moved = {"exposure_shift": {name: vars(shift) for name, shift in shifts.items()}}
        about = {"log": str(log), "a": names[0], "b": names[1], "looks": looks}
        output.print_json(about | comparison.as_json() | moved)
        return
    output.print_section(comparison.section())
    for name, shift in shifts.items():
        output.echo(shift.sentence(name, AS_SHOWN))

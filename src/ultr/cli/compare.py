"""`ultr compare`: which of two rankers is better, by clicks alone."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultr import checks
from ultr.cli import options, output
from ultr.errors import OptionError

if TYPE_CHECKING:
    from ultr.evaluation.comparison import Comparison
    from ultr.evaluation.trial import Answer

EVIDENCE = ("clicks", "effective_clicks", "clipped", "unsupported")
"""Fields of a value that say how much evidence it rests on."""


def _interleaved(text: str) -> Any:
    return typer.Option(help=text, rich_help_panel="Interleaving")


def compare(
    a: Annotated[Path | None, typer.Argument(help="Model folder.")] = None,
    b: Annotated[Path | None, typer.Argument(help="Model folder that may be better.")] = None,
    log: Annotated[
        Path | None, typer.Option(help="Folder of a click log. Queries that a model was trained on are left out.")
    ] = None,
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
    interleaved: Annotated[
        Path | None,
        _interleaved("Folder of `ultr serve --interleave NEW.onnx --log-to FOLDER`, in the place of --log."),
    ] = None,
    action: Annotated[str, _interleaved("What wins a list, such as purchase.")] = "click",
    minutes: Annotated[float, _interleaved("Time after a list in which what users do counts.")] = 30.0,
    per_client: Annotated[
        bool, _interleaved("Count one list of each client_id, where users differ in how much they search.")
    ] = False,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Is ranker B better than A, and than raw clicks? By a click log alone, or `cannot tell` where it does not say.

    The answer holds as far as one propensity for each position describes the bias of the log, which is tested. Where
    documents ranked high and low have different ones, trust bias is taken off, or intervals are wide enough for both.

    With --interleaved, of two exported rankers that were shown interleaved: who won more lists, by an answer that may
    be looked at every day. Model files choose a pair; by default it is the last one of the folder.

    Example: `ultr compare raw model --log log`, `ultr compare --interleaved shown`
    """
    if interleaved is not None:
        from ultr.cli.interleaved import compare_interleaved

        of_logs = {"--log": log, "--propensities": propensities, "--estimator": estimator}
        if used := [name for name, value in of_logs.items() if value is not None]:
            raise OptionError(f"{used[0]} is for logs of one ranker; leave it out with --interleaved")
        if looks != 1:
            raise OptionError("--interleaved holds at all looks together; leave out --looks")
        compare_interleaved(interleaved, (a, b), action=action, minutes=minutes, per_client=per_client, json=json)
        return
    if a is None or b is None or log is None:
        raise OptionError("give two model folders and --log LOG, or --interleaved FOLDER")
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
        output.print_json(about | _content(comparison) | moved)
        return
    _print(comparison, names=names, looks=looks)
    for name, shift in shifts.items():
        output.echo(shift.sentence(name, AS_SHOWN))


def _print(comparison: Comparison, *, names: tuple[str, str], looks: int) -> None:
    from ultr.evaluation.comparison import QUESTIONS

    a, b = names
    output.echo(f"{comparison.value.verdict}: {comparison.value.reason}")
    for sentence in (f"Compared on {comparison.unseen.name}.", *comparison.unseen.remarks):
        output.echo(sentence)
    output.echo(comparison.assumption.sentence)
    if comparison.values:
        rows = [
            {
                "ranker": name,
                "value": value.interval().text(),
                "effective clicks": f"{value.effective_clicks:,.0f}",
                "clipped": f"{value.clipped:.1%}",
                "never shown": f"{value.unsupported:.1%}",
            }
            for name, value in comparison.values.items()
        ]
        output.print_table(rows, title="\nvalue, 95 % intervals with the propensities taken for known")
    else:
        output.echo("Give --propensities, or a log with swaps, to compare the rankings themselves.")
    rows = []
    for field, question in QUESTIONS.items():
        answer: Answer = getattr(comparison, field)
        rows.append(
            {
                f"{b} ...": question.format(a=a),
                "answer": "yes" if answer.winner == b else "no" if answer.winner else answer.verdict,
                "by": "" if answer.difference is None else f"{answer.difference.mean:+.4f}",
                "low": "" if answer.difference is None else f"{answer.difference.low:+.4f}",
                "high": "" if answer.difference is None else f"{answer.difference.high:+.4f}",
            }
        )
    output.print_table(rows, title="\nanswers, 95 % intervals" + (f" for {looks} looks" if looks > 1 else ""))


def _content(comparison: Comparison) -> dict[str, Any]:
    from ultr.evaluation.comparison import QUESTIONS

    theta = comparison.propensities
    return {
        "compared_on": comparison.unseen.name,
        "warnings": comparison.unseen.warnings,
        "notes": comparison.unseen.notes,
        "propensities": None if theta is None else theta.tolist(),
        "one_propensity_for_each_position": vars(comparison.assumption),
        "values": {
            name: vars(value.interval()) | {each: getattr(value, each) for each in EVIDENCE}
            for name, value in comparison.values.items()
        },
        "answers": {field: asdict(getattr(comparison, field)) for field in QUESTIONS},
    }

"""`ultr compare`: which of two rankers is better, by clicks alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ultr import checks
from ultr.cli import options, output
from ultr.errors import OptionError

_WEIGHTING, _UTILITY, _PAGE, _ACTION, _MINUTES = "ips", "clicks", "page", "click", 30.0


def _interleaved(text: str) -> Any:
    return typer.Option(help=text, rich_help_panel="Interleaving")


def compare(
    models: Annotated[
        list[Path] | None, typer.Argument(help="Model folders, two or more; the others may be better than the first.")
    ] = None,
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
    weighting: Annotated[str, typer.Option(help="ips or self-normalised.")] = _WEIGHTING,
    utility: Annotated[str, typer.Option(help="clicks (expected on an impression) or dcg.")] = _UTILITY,
    candidates: Annotated[
        str,
        typer.Option(
            help="What a ranker orders: page, the documents of each page, or query, those of all pages of a query: "
            "right if each of them could have been on each page."
        ),
    ] = _PAGE,
    value: Annotated[
        str | None,
        typer.Option(
            metavar="SIGNAL=WEIGHT,...",
            help="Compare by what follows the click in the place of clicks, such as click=1,purchase=20.",
        ),
    ] = None,
    looks: Annotated[
        int,
        typer.Option(
            min=1,
            help="How often you look in all while the log grows, this time included. Intervals hold for all of them "
            "together, so that you may stop at the first winner.",
        ),
    ] = 1,
    against: options.Against = None,
    html: Annotated[Path | None, typer.Option(help="Also write a page with the answers to this file.")] = None,
    interleaved: Annotated[
        Path | None,
        _interleaved("Folder of `ultr serve --interleave NEW.onnx --log-to FOLDER`, in the place of --log."),
    ] = None,
    action: Annotated[str, _interleaved("What votes, such as purchase.")] = _ACTION,
    minutes: Annotated[float, _interleaved("Time after a list in which what users do counts.")] = _MINUTES,
    per_client: Annotated[
        bool, _interleaved("Count one list of each client_id, where users differ in how much they search.")
    ] = False,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Is ranker B better than A, and than raw clicks? By a click log alone, or `cannot tell` where it does not say.

    Of more than two rankers, each is compared with the first, a row for each.

    The answer holds as far as one number for each position is enough for the bias of the log, which is tested. Where
    documents ranked high and low have different ones, trust bias is taken off, or intervals are made wider.

    With --interleaved, of two exported rankers that were shown interleaved: who users vote for, by an answer that may
    be looked at every day. Model files choose a pair; by default it is the last one of the folder.

    Example: `ultr compare raw model --log log`, `ultr compare --interleaved shown`
    """
    if interleaved is not None:
        from ultr.cli.interleaved import compare_interleaved

        of_logs = {
            "--log": log is not None,
            "--propensities": propensities is not None,
            "--estimator": estimator is not None,
            "--weighting": weighting != _WEIGHTING,
            "--utility": utility != _UTILITY,
            "--candidates": candidates != _PAGE,
            "--value": value is not None,
            "--against": against is not None,
            "--html": html is not None,
            "--seed": seed != 0,
        }
        if used := [name for name, given in of_logs.items() if given]:
            raise OptionError(f"{used[0]} is for logs of one ranker; leave it out with --interleaved")
        if looks != 1:
            raise OptionError("--interleaved holds at all looks together; leave out --looks")
        compare_interleaved(interleaved, models or [], action=action, minutes=minutes, per_client=per_client, json=json)
        return
    if not models or log is None:
        raise OptionError("give two model folders and --log LOG, or --interleaved FOLDER")
    of_interleaved = {"--action": action != _ACTION, "--minutes": minutes != _MINUTES, "--per-client": per_client}
    if used := [name for name, given in of_interleaved.items() if given]:
        raise OptionError(f"{used[0]} is for lists of two rankers; leave it out without --interleaved")
    from ultr.bias import EM, ESTIMATORS, click_rate_propensities
    from ultr.data.click_log import ClickLog
    from ultr.evaluation.comparison import AS_SHOWN, ranked
    from ultr.evaluation.comparison import compare as compare_rankers
    from ultr.evaluation.evidence import Candidates
    from ultr.evaluation.shift import shift_from_log
    from ultr.evaluation.unseen_part import unseen_part
    from ultr.methods import load
    from ultr.methods.value_option import as_sum
    from ultr.pages import Page

    if weighting == "doubly-robust":
        raise OptionError("doubly-robust needs a model of relevance, which only ultr.evaluation.compare takes")
    names = _names(models, against)
    rankers = {name: load(Path(name)) for name in names}
    categories = options.common_categories(rankers)
    clicks = ClickLog.load(log).with_categories(categories, what=str(log))
    pool = Candidates.shown(clicks) if checks.one_of("candidates", candidates, (_PAGE, "query")) == "query" else None
    weights = None if value is None else options.parse_value("value", value, Mapping[str, float])
    remarks = []
    for name, ranker in rankers.items():
        if weights is None and (own := ranker.options.get("value")):
            pairs = ",".join(f"{signal}={weight:g}" for signal, weight in own.items())
            remarks.append(
                f"{name} ranks by value ({as_sum(own)}), and is compared by clicks; --value {pairs} compares by value."
            )
            output.echo(remarks[-1], err=True)
    if estimator is not None:
        checks.one_of("estimator", estimator, ESTIMATORS)
    # None of them, to estimate them from the swaps of the log.
    given = None if propensities is None else options.read_propensities(propensities, estimator)
    if propensities is None and estimator == "click-rate":
        given = tuple(click_rate_propensities(clicks).tolist())
    unseen, assumption, found = unseen_part(rankers, clicks), None, []
    for name in names[1:]:
        comparison = compare_rankers(
            rankers[names[0]],
            rankers[name],
            clicks,
            propensities=given,
            estimator=EM if estimator in {None, "click-rate"} else str(estimator),
            weighting=weighting,
            utility=utility,
            candidates=pool,
            value=weights,
            names=(names[0], name),
            unseen=unseen,
            assumption=assumption,
            looks=looks,
            seed=seed,
        )
        assumption = comparison.assumption
        found.append(comparison)
    shifts = {name: shift_from_log(ranker, unseen.log) for name, ranker in rankers.items()}
    section = found[0].section() if len(found) == 1 else ranked(found)
    moves = [shift.sentence(name, AS_SHOWN) for name, shift in shifts.items()]
    if html is not None:
        whole = replace(section, advice="\n\n".join([section.advice, *remarks, *moves]))
        Page("Comparison of rankers", f"By the click log {log}.", [whole]).write(html)
    if json:
        moved = {"exposure_shift": {name: vars(shift) for name, shift in shifts.items()}}
        about = {"log": str(log), "a": names[0], "looks": looks}
        answers = {"b": names[1], **section.numbers} if len(found) == 1 else {"rankers": section.numbers}
        output.print_json(about | answers | moved)
        return
    output.print_section(section)
    for move in moves:
        output.echo(move)


def _names(models: list[Path], against: Path | None) -> list[str]:
    """The names of the models, the one that the others are compared with first."""
    names = [str(path) for path in models]
    if against is not None:
        names = [str(against), *(name for name in names if name != str(against))]
    if len(names) < 2:
        raise OptionError("there is nothing to compare with; give two models or more")
    return names

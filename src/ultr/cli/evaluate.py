"""`ultr evaluate`: how good rankers are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultr.cli import options, output
from ultr.counted import counted
from ultr.errors import OptionError

if TYPE_CHECKING:
    from ultr.data.judged import JudgedLists
    from ultr.methods.ranker import Ranker
    from ultr.scoring import Scorer

MAIN = "nDCG@10"
"""The measure that models are sorted and compared by, where it is asked for; else the last one."""


def evaluate(
    models: Annotated[
        list[Path],
        typer.Argument(
            help="Model folders, or files that `ultr export` wrote for onnx; the others are compared with the first."
        ),
    ],
    data: options.Judged = None,
    fold: options.Fold = 1,
    part: options.Part = "test",
    log: Annotated[
        Path | None,
        typer.Option(help="A click log, in place of or beside labels. What a model was trained on is left out."),
    ] = None,
    measures: Annotated[
        str, typer.Option(help="Comma-separated: nDCG@k, MRR, MAP, ERR@k, ARP, P@k.")
    ] = "nDCG@1,nDCG@3,nDCG@5,nDCG@10",
    query_column: options.QueryColumn = None,
    label_column: options.LabelColumn = None,
    document_column: options.DocumentColumn = None,
    features: options.Features = None,
    against: options.Against = None,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Measure rankers on judged lists or on held-out clicks, with intervals and a paired test.

    Features are matched by name, whatever their order; those of SVMlight files only have numbers.

    Example: `ultr evaluate model baseline --data mq2007=data/mq2007`
    """
    from ultr.datasets.table_file import TableColumns
    from ultr.methods.ranker import Ranker

    if data is None and log is None:
        raise OptionError("there is nothing to evaluate on; give --data, --log or both")
    rankers = {str(path): options.read_ranker(path) for path in ([] if against is None else [against]) + models}
    trained = {name: ranker for name, ranker in rankers.items() if isinstance(ranker, Ranker)}
    if log is not None and len(trained) < len(rankers):
        file = next(name for name in rankers if name not in trained)
        raise OptionError(
            f"{file} has scores but no probabilities of clicks, which --log asks for; give the model folder that it "
            "was exported from, or --data alone"
        )
    content: dict[str, Any] = {}
    if data is not None:
        options.common_categories(rankers)
        first = next(iter(rankers.values()))
        columns = TableColumns(query_column, label_column, document_column)
        judged = options.read_part(data, part, fold=fold, seed=seed, features=features, like=first, columns=columns)
        content |= _on_labels(rankers, judged, data, part, measures.split(","), as_json=json)
    if log is not None:
        content |= _on_clicks(trained, log, as_json=json)
    if json:
        output.print_json(content)


def _on_labels(
    rankers: Mapping[str, Ranker | Scorer],
    judged: JudgedLists,
    data: str,
    part: str,
    measures: list[str],
    *,
    as_json: bool,
) -> dict[str, Any]:
    from ultr.evaluation import evaluate as evaluate_ranker
    from ultr.evaluation.comparison import signed_texts
    from ultr.metrics import Interval, Measure

    results = {name: evaluate_ranker(ranker, judged, measures) for name, ranker in rankers.items()}
    names = list(next(iter(results.values())).values)
    first, *others = results
    tests = {name: {m: results[first].against(results[name], m) for m in names} for name in others}
    if not as_json:
        main = MAIN if MAIN in names else names[-1]
        sign = 1 if Measure.parse(main).higher_is_better else -1
        ordered = sorted(results, key=lambda name: -sign * results[name].mean(main))
        rows = [{"model": name, **{m: results[name].interval(m).text() for m in names}} for name in ordered]
        queries = judged.with_relevant().queries
        left_out = f" that have a relevant document, of {judged.queries:,}" if queries < judged.queries else ""
        where = options.name_of_part(data, part)
        output.print_table(rows, title=f"{where}, {counted(queries, 'query', 'queries')}{left_out}, 95 % intervals")
        leads = {name: results[name].against(results[first], main) for name in ordered if name != first}
        rows = [
            {"model": name, **signed_texts(Interval(test.difference, test.low, test.high)), "p": f"{test.p_value:.4f}"}
            for name, test in leads.items()
        ]
        if rows:
            output.print_table(rows, title=f"{main} above that of {first}, query by query, 95 % intervals")
    return {
        "data": data,
        "part": part,
        "queries": judged.with_relevant().queries,
        "measures": {name: {m: vars(result.interval(m)) for m in names} for name, result in results.items()},
        "first_against": {name: {m: vars(test) for m, test in by.items()} for name, by in tests.items()},
    }


def _on_clicks(rankers: dict[str, Ranker], log: Path, *, as_json: bool) -> dict[str, Any]:
    from ultr.data.click_log import ClickLog
    from ultr.evaluation import click_fit, unseen_part

    clicks = ClickLog.load(log).with_categories(options.common_categories(rankers), what=str(log))
    unseen = unseen_part(rankers, clicks)
    fits = {name: click_fit(ranker, clicks, unseen=unseen) for name, ranker in rankers.items()}
    if not as_json:
        ordered = sorted(fits.items(), key=lambda item: -item[1].list_log_likelihood)
        rows = [
            {
                "model": name,
                "log-likelihood of a click": f"{fit.list_log_likelihood:.4f}",
                "log-likelihood": f"{fit.log_likelihood:.4f}",
                "perplexity": f"{fit.perplexity:.4f}",
            }
            for name, fit in ordered
        ]
        for sentence in (f"Measured on {unseen.name}.", *unseen.remarks):
            output.echo(sentence)
        output.print_table(rows, title=f"clicks in {log}")
        rows = [
            {"model": name}
            | {str(place): f"{value:.3f}" for place, value in enumerate(fit.perplexity_by_position, start=1)}
            for name, fit in ordered
        ]
        output.print_table(rows, title="perplexity by position")
    return {
        "clicks": {
            name: vars(fit) | {"perplexity_by_position": fit.perplexity_by_position.tolist()}
            for name, fit in fits.items()
        },
        "measured_on": unseen.name,
        "warnings": unseen.warnings,
        "notes": unseen.notes,
    }

"""`ultr explain`: why candidates are ranked where they are, and which features a ranker goes by."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ultr import checks
from ultr.cli import options, output
from ultr.counted import counted
from ultr.errors import OptionError

if TYPE_CHECKING:
    from ultr.arrays import Floats
    from ultr.data.click_log import ClickLog
    from ultr.data.judged import JudgedLists
    from ultr.data.training_range import Flags
    from ultr.datasets.table_file import TableLists
    from ultr.methods.ranker import Ranker
    from ultr.scoring import Scorer
    from ultr.scoring.explanation import Explanation


def explain(
    model: Annotated[Path, typer.Argument(help="Model folder, or a file that `ultr export` wrote.")],
    candidates: Annotated[
        Path | None, typer.Argument(help="SVMlight, CSV or Parquet file; its labels, if it has any, are not used.")
    ] = None,
    query: Annotated[list[str] | None, typer.Option(help="Only this query; repeatable.")] = None,
    top: Annotated[int, typer.Option(help="Candidates of each query, from the top; 0 takes all.")] = 10,
    show: Annotated[int, typer.Option(help="Features of each candidate on the screen; JSON has all.")] = 3,
    all_of_them: Annotated[
        bool,
        typer.Option("--global", help="The features of the whole ranker, by --data or --log, in place of candidates."),
    ] = False,
    data: options.Judged = None,
    fold: options.Fold = 1,
    part: options.Part = "test",
    log: Annotated[Path | None, typer.Option(help="A click log, where there are no labels.")] = None,
    repeats: Annotated[int, typer.Option(help="Times that the values of a feature are exchanged.")] = 5,
    query_column: options.QueryColumn = None,
    label_column: options.LabelColumn = None,
    document_column: options.DocumentColumn = None,
    features: options.Features = None,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Show the features that moved each candidate up or down against the mean of its list.

    Contributions of a candidate add up to its score less the mean score of its list. With `--global`, what rankings
    lose when the values of a feature are exchanged between the candidates of a list.

    Example: `ultr explain model candidates.csv --query "red shoes"`
    """
    from ultr.data.click_log import ClickLog
    from ultr.datasets.table_file import TableColumns

    ranker = options.read_ranker(model)
    columns = TableColumns(query_column, label_column, document_column)
    if all_of_them:
        if candidates is not None or query:
            raise OptionError("--global is about all queries of --data or --log; leave out the candidates and --query")
        if (data is None) == (log is None):
            raise OptionError("--global needs lists to measure on: give --data or --log")
        lists: JudgedLists | ClickLog
        if data is not None:
            lists = options.read_part(data, part, fold=fold, seed=seed, features=features, like=ranker, columns=columns)
        else:
            lists = ClickLog.load(str(log)).with_features(ranker.feature_names, what=str(log))
            lists = lists.with_categories(ranker.categories, what=str(log))
        _of_ranker(ranker, lists, repeats=repeats, seed=seed, as_json=json)
        return
    if candidates is None:
        raise OptionError("there is nothing to explain; give a file of candidates, or --global with --data or --log")
    if data is not None or log is not None:
        raise OptionError("--data and --log are for --global; give the candidates as a file behind the model")
    checks.integer("top", top, at_least=0)
    checks.integer("show", show, at_least=1)
    read = options.read_candidates(candidates, ranker, features=features, columns=columns)
    _of_candidates(ranker, _chosen(read, query), top=top or None, show=show, seed=seed, as_json=json)


def _chosen(read: TableLists, queries: list[str] | None) -> TableLists:
    """Only the lists of these queries."""
    from ultr.data import ragged

    if not queries:
        return read
    known = read.judged.query_ids.tolist()
    lists = np.array([known.index(checks.one_of("query", each, known)) for each in dict.fromkeys(queries)])
    rows = ragged.rows_of(lists, read.judged.offsets)
    return replace(
        read,
        judged=read.judged.select(lists),
        document_ids=None if read.document_ids is None else read.document_ids[rows],
        never_seen=None if read.never_seen is None else read.never_seen[rows],
    )


def _of_candidates(
    ranker: Ranker | Scorer, read: TableLists, *, top: int | None, show: int, seed: int, as_json: bool
) -> None:
    judged, seen = read.judged, ranker.training_range
    found = _explanation(ranker, judged, top=top, seed=seed)
    flags: Flags = np.zeros(judged.features.shape, dtype=np.int8)
    if seen is None:
        output.echo("the file has no ranges of its training data, so unusual values cannot be told", err=True)
    else:
        flags = seen.flags(judged.features, read.never_seen)
        if told := seen.in_words(flags):
            output.echo(told, err=True)
    rows = []
    for number, candidate in enumerate(found.candidates.tolist()):
        list_number = int(found.lists[number])
        rows.append(
            {
                "query": str(judged.query_ids[list_number]),
                "rank": int(found.ranks[number]),
                "candidate": candidate - int(judged.offsets[list_number]) + 1,
                **({} if read.document_ids is None else {"document": str(read.document_ids[candidate])}),
                "score": float(found.scores[number]),
                **found.as_json(number),
                "unusual": [] if seen is None else seen.remarks(flags[candidate], judged.features[candidate]),
            }
        )
    if as_json:
        output.print_json({"how": found.how, "note": found.note, "candidates": rows})
        return
    for query in dict.fromkeys(row["query"] for row in rows):
        own = [(number, row) for number, row in enumerate(rows) if row["query"] == query]
        lines = [
            _line(found, number, row, judged.features[found.candidates[number]], ranker, show) for number, row in own
        ]
        output.print_table(lines, title=f"query {query}, mean score {own[0][1]['mean_score']:.4f}")
    _tell_how(found)


def _explanation(ranker: Ranker | Scorer, judged: JudgedLists, *, top: int | None, seed: int) -> Explanation:
    """The explanation of candidates; that of an exported file needs no torch."""
    from ultr.scoring import Scorer

    if isinstance(ranker, Scorer):
        from ultr.scoring.file_explanation import explain_file

        return explain_file(ranker, judged.features, judged.offsets, top=top, seed=seed)
    from ultr.explanation import explain as explained_by

    return explained_by(ranker, judged.features, judged.offsets, top=top, seed=seed)


def _line(
    found: Explanation, number: int, row: dict[str, Any], features: Floats, ranker: Ranker | Scorer, show: int
) -> dict[str, str]:
    """A candidate as a row on the screen."""
    moved = [
        f"{found.feature_names[column]} {_value(features[column], column, ranker)} "
        f"{found.contributions[number, column]:+.3g}"
        for column in found.largest(number, show)
    ]
    return {
        "rank": str(row["rank"]),
        "candidate": str(row["candidate"]),
        **({"document": row["document"]} if "document" in row else {}),
        "score": f"{row['score']:.4f}",
        "against\nmean": f"{row['score'] - row['mean_score']:+.4f}",
        "feature, value,\ncontribution": "\n".join(moved) or "nothing",
        "unusual": "\n".join(row["unusual"]),
    }


def _value(value: float, column: int, ranker: Ranker | Scorer) -> str:
    """A value of a feature as people write it."""
    values = ranker.categories.get(ranker.feature_names[column])
    if math.isnan(value):
        return "(missing)"
    return f"{value:.4g}" if values is None or not 0 <= value < len(values) else values[int(value)]


def _tell_how(found: Explanation) -> None:
    output.echo(
        f"By {found.how}: contributions add up to the score less the mean of the list"
        + (f"; {found.note}." if found.note else ".")
    )
    if found.errors is not None:
        output.echo(f"Drawn at random: the largest standard error of a contribution is {found.errors.max():.2g}.")
    if not found.complete.all():
        short = ~found.complete
        gap = float(abs(found.gaps[short]).max())
        output.echo(f"{short.sum()} of {len(short)} do not add up, by up to {gap:.2g}; take them with care.", err=True)


def _of_ranker(
    ranker: Ranker | Scorer, lists: JudgedLists | ClickLog, *, repeats: int, seed: int, as_json: bool
) -> None:
    from ultr.data.judged import JudgedLists
    from ultr.explanation import importance_by_clicks, importance_by_labels

    if isinstance(lists, JudgedLists):
        found = importance_by_labels(ranker, lists, repeats=repeats, seed=seed)
    else:
        found = importance_by_clicks(ranker, lists, repeats=repeats, seed=seed)
    if as_json:
        losses = {name: vars(interval) for name, interval in found.losses.items()}
        output.print_json({"measure": found.measure, "queries": found.queries, "losses": losses})
        return
    rows = [{"feature": name, found.measure: interval.text()} for name, interval in found.losses.items()]
    output.print_table(rows, title=f"{counted(found.queries, 'query', 'queries')}, 95 % intervals")

"""`ultr rank`: candidates in a new order."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from ultr import checks
from ultr.cli import options, output
from ultr.errors import OptionError
from ultr.files import check_new_file, new_file

if TYPE_CHECKING:
    from ultr.arrays import Doubles, Floats, Strings
    from ultr.data.judged import JudgedLists


def rank(
    model: Annotated[Path, typer.Argument(help="Model folder, or a file that `ultr export` wrote.")],
    candidates: Annotated[
        Path, typer.Argument(help="SVMlight, CSV or Parquet file; its labels, if it has any, are not used.")
    ],
    out: Annotated[Path | None, typer.Option(help="File for the result; by default it is printed.")] = None,
    overwrite: options.Overwrite = False,
    query_column: options.QueryColumn = None,
    label_column: options.LabelColumn = None,
    document_column: options.DocumentColumn = None,
    head: Annotated[
        Path | None,
        typer.Option(help="Table that `ultr head` wrote; documents that it knows are ranked by their rates."),
    ] = None,
    top: Annotated[int, typer.Option(help="Candidates of each query, from the top; 0 takes all.")] = 0,
    features: options.Features = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per line, for machines.")] = False,
) -> None:
    """Rank the candidates of each query: query, rank, number of the candidate in its query, its id if known, score.

    Features are matched by name, whatever their order; those of SVMlight files only have numbers.

    Example: `ultr rank model candidates.csv`
    """
    from ultr.data.ragged import list_numbers
    from ultr.datasets.table_file import TableColumns

    checks.integer("top", top, at_least=0)
    if out is not None:
        check_new_file(out, overwrite=overwrite)
    ranker = options.read_ranker(model)
    columns = TableColumns(query_column, label_column, document_column)
    read = options.read_candidates(candidates, ranker, features=features, columns=columns)
    judged, documents = read.judged, read.document_ids
    if ranker.training_range is not None:
        seen = ranker.training_range
        if told := seen.in_words(seen.flags(judged.features, read.never_seen)):
            output.echo(f"{candidates}: {told}; `ultr explain` shows which", err=True)
    scores: Floats | Doubles = ranker.score(judged.features, judged.offsets)
    if head is not None:
        scores = _with_head(head, scores, judged, documents)
    queries = list_numbers(judged.offsets)
    order = np.lexsort((-scores, queries))
    starts = judged.offsets[queries[order]]
    ranks = np.arange(len(order)) - starts + 1
    names = ["query", "rank", "candidate", *([] if documents is None else ["document"]), "score"]
    rows = [
        (
            str(judged.query_ids[queries[row]]),
            int(place),
            int(row - start) + 1,
            *([] if documents is None else [str(documents[row])]),
            float(scores[row]),
        )
        for row, place, start in zip(order, ranks, starts, strict=True)
        if not top or place <= top
    ]
    if json:
        lines = [json_module.dumps(dict(zip(names, row, strict=True))) for row in rows]
    else:
        lines = ["\t".join(names), *("\t".join(map(str, row[:-1])) + f"\t{row[-1]:.6f}" for row in rows)]
    text = "\n".join(lines)
    if out is None:
        # Names are data where another program reads them.
        (output.echo if sys.stdout.isatty() else typer.echo)(text)
    else:
        with new_file(out, overwrite=overwrite) as draft:
            draft.write_text(text + "\n", "utf-8")


def _with_head(head: Path, scores: Floats | Doubles, judged: JudgedLists, documents: Strings | None) -> Doubles:
    """The scores with what a table knows of the candidates."""
    from ultr.evaluation.head_queries import HeadQueries

    if documents is None:
        raise OptionError("--head goes by ids of documents, and the candidates have none; name a --document-column")
    found = HeadQueries.load(head).rerank(scores, judged.query_ids, documents, judged.offsets)
    moved = np.add.reduceat(found != scores, judged.offsets[:-1]) > 0
    output.echo(f"{moved.sum():,} of {judged.queries:,} queries are ranked by {head}, the others by features", err=True)
    return found

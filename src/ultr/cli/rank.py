"""`ultr rank`: candidates in a new order."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultr.cli import options, output
from ultr.errors import OptionError

if TYPE_CHECKING:
    from ultr.data.categories import Categories
    from ultr.evaluation.judged import RankerLike


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
    features: options.Features = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per line, for machines.")] = False,
) -> None:
    """Rank the candidates of each query: query, rank, number of the candidate in its query, its id if known, score.

    Features are matched by name, whatever their order; those of SVMlight files only have numbers.

    Example: `ultr rank model candidates.csv`
    """
    import json as json_module

    import numpy as np

    from ultr.data.ragged import list_numbers
    from ultr.datasets.table_file import TableColumns
    from ultr.files import new_file

    if out is not None and out.exists() and not overwrite:
        raise OptionError(f"{out} exists; give another --out or --overwrite")
    ranker, known, categories = _ranker(model)
    judged, documents = options.read_file(
        candidates,
        labels=False,
        features=features,
        names=known,
        categories=categories,
        columns=TableColumns(query_column, label_column, document_column),
    )
    scores = ranker.score(judged.features, judged.offsets)
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
        with new_file(out) as draft:
            draft.write_text(text + "\n")


def _ranker(model: Path) -> tuple[RankerLike, Sequence[str], Categories]:
    """The ranker of a folder or an exported file, its features and the values of the categorical ones."""
    if model.is_file():
        from ultr.scoring import Scorer

        scorer = Scorer.load(model)
        return scorer, scorer.card.feature_names, scorer.card.categories
    from ultr.methods import load

    ranker = load(model)
    return ranker, ranker.feature_names, ranker.categories

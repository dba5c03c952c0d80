"""`ultr rank`: candidates in a new order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultr.cli import options
from ultr.errors import DataError, OptionError

if TYPE_CHECKING:
    from ultr.evaluation.judged import Ranker


def rank(
    model: Annotated[Path, typer.Argument(help="Model folder, or a file that `ultr export` wrote.")],
    candidates: Annotated[Path, typer.Argument(help="SVMlight file; its labels are read, but not used.")],
    out: Annotated[Path | None, typer.Option(help="File for the result; by default it is printed.")] = None,
    overwrite: options.Overwrite = False,
    features: options.Features = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per line, for machines.")] = False,
) -> None:
    """Rank the candidates of each query: query, rank, number of the candidate in its query, score.

    Example: `ultr rank model candidates.txt`
    """
    import json as json_module

    import numpy as np

    from ultr.data.ragged import list_numbers
    from ultr.datasets.cache import read_judged
    from ultr.files import new_file

    if out is not None and out.exists() and not overwrite:
        raise OptionError(f"{out} exists; give another --out or --overwrite")
    ranker, known = _ranker(model)
    judged = read_judged(candidates, features=features)
    given = len(judged.feature_names)
    if given != known:
        way_out = f", or give --features {known} if missing ones are zero" if given < known else ""
        raise DataError(f"{candidates} has {given} features, {model} knows {known}; write exactly these{way_out}")
    scores = ranker.score(judged.features, judged.offsets)
    queries = list_numbers(judged.offsets)
    order = np.lexsort((-scores, queries))
    starts = judged.offsets[queries[order]]
    ranks = np.arange(len(order)) - starts + 1
    rows = [
        (str(judged.query_ids[queries[row]]), int(place), int(row - start) + 1, float(scores[row]))
        for row, place, start in zip(order, ranks, starts, strict=True)
    ]
    if json:
        names = ("query", "rank", "candidate", "score")
        lines = [json_module.dumps(dict(zip(names, row, strict=True))) for row in rows]
    else:
        lines = ["query\trank\tcandidate\tscore", *(f"{q}\t{r}\t{c}\t{s:.6f}" for q, r, c, s in rows)]
    text = "\n".join(lines)
    if out is None:
        typer.echo(text)
    else:
        with new_file(out) as draft:
            draft.write_text(text + "\n")


def _ranker(model: Path) -> tuple[Ranker, int]:
    """The ranker of a folder or an exported file, and how many features it knows."""
    if model.is_file():
        from ultr.scoring import Scorer

        scorer = Scorer.load(model)
        return scorer, len(scorer.card.feature_names)
    from ultr.methods import load

    ranker = load(model)
    return ranker, len(ranker.feature_names)

"""`ultr rank`: candidates in a new order."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ultr.cli import options
from ultr.errors import DataError


def rank(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    candidates: Annotated[Path, typer.Argument(help="SVMlight file; its labels are not used.")],
    out: Annotated[Path | None, typer.Option(help="File for the result; by default it is printed.")] = None,
    features: Annotated[
        int | None, typer.Option(help="Number of features of a sparse file that leaves out zeros at the end.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Rank the candidates of each query: query, rank, number of the candidate in its query, score.

    Example: `ultr rank model candidates.txt`
    """
    import json as json_module

    import numpy as np

    from ultr.data.cache import read_judged
    from ultr.data.ragged import list_numbers
    from ultr.files import new_file
    from ultr.methods import load

    ranker = load(model)
    judged = read_judged(candidates, features=features)
    if len(judged.feature_names) != len(ranker.feature_names_):
        raise DataError(
            f"{candidates} has {len(judged.feature_names)} features, {model} knows {len(ranker.feature_names_)}; "
            f"write all of them, or give --features {len(ranker.feature_names_)} if missing ones are zero"
        )
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

"""`ultr head`: rates of documents by their features and by their own clicks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ultr.cli import options, output
from ultr.errors import OptionError
from ultr.files import check_new_file


def head(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    log: Annotated[Path, typer.Option(help="Folder of a click log, better not the one that the model learned from.")],
    out: Annotated[Path, typer.Option(help="Parquet file for the table.")],
    propensities: Annotated[
        Path | None,
        typer.Option(
            help="A file (JSON, CSV, or one number per line), or the folder of a click log whose rankings were random; "
            "by default those of the swaps in --log, or else those that the model has learned."
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Move documents of head queries from what their features say towards their own debiased clicks.

    The table has a row for each query and document: the rate that features give, the rate with its clicks, its
    interval. `ultr rank --head` ranks by it. Documents are called by their ids if the log was prepared from raw rows,
    else by their rows in the log.

    Example: `ultr head model --log log --out head.parquet`
    """
    from ultr.bias.stopping import Stopping
    from ultr.data.click_log import ClickLog
    from ultr.data.log_folder import read_document_ids
    from ultr.evaluation.head_queries import HeadQueries
    from ultr.methods import load
    from ultr.train.bounded import LOGGED
    from ultr.train.value import VALUE

    output.hush(quiet)
    check_new_file(out, overwrite=overwrite)
    ranker = load(model)
    if {LOGGED, VALUE} & set(ranker.model.by_name):
        raise OptionError(
            f"{model} is bounded by --safe or ranks by a value, which rates of clicks would undo; give one without"
        )
    clicks = ClickLog.load(log).with_categories(ranker.categories, what=str(log))
    ids = read_document_ids(log, len(clicks.features))
    if ids is None:
        output.echo(f"{log} was not prepared from raw rows: documents are called by their rows, from 0", err=True)
    given = None if propensities is None else options.read_propensities(propensities)
    found = HeadQueries.of(ranker, clicks, document_ids=ids, propensities=given)
    found.save(out, overwrite=overwrite)
    users = Stopping.of(clicks)
    stopping = 0.0 if users is None else users.known
    own = found.exposure > found.fitted.strength
    content = {
        "table": str(out),
        "queries": len(np.unique(found.queries)),
        "documents": len(found.documents),
        "ruled_by_clicks": int(own.sum()),
        "prior": vars(found.fitted),
        "propensities": found.source,
        "stopping": stopping,
    }
    if json:
        output.print_json(content)
        return
    output.echo(found.sentence)
    if stopping:
        who = "Users stop" if stopping == 1 else f"About {stopping:.0%} of the users stop"
        output.echo(
            f"{who} after a click, which propensities do not know: documents below others that are clicked much look "
            "worse than they are, and the truth is outside of the intervals more often than they say."
        )
    output.echo(
        f"What features say counts as much as {found.fitted.strength:,.0f} exposures at the first position; of "
        f"{content['documents']:,} documents of {content['queries']:,} queries, {content['ruled_by_clicks']:,} have "
        "more."
    )
    output.echo(f"{out}: ultr rank {model} CANDIDATES --head {out}")

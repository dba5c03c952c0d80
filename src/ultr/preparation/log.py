"""From a raw click log to a collapsed one: `prepare` writes a folder, `read_log` gives the log itself."""

from __future__ import annotations

import shutil
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ultr.data.click_log import ClickLog
from ultr.data.log_checks import trusted
from ultr.data.missing_values import missing_shares
from ultr.errors import DataError
from ultr.files import new_folder, write_json
from ultr.preparation import faults
from ultr.preparation.assembly import assemble, number_documents
from ultr.preparation.collapse import clicked_together, collapse
from ultr.preparation.columns import Columns
from ultr.preparation.engine import Engine, connect
from ultr.preparation.factors import check_levels, merge_rare
from ultr.preparation.features import inline_features, joined_features, known_in_part
from ultr.preparation.labels import grades_of, labels_of
from ultr.preparation.options import Options
from ultr.preparation.reasons import KEPT
from ultr.preparation.rows import row_format, rows_of
from ultr.preparation.sources import name_of, open_table
from ultr.preparation.summary import PutAside, Summary, Tally, in_words
from ultr.preparation.times import names as names_of
from ultr.preparation.times import time_of
from ultr.preparation.ubi import read_ubi


@dataclass(frozen=True)
class Prepared:
    """A collapsed log and what became of every raw row."""

    log: ClickLog
    summary: Summary


def prepare(log: object, out: str | Path, *, overwrite: bool = False, **options: Any) -> Prepared:
    """Collapse a raw click log into the folder `out`, and tell what became of every row.

    `log` is a path (Parquet, CSV, TSV, JSON lines; a folder or a pattern), `duckdb:FILE?table=NAME`, or a frame of
    pandas, polars or Arrow, with one row for each shown document or for each result page. The options are the fields
    of `ultr.preparation.Options`: names of columns (`query="qid"`), `factors=[...]`, `features=[...]` and so on.

    The folder is that of `ClickLog.load`, with `summary.json`, `rejected.parquet` (the rows that were put aside, each
    with its reason) and `documents.parquet` (which document each row of the features is).
    """
    chosen = Options.of(options)
    chosen.named()
    with new_folder(out, overwrite=overwrite) as draft:
        work = draft / ".work"
        work.mkdir()
        with connect(chosen.engine, work, memory=chosen.memory) as engine:
            prepared = _prepared(engine, log, chosen, draft)
        prepared.log.write(draft)
        write_json(draft / "summary.json", prepared.summary.as_json())
        shutil.rmtree(work)
    return replace(prepared, log=ClickLog.load(out))


def read_log(log: object, **options: Any) -> ClickLog:
    """The collapsed log of a raw one, in memory; the options are those of `prepare`.

    Rows that are put aside are a warning; `strict=True` makes them an error, and `prepare` keeps them in a file.

    >>> import pyarrow
    >>> pages = {"query": ["a", "a", "b"], "docs": [["x", "y"], ["x", "y"], ["z", "x"]], "clicks": ["10", "01", "10"]}
    >>> read_log(pyarrow.table(pages))
    ClickLog(2 lists of 2 queries, 3 impressions, 3 clicks, factors position)
    """
    chosen = Options.of(options)
    with tempfile.TemporaryDirectory(prefix="ultr-") as work:
        with connect(chosen.engine, Path(work), memory=chosen.memory) as engine:
            prepared = _prepared(engine, log, chosen, None)
        if prepared.summary.rows.aside:
            warnings.warn(f"{prepared.summary.sentence()}; ultr.prepare keeps them in a file", stacklevel=2)
        return trusted(prepared.log, features=np.array(prepared.log.features))


def _prepared(engine: Engine, log: object, options: Options, folder: Path | None) -> Prepared:
    """The whole way; `folder` is where the rows that are put aside and the names of the documents go."""
    source = engine.source = name_of(log)
    asked = options.named()
    ubi = read_ubi(engine, log, others=asked.taken_along()) if options.ubi else None
    table = open_table(engine, log) if ubi is None else ubi.table.mutate(click=(ubi.table.click > 0).cast("int8"))
    inline = replace(asked, features=()) if options.features_from is not None else asked
    layout = row_format(engine, table, inline.found_in(table.columns, what=source), what=source)
    columns = layout.columns
    time = None if columns.time is None else time_of(engine, table, columns.time, what=source)
    rows = engine.keep("log_rows", rows_of(table, layout, time=time))
    rows_read, clicks_read = _counted(engine, rows, columns, source)
    labels = None if columns.label is None else labels_of(engine, rows, columns.label, what=source)

    cells = [f"f{i}" for i in range(len(columns.factors))]
    each = rows.mutate(impressions=1, clicks=rows.click.cast("int64").fill_null(0))
    raw = collapse(engine, each, factors=cells, name="raw", periods=options.periods)
    features, names = _features(engine, table, columns, asked, options, raw.shown)
    lists = engine.keep("lists", faults.marked(raw.shown, features))
    merged, factors = merge_rare(engine, lists, columns.factors, rare=options.rare)
    final = collapse(engine, merged, factors=cells, name="final")
    settled = faults.settled(rows, raw, lists, final)
    aside = engine.keep("aside", settled.filter(settled.fault != KEPT))

    reasons = faults.by_reason(engine, aside)
    kept = engine.row(final.shown.aggregate(rows=final.shown.impressions.sum(), clicks=final.shown.clicks.sum()))
    row_tally, click_tally = Tally(rows_read, int(kept["rows"] or 0)), Tally(clicks_read, int(kept["clicks"] or 0))
    assert row_tally.aside == sum(each.rows for each in reasons), "a row is neither kept nor put aside"
    assert click_tally.aside == sum(each.clicks for each in reasons), "a click is neither kept nor put aside"
    _check_kept(source, row_tally, reasons, strict=options.strict)

    documents = number_documents(engine, final.shown)
    grades, conflicting = (None, 0) if labels is None else grades_of(engine, documents, labels)
    engine.make_room()
    collapsed = assemble(
        engine,
        final.shown,
        documents,
        factors=columns.factors,
        features=features,
        feature_names=names,
        pairs=clicked_together(engine, rows, raw, final) if options.pairs else None,
        period_names=names_of(raw.begins),
        grades=grades,
    )
    _check_use(collapsed, source, columns, row_tally, reasons)
    if folder is not None:
        start = 1 if layout.pages else columns.positions_from
        rejected = faults.with_reasons(aside, columns.factors, positions_from=start)
        faults.write_rows(engine, rejected, folder / "rejected.parquet")
        faults.write_rows(
            engine, documents.select("row", "query", "document").order_by("row"), folder / "documents.parquet"
        )
    pages = Tally(engine.count(raw.pages), int(collapsed.impressions.sum()))
    summary = Summary(
        source=source,
        engine=engine.name,
        columns=replace(columns, features=()),
        one_row_a_page=layout.pages,
        pages=pages,
        empty_pages=pages.kept - faults.clicked_pages(engine, settled),
        reasons=reasons,
        factors=tuple(factors),
        lists=collapsed.lists,
        queries=len(collapsed.query_ids),
        documents=len(collapsed.features),
        features=len(names),
        missing=missing_shares(collapsed.features, names),
        known_in_part=0 if features is None else known_in_part(engine, documents, features),
        periods=collapsed.period_names,
        grades=() if grades is None else grades.levels,
        judged=0 if grades is None else int((grades.values >= 0).sum()),
        conflicting_labels=conflicting,
        clicks_elsewhere=0 if ubi is None else ubi.joined.unmatched["click"],
        notes=() if ubi is None else tuple(ubi.notes()),
        rows=row_tally,
        clicks=click_tally,
    )
    return Prepared(collapsed, summary)


def _counted(engine: Engine, rows: Any, columns: Columns, source: str) -> tuple[int, int]:
    """The number of rows and of clicks; a factor with far too many values stops here."""
    values = {f"f{i}": rows[f"f{i}"].approx_nunique() for i in range(len(columns.factors))}
    counts = engine.row(rows.aggregate(rows=rows.count(), clicks=rows.click.cast("int64").sum(), **values))
    if not counts["rows"]:
        raise DataError(f"{source} has no rows; check the path")
    check_levels({name: int(counts[f"f{i}"]) for i, name in enumerate(columns.factors)})
    return int(counts["rows"]), int(counts["clicks"] or 0)


def _features(
    engine: Engine, table: Any, columns: Columns, asked: Columns, options: Options, shown: Any
) -> tuple[Any | None, tuple[str, ...]]:
    if options.features_from is not None:
        second = open_table(engine, options.features_from)
        wanted = replace(columns, features=asked.features)
        what = f"the table of features, {name_of(options.features_from)},"
        return joined_features(engine, second, wanted, shown, what=what)
    if columns.features:
        return inline_features(engine, table, columns, what=engine.source), columns.features
    return None, ()


def _check_kept(source: str, rows: Tally, reasons: Sequence[PutAside], *, strict: bool) -> None:
    parts = in_words(reasons)
    if not rows.kept:
        zero = any(each.reason.startswith("position below 1") for each in reasons)
        hint = "; if positions start at 0, give --positions-from 0" if zero else "; check the columns"
        raise DataError(f"no row of {source} can be kept ({parts}){hint}")
    if strict and rows.aside:
        raise DataError(
            f"{rows.aside:,} of {rows.read:,} rows of {source} have a fault ({parts}); "
            "mend them, or leave --strict out to put them aside"
        )


def _check_use(log: ClickLog, source: str, columns: Columns, rows: Tally, reasons: Sequence[PutAside]) -> None:
    """Raise a `DataError` for a log that nothing can be learned from."""
    # Perhaps the rest was put aside, and that is what has to be mended.
    also = f" ({rows.aside:,} of {rows.read:,} rows were put aside, {in_words(reasons)})" if reasons else ""
    if not log.clicks.any():
        raise DataError(f"{source} has no click in the rows that are kept; check the column {columns.click!r}{also}")
    if (log.positions == log.positions[0]).all():
        where = f" {columns.position!r}" if columns.position else "s of positions and documents"
        raise DataError(
            f"all documents of {source} were shown at position {log.positions[0]}, "
            f"so position bias cannot be told from relevance; check the column{where}{also}"
        )
    if len(log.query_ids) == 1:
        raise DataError(
            f"{source} has one query only, {str(log.query_ids[0])[:100]!r}, and a ranker is learned from many; "
            f"check the column {columns.query!r}{also}"
        )

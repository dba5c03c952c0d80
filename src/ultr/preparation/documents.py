"""The documents of a log: each with the features that it was shown with, numbered in the order of query and name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from ultr.arrays import Integers
from ultr.data.column_names import check_column, guess
from ultr.errors import DataError, OptionError
from ultr.preparation import reasons, values
from ultr.preparation.columns import Columns, expand
from ultr.preparation.engine import Engine
from ultr.preparation.feature_columns import FeatureColumn, feature_columns


@dataclass(frozen=True)
class DocumentTable:
    """Documents as a table of the engine, of which those that no list shows in the end are left out later."""

    table: Any
    """row, query, document, first (row of the same document with other features), x0, x1, ..., fault; with labels low
    and high; where documents are added to others, old (their row there) and added (true for what the new rows show)."""
    columns: tuple[FeatureColumn, ...]
    count: int
    changed: int
    """Number of documents that were shown with several sets of features."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def cells(self) -> list[str]:
        """The columns of the features."""
        return cells_of(self.columns)

    def old_rows(self, engine: Engine, count: int) -> Integers:
        """The number here of each of the documents that these were added to."""
        table = engine.fetch(self.table.filter(self.table.old.notnull()).select("row", "old"))
        rows = np.empty(count, dtype=np.int64)
        rows[table["old"].to_numpy()] = table["row"].to_numpy()
        return rows


def cells_of(columns: Sequence[FeatureColumn]) -> list[str]:
    """The names under which an engine holds the features of these columns."""
    return [f"x{i}" for i in range(sum(len(column.names) for column in columns))]


def shown_documents(shown: Any, columns: Sequence[FeatureColumn]) -> Any:
    """Documents with the features of their rows: query, document, x0, x1, ..., fault."""
    import ibis

    pairs = shown.select("query", "document", *cells_of(columns)).distinct()
    return pairs.mutate(fault=ibis.literal(reasons.KEPT, "int16"))


def joined_documents(
    engine: Engine, shown: Any, second: Any, columns: Columns, *, what: str
) -> tuple[Any, tuple[FeatureColumn, ...]]:
    """Documents with the features of a second table, by query and document or by document alone; and its columns."""
    import ibis

    names = second.columns
    document = columns.document if columns.document in names else guess("document", names)
    query = columns.query if columns.query in names else guess("query", names)
    if document is None:
        check_column(str(columns.document), names, what=what)
    keys = {"document": document} if query is None else {"query": query, "document": document}
    try:
        given = expand(columns.features, names, what=what, taken=[str(name) for name in keys.values()])
    except OptionError as error:
        raise OptionError(
            f"{error}. All features come from this table; to take some from the log, join the two with sql:SELECT ..."
        ) from error
    chosen = given or tuple(name for name in names if name not in keys.values())
    if not chosen:
        raise DataError(f"{what} has no column of features beside {' and '.join(map(str, keys.values()))}")
    kinds = feature_columns(engine, second, chosen, what=what)
    cells = cells_of(kinds)
    rows = second.select(
        **{key: values.text(second[name]) for key, name in keys.items()},
        **dict(zip(cells, (value for each in kinds for value in each.values(second)), strict=True)),
        unusable=reduce(or_, (each.unusable(second) for each in kinds)),
    )
    pairs = shown.select("query", "document").distinct()
    # The table may hold far more documents than were ever shown.
    rows = rows.semi_join(pairs, list(keys)).filter(*(rows[key].notnull() for key in keys))
    merged = rows.group_by(list(keys)).agg(
        unusable=rows.unusable.cast("int8").max(),
        **{cell: rows[cell].min() for cell in cells},
        **{f"y{cell}": rows[cell].max() for cell in cells},
    )
    # Null is what neither smallest nor largest value is: nothing that is missing differs from anything.
    differ = reduce(or_, ((merged[cell] != merged[f"y{cell}"]).fill_null(False) for cell in cells))
    fault = ibis.cases(
        (merged.unusable > 0, reasons.NOT_FINITE.code), (differ, reasons.CONFLICT.code), else_=reasons.KEPT
    )
    merged = merged.mutate(fault=fault.cast("int16")).select(*keys, *cells, "fault")
    known = merged.rename(**{f"key_{key}": key for key in keys})
    joined = pairs.left_join(known, [pairs[key] == known[f"key_{key}"] for key in keys])
    return joined.select(
        "query", "document", *cells, fault=joined.fault.fill_null(reasons.NO_FEATURES.code).cast("int16")
    ), kinds


def numbered(
    engine: Engine, pairs: Any, columns: tuple[FeatureColumn, ...], *, labels: Any = None, old: Any = None
) -> DocumentTable:
    """Documents with their numbers, in the order of query, document and features.

    `old` are those of a log that these are added to, with `old`, the number that each has there.
    """
    import ibis

    cells = cells_of(columns)
    if old is not None:
        names = pairs.columns
        before = old.select(*names, "old", added=ibis.literal(False))
        pairs = pairs.select(*names, old=ibis.null("int64"), added=ibis.literal(True)).union(before)
        pairs = pairs.group_by(*names).agg(old=pairs.old.max(), added=pairs.added.any())
    order = [pairs["query"], pairs.document]
    table = engine.keep(pairs.mutate(row=ibis.row_number().over(order_by=order)))
    count = engine.count(table)
    changed = count - engine.count(table.select("query", "document").distinct()) if cells else 0
    first = table.row
    if changed:
        # Documents of one name are told apart by their features, which few logs need.
        order = [table["query"], table.document, *(_sortable(table[cell]) for cell in cells)]
        table = table.mutate(row=ibis.row_number().over(order_by=order))
        first = table.row.min().over(group_by=["query", "document"])
    table = table.mutate(first=first)
    if labels is not None:
        judged = labels.rename(judged_query="query", judged_document="document")
        same = [table["query"] == judged.judged_query, table.document == judged.judged_document]
        table = table.left_join(judged, same).drop("judged_query", "judged_document")
    table = engine.keep(table) if changed or labels is not None else table
    return DocumentTable(table, columns, count, changed)


def with_rows(shown: Any, documents: DocumentTable) -> Any:
    """The shown rows with `row` and `first` of their document, and its fault."""
    table = documents.table
    if "added" in table.columns:
        # A document that the log had with other features already is not shown with those.
        table = table.filter(table.added)
    same = [shown["query"] == table["query"], shown.document == table.document]
    if documents.changed:
        same += [shown[cell].identical_to(table[cell]) for cell in documents.cells if cell in shown.columns]
    joined = shown.join(table.select("query", "document", "row", "first", "fault", *documents.cells), same)
    return joined.select(
        *(shown[name] for name in shown.columns if name not in documents.cells), "row", "first", "fault"
    )


def _sortable(column: Any) -> Any:
    """Values with a place for null, which engines put first or last as they like."""
    return column.fill_null("" if column.type().is_string() else float("-inf"))

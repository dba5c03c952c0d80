"""The features of each document of each query, null where one is missing, and the documents that cannot be used."""

from __future__ import annotations

from functools import reduce
from operator import add, or_
from typing import Any

from ultr.data.column_names import check_column, guess
from ultr.errors import DataError
from ultr.preparation import reasons
from ultr.preparation.columns import Columns, expand
from ultr.preparation.engine import Engine
from ultr.preparation.rows import no_number, number, text


def inline_features(engine: Engine, table: Any, columns: Columns, *, what: str) -> Any:
    """Features out of the columns of the log itself: query, document, x0, x1, ..., fault, in_part."""
    keys = {"query": columns.query, "document": columns.document}
    rows = _rows(table, keys, columns.features, what=what)
    # Rows with a feature that is no finite number are put aside one by one and do not spoil the others.
    rows = rows.filter(~rows.unusable)
    # A document comes with the same features again and again, and equal rows are cheaper to merge than to compare.
    return engine.keep("features", _merged(rows.distinct(), ["query", "document"], len(columns.features)))


def joined_features(
    engine: Engine, table: Any, columns: Columns, shown: Any, *, what: str
) -> tuple[Any, tuple[str, ...]]:
    """Features of shown documents out of a second table, by query and document or by document alone; their names."""
    names = table.columns
    document = columns.document if columns.document in names else guess("document", names)
    query = columns.query if columns.query in names else guess("query", names)
    if document is None:
        check_column(str(columns.document), names, what=what)
    keys = {"document": document} if query is None else {"query": query, "document": document}
    given = expand(columns.features, names, what=what, taken=[str(name) for name in keys.values()])
    chosen = given or tuple(name for name in names if name not in keys.values())
    if not chosen:
        raise DataError(f"{what} has no column of features beside {' and '.join(map(str, keys.values()))}")
    rows = _rows(table, keys, chosen, what=what)
    # The table may hold far more documents than were ever shown.
    rows = rows.semi_join(shown.select(*keys).distinct(), list(keys))
    return engine.keep("features", _merged(rows, list(keys), len(chosen))), chosen


def known_in_part(engine: Engine, documents: Any, features: Any) -> int:
    """Number of documents with a feature that some of their rows have, and others do not."""
    keys = [key for key in ("query", "document") if key in features.columns]
    return engine.count(documents.semi_join(features.filter(features.in_part), keys))


def _rows(table: Any, keys: dict[str, Any], names: tuple[str, ...], *, what: str) -> Any:
    """Keys and features of each row, and whether one of these is no finite number."""
    for name in names:
        kind = table[name].type()
        if not (kind.is_numeric() or kind.is_boolean() or kind.is_string()):
            raise DataError(f"column {name!r} of {what} is no number; name the columns of features with --features")
    return table.select(
        **{key: text(table[name]) for key, name in keys.items()},
        **{f"x{i}": number(table[name]) for i, name in enumerate(names)},
        unusable=reduce(or_, (no_number(table[name]) for name in names)),
    )


def _merged(rows: Any, keys: list[str], count: int) -> Any:
    """One row for each key; the features are those that all its rows agree on, as far as they have them."""
    import ibis

    values = [rows[f"x{i}"] for i in range(count)]

    def gaps(of: Any) -> Any:
        return reduce(add, (of[f"x{i}"].isnull().cast("int32") for i in range(count)))

    merged = rows.filter(*(rows[key].notnull() for key in keys)).group_by(keys)
    table = merged.agg(
        unusable=rows.unusable.cast("int8").max(),
        gaps=gaps(rows).max(),
        **{f"x{i}": value.min() for i, value in enumerate(values)},
        **{f"y{i}": value.max() for i, value in enumerate(values)},
    )
    # Null is what neither smallest nor largest value is: nothing that is missing differs from anything.
    differ = reduce(or_, (table[f"x{i}"] != table[f"y{i}"] for i in range(count)))
    fault = ibis.cases(
        (table.unusable > 0, reasons.NOT_FINITE.code), (differ, reasons.CONFLICT.code), else_=reasons.KEPT
    )
    # A row with more gaps than are left of all rows together: another one knows what it does not.
    names = [f"x{i}" for i in range(count)]
    return table.select(*keys, *names, fault=fault.cast("int16"), in_part=table.gaps > gaps(table))

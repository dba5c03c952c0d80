"""Attributes inside of columns, by a path such as `query_attributes.device`."""

from __future__ import annotations

from typing import Any

from ultr.data.column_names import closest, listed
from ultr.errors import DataError


def has_attribute(table: Any, path: str) -> bool:
    """True if a table has such a column, or one with such an attribute inside."""
    return _found(table, path) is not None


def attribute(table: Any, path: str, *, what: str) -> Any:
    """A column by the path to it: flat as in CSV, nested as in JSON lines, or text of JSON as databases keep it.

    What a text of JSON holds is not known before it is read, so that it may turn out to be null everywhere.
    """
    column = _found(table, path)
    if column is None:
        known = [name for column in table.columns for name in _paths(column, table[column].type())]
        near = closest(path, known)
        hint = f", did you mean {near!r}" if near else ""
        raise DataError(f"{what} has no {path!r}{hint}; it has: {listed(known)}")
    return column


def _found(table: Any, path: str) -> Any | None:
    names = path.split(".")
    for cut in range(len(names), 0, -1):
        if (head := ".".join(names[:cut])) in table.columns:
            return _inside(table[head], names[cut:])
    return None


def _inside(column: Any, names: list[str]) -> Any | None:
    if not names:
        return column
    kind = column.type()
    if kind.is_struct():
        # A name with dots in it is one name where the plugin has written it so.
        for cut in range(len(names), 0, -1):
            if (head := ".".join(names[:cut])) in kind.names:
                return _inside(column[head], names[cut:])
        return None
    if not (kind.is_string() or kind.is_json()):
        return None
    value = column if kind.is_json() else column.cast("json")
    for name in names:
        value = value[name]
    return value.str.coalesce(value.cast("string").nullif("null"))


def _paths(name: str, kind: Any) -> list[str]:
    if not kind.is_struct():
        return [name]
    return [f"{name}.{path}" for field, inner in kind.items() for path in _paths(field, inner)]

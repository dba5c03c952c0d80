"""Tables of several formats as one: what one does not have is null, and types are those that hold the values of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ultr.preparation import values


def stacked(tables: Sequence[Any]) -> Any:
    """The rows of all tables, with the columns of all; a struct has the fields that it has anywhere."""
    import ibis

    kinds: dict[str, Any] = {}
    for table in tables:
        for name, kind in table.schema().items():
            kinds[name] = _common(kinds[name], kind) if name in kinds else kind
    aligned = (
        table.select(
            **{
                name: _as(table[name], kind) if name in table.columns else ibis.null(kind)
                for name, kind in kinds.items()
            }
        )
        for table in tables
    )
    return ibis.union(*aligned)


def _common(one: Any, other: Any) -> Any:
    """The type that holds the values of two."""
    from ibis.expr import datatypes

    if one == other or other.is_null():
        return one
    if one.is_null():
        return other
    if one.is_struct() and other.is_struct():
        fields = dict(one.items())
        for name, kind in other.items():
            fields[name] = _common(fields[name], kind) if name in fields else kind
        return datatypes.Struct(fields)
    if one.is_array() and other.is_array():
        return datatypes.Array(_common(one.value_type, other.value_type))
    if one.is_timestamp() and other.is_timestamp() and one.timezone == other.timezone:
        return datatypes.Timestamp(timezone=one.timezone)
    if one.is_integer() and other.is_integer():
        return datatypes.int64
    if one.is_numeric() and other.is_numeric():
        return datatypes.float64
    return datatypes.string


def _as(column: Any, kind: Any) -> Any:
    """A column as another type; engines do not agree on how to cast a struct, so that it is put together anew."""
    import ibis

    if column.type() == kind:
        return column
    if column.type().is_struct() and kind.is_struct():
        inside = column.type().names
        return ibis.struct(
            {name: _as(column[name], field) if name in inside else ibis.null(field) for name, field in kind.items()}
        )
    # 7.0 is 7, as an id that is a number in one file and text in another.
    return values.text(column) if kind.is_string() else column.cast(kind)

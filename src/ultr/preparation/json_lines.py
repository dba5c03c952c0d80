"""JSON files without a loss: text stays text, and whole numbers of any size keep all their digits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ultr.datasets.delimited import first_line
from ultr.errors import DataError
from ultr.preparation.engine import DUCKDB, Engine
from ultr.preparation.queries import identifier, literal

_WHOLE = 2**53
"""Whole numbers are exact in float64 up to here."""
_EXACT = ("boolean", "bigint", "ubigint", "hugeint")


def read_json(engine: Engine, files: Sequence[Path], names: Sequence[str]) -> Any:
    """The table of JSON objects, one per line or in one array."""
    if engine.name != DUCKDB:
        with engine.explained():
            return engine.connection.read_json(list(names))
    form = "array" if first_line(files[0]).lstrip().startswith("[") else "newline_delimited"
    places = f"[{', '.join(literal(name) for name in names)}], format = '{form}'"
    guess = f"read_json({places}, sample_size = -1, maximum_sample_files = -1, map_inference_threshold = -1)"
    with engine.explained():
        guessed = engine.connection.con.sql(f"SELECT * FROM {guess}")
        columns = dict(zip(guessed.columns, guessed.types, strict=True))
        if list(columns) == ["json"]:
            raise DataError(f"{files[0]} holds no JSON objects; write one object a line, with the names of the columns")
        large = iter(_beyond_float(engine, columns, guess))
        types = {name: _type(kind, large) for name, kind in columns.items()}
        written = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in types.items())
        view = engine.fresh("json_lines")
        engine.connection.con.execute(
            f"CREATE TEMP VIEW {view} AS SELECT * FROM read_json({places}, columns = {{{written}}})"
        )
        return engine.connection.table(view)


def _type(kind: Any, large: Iterator[bool]) -> str:
    """The type that a value is read as; `large` tells for each float whether it has whole numbers beyond float64.

    DuckDB takes "01-02-03" for a day, and numbers mixed with text for pieces of JSON, where text has quotes.
    """
    if kind.id == "struct":
        fields = ", ".join(f"{identifier(name)} {_type(child, large)}" for name, child in kind.children)
        return f"STRUCT({fields})"
    if kind.id == "list":
        return f"{_type(kind.children[0][1], large)}[]"
    if kind.id == "double":
        return "VARCHAR" if next(large) else "DOUBLE"
    return str(kind) if kind.id in _EXACT else "VARCHAR"


def _beyond_float(engine: Engine, columns: dict[str, Any], table: str) -> list[bool]:
    sizes = [size for name, kind in columns.items() for size in _sizes(identifier(name), kind, depth=0)]
    if not sizes:
        return []
    found = engine.connection.con.execute(
        f"SELECT {', '.join(f'coalesce(max({size}) >= {_WHOLE}, false)' for size in sizes)} FROM {table}"
    ).fetchone()
    return [bool(each) for each in found]


def _sizes(value: str, kind: Any, *, depth: int) -> Iterator[str]:
    """The largest magnitude of each float inside a value, in the order of `_type`."""
    if kind.id == "double":
        yield f"abs({value})"
    elif kind.id == "struct":
        for name, child in kind.children:
            yield from _sizes(f"{value}.{identifier(name)}", child, depth=depth)
    elif kind.id == "list":
        for size in _sizes(f"v{depth}", kind.children[0][1], depth=depth + 1):
            yield f"list_max([{size} for v{depth} in {value}])"

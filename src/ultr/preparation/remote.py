"""Tables of another database, brought into DuckDB: the database only has to read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ultr import checks
from ultr.preparation.engine import Engine

POSTGRES = "postgres"
_AT_ONCE = 50_000
_VIEW = "ultr_query"


def has_table(engine: Engine, name: str) -> bool:
    """True if the other database has a table or view of this name, perhaps with its schema as in `logs.shown`."""
    return name in _tables(engine, name)


def remote_table(engine: Engine, name: str) -> Any:
    """A table of the other database by its name."""
    with engine.explained(name):
        tables = _tables(engine, name)
        schema, table = tables[checks.one_of(f"a table of {engine.remote.name}", name, tables)]
        return bring(engine, engine.remote.table(table, database=schema))


def remote_query(engine: Engine, sql: str) -> Any:
    """The rows that a query gives in the other database."""
    if engine.remote.name != POSTGRES:
        return bring(engine, engine.remote.sql(sql))
    # Ibis makes such a view too, to know the types, and fails to drop it with some versions of sqlglot.
    view = engine.fresh(_VIEW)
    engine.remote.raw_sql(f"CREATE TEMPORARY VIEW {view} AS {sql}").close()
    return bring(engine, engine.remote.table(view))


def bring(engine: Engine, expression: Any) -> Any:
    """The rows of an expression of the other database as a table of DuckDB, batch by batch."""
    name = engine.fresh("brought")
    with _reading_only(engine.remote):
        batches = engine.remote.to_pyarrow_batches(_with_plain_types(expression), chunk_size=_AT_ONCE)
        engine.connection.con.register("incoming", batches)
        engine.connection.con.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
        engine.connection.con.unregister("incoming")
    return engine.connection.table(name)


def _tables(engine: Engine, name: str) -> dict[str, tuple[str | None, str]]:
    """Schema and table of each name that a query may use; tables of another schema if `name` begins with it."""
    remote = engine.remote
    schema, dot, _ = name.partition(".")
    tables: dict[str, tuple[str | None, str]] = {}
    if dot and schema in remote.list_databases():
        tables |= {f"{schema}.{table}": (schema, table) for table in remote.list_tables(database=schema)}
    return tables | {table: (None, table) for table in remote.list_tables() if not table.startswith(_VIEW)}


def _with_plain_types(table: Any) -> Any:
    """Types that mean the same in both; the others, numbers of any length among them, as text."""
    text = {}
    for name, kind in table.schema().items():
        value = kind.value_type if kind.is_array() else kind
        plain = value.is_integer() or value.is_floating() or value.is_boolean() or value.is_string()
        bounded = value.is_decimal() and value.precision is not None
        if not (plain or bounded or value.is_timestamp() or value.is_date()):
            text[name] = table[name].cast("array<string>" if kind.is_array() else "string")
    return table.mutate(**text) if text else table


@contextmanager
def _reading_only(connection: Any) -> Iterator[None]:
    """Let PostgreSQL refuse whatever changes something, also inside of functions."""
    if connection.name != POSTGRES:
        yield
        return
    connection.con.read_only = True
    try:
        yield
    finally:
        connection.con.read_only = None

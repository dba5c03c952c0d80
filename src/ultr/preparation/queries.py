"""SQL that a user writes: one SELECT, run once, where it can change nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ultr.errors import DataError, OptionError
from ultr.preparation.engine import CLOSED, SPARK, Engine
from ultr.preparation.remote import remote_query

_RESULT = "result of ultr"
_SHORT = 40


def name_of_query(sql: str) -> str:
    """Short name of a query, for messages.

    >>> name_of_query("SELECT query, document, position, clicked FROM 'shown.parquet'")
    'the query SELECT query, document, position, clicke...'
    """
    line = " ".join(sql.split())
    return f"the query {line if len(line) <= _SHORT else f'{line[:_SHORT]}...'}"


def run_query(engine: Engine, sql: str, *, databases: Mapping[str, str] | None = None) -> Any:
    """The rows that a SELECT gives, over files, over DuckDB `databases` (name to path), or in another database.

    It runs once and its rows are kept, since a query need not give the same rows twice.
    """
    if engine.name == SPARK:
        raise OptionError(f"{name_of_query(sql)} needs the engine duckdb or a database, not spark")
    if engine.remote is not None and not databases:
        _check_one_select_of(engine, sql)
        with engine.explained(name_of_query(sql)):
            return remote_query(engine, sql.rstrip().rstrip(";"))
    file = engine.work / f"{engine.fresh('query')}.duckdb"
    with engine.explained(name_of_query(sql)):
        _run_apart(engine, sql, file, databases or {})
        attach(engine.connection.con, str(file), file.stem)
        return engine.connection.table("rows", database=(file.stem, "main"))


def _run_apart(engine: Engine, sql: str, file: Path, databases: Mapping[str, str]) -> None:
    """Run a query in a DuckDB of its own that knows no extensions and no network, and write its rows to a file."""
    import duckdb

    limits = {"memory_limit": engine.half_of_memory(), "temp_directory": str(engine.work / "spilled")}
    with duckdb.connect(":memory:", config={**CLOSED, **limits}) as connection:
        _check_one_select(connection, sql)
        for name, path in databases.items():
            attach(connection, path, name)
        connection.execute(f"ATTACH {literal(str(file))} AS {identifier(_RESULT)}")
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("SET lock_configuration = true")
        connection.execute(f"CREATE TABLE {identifier(_RESULT)}.rows AS {sql}")


def attach(connection: Any, path: str, name: str) -> None:
    """Let a connection of DuckDB read a database; Ibis does not quote its path."""
    connection.execute(f"ATTACH {literal(path)} AS {identifier(name)} (READ_ONLY)")


def _check_one_select(connection: Any, sql: str) -> None:
    parsed = json.loads(connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchone()[0])
    if parsed["error"] and parsed["error_type"] == "parser":
        if re.search(r"%[0-9A-Fa-f]{2}", sql) and not re.search(r"\s", sql):
            raise OptionError(f"{name_of_query(sql)} is taken as it is written; write spaces in place of %20")
        raise DataError(f"{name_of_query(sql)} is not understood by duckdb: {parsed['error_message']}; correct it")
    _check_count(sql, 0 if parsed["error"] else len(parsed["statements"]))


def _check_one_select_of(engine: Engine, sql: str) -> None:
    """The same for the dialect of another back end."""
    import sqlglot
    from sqlglot import expressions

    try:
        statements = [each for each in sqlglot.parse(sql, dialect=engine.remote.dialect) if each is not None]
    except sqlglot.errors.SqlglotError as error:
        why = str(error).splitlines()[0]
        raise DataError(f"{name_of_query(sql)} is not understood by {engine.remote.name}: {why}; correct it") from error
    # PostgreSQL lets a SELECT make a table (INTO), and change others by the way (WITH ... AS (DELETE ...)).
    changes = (expressions.Into, expressions.DML, expressions.DDL, expressions.Command)
    queries = [
        each
        for each in statements
        if isinstance(each, expressions.Query)
        and not any(isinstance(node, changes) and not isinstance(node, expressions.Query) for node in each.walk())
    ]
    _check_count(sql, len(queries) if len(queries) == len(statements) else 0)


def _check_count(sql: str, selects: int) -> None:
    if selects != 1:
        many = f"{selects} of them" if selects else "something else"
        raise OptionError(f"{name_of_query(sql)} must be one SELECT statement, got {many}; nothing else is run")


def literal(text: str) -> str:
    """A text as it is written in SQL."""
    from sqlglot import expressions

    return str(expressions.Literal.string(text).sql("duckdb"))


def identifier(name: str) -> str:
    """A name as it is written in SQL."""
    from sqlglot import expressions

    return str(expressions.to_identifier(name, quoted=True).sql("duckdb"))

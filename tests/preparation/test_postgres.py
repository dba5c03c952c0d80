from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from tests.preparation import postgres
from tests.preparation.test_log import GOOD, GOOD_FEATURES, frame, page, read_with_warning

from ultr.errors import DataError, MissingExtraError, OptionError
from ultr.preparation.engine import Engine, connect
from ultr.preparation.log import prepare, read_log
from ultr.preparation.sources import open_table

pytestmark = pytest.mark.skipif(postgres.why_not() is not None, reason=str(postgres.why_not()))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with postgres.server() as address:
        run(address, "CREATE SCHEMA logs", "CREATE TABLE changed (v int)", "INSERT INTO changed VALUES (1)")
        fill(address, "shown", frame(GOOD))
        run(address, "CREATE TABLE logs.shown AS SELECT * FROM shown", 'CREATE TABLE "Odd; ""name" AS SELECT 7 AS v')
        yield address


def run(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements, and give the rows of the last if it is a query."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def fill(url: str, name: str, table: pyarrow.Table) -> None:
    """Write an Arrow table as one of PostgreSQL."""
    import psycopg

    names = {pyarrow.string(): "text", pyarrow.int64(): "bigint", pyarrow.float64(): "float8", pyarrow.bool_(): "bool"}
    names |= {pyarrow.timestamp("us", "UTC"): "timestamptz", pyarrow.list_(pyarrow.string()): "text[]"}
    columns = ", ".join(f'"{field.name}" {names[field.type]}' for field in table.schema)
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE {name} ({columns})".encode())
        with cursor.copy(f"COPY {name} FROM STDIN".encode()) as copy:
            for row in table.to_pylist():
                copy.write_row(list(row.values()))


@contextmanager
def opened(url: str, work: Path) -> Iterator[Engine]:
    work.mkdir()
    with connect(url, work, memory="1GB") as engine:
        yield engine


def rows(url: str, work: Path, log: str) -> list[dict[str, Any]]:
    with opened(url, work) as engine:
        found: list[dict[str, Any]] = engine.fetch(open_table(engine, log)).to_pylist()
        return found


def test_a_log_in_postgresql_gives_the_same_rows_as_one_in_files(url: str, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    log = []
    for number in range(60):
        query = "ab"[random.integers(2)]
        documents = [name for name in "xyz" if (query, name) in GOOD_FEATURES]
        order = "".join(random.permutation(documents))
        clicks = "".join(random.choice(["0", "1"], size=len(order)))
        log += page(2**60 + number, query, order, clicks, ["phone", "désk", "phone", None][random.integers(4)])
    log[0] |= {"position": 0}
    log[5] |= {"click": None}
    days = [f"2024-02-{row['impression'] % 28 + 1:02}T23:{row['position']:02}:59.000001-05:00" for row in log]
    times = pyarrow.array(days).cast(pyarrow.timestamp("us", "UTC"))
    grades = {"ax": "3", "ay": "1.33333", "az": "3.0", "bx": "-1", "by": ""}
    labels = [grades[row["query"] + row["document"]] for row in log]
    table = frame(log).append_column("day", times).append_column("grade", [labels])
    known = [
        {"query": q, "document": d, "bm25": v, "age": None if d == "x" else v}
        for (q, d), v in sorted(GOOD_FEATURES.items())
    ]
    known[0]["bm25"] = float("inf")
    features = pyarrow.Table.from_pylist(known)
    for name, each in {"log": table, "features": features}.items():
        parquet.write_table(each, tmp_path / f"{name}.parquet")
        fill(url, name, each)
    options: dict[str, Any] = {
        "factors": ["device"],
        "rare": 12,
        "time": "day",
        "periods": 4,
        "label": "grade",
        "unjudged": ["-1"],
        "pairs": True,
    }
    one = prepare(tmp_path / "log.parquet", tmp_path / "one", features_from=tmp_path / "features.parquet", **options)
    other = prepare("log", tmp_path / "other", engine=url, features_from="features", **options)
    mixed, _ = read_with_warning(
        "sql:SELECT * FROM log;", engine=url, features_from=tmp_path / "features.parquet", **options
    )
    assert one.log.fingerprint() == other.log.fingerprint() == mixed.fingerprint()
    assert one.summary.as_json() | {"source": "log"} == other.summary.as_json()
    assert one.summary.rows.aside > 3
    aside = [
        sorted(map(str, parquet.read_table(tmp_path / name / "rejected.parquet").to_pylist()))
        for name in ("one", "other")
    ]
    assert aside[0] == aside[1]


def test_pages_with_lists_are_read_from_postgresql(url: str, tmp_path: Path) -> None:
    pages = {
        "query": ["a", "a", "b"],
        "docs": [["x", "y", "z"], ["x", "y", "z"], ["y", "x"]],
        "clicks": ["100", "010", "01"],
    }
    fill(url, "pages", pyarrow.table(pages))
    assert read_log("pages", engine=url).fingerprint() == read_log(frame(GOOD)).fingerprint()


def test_tables_are_found_by_name_and_by_schema(url: str, tmp_path: Path) -> None:
    assert rows(url, tmp_path / "1", 'Odd; "name') == [{"v": 7}]
    with opened(url, tmp_path / "2") as engine:
        for name in ("shown", "logs.shown", "sql:SELECT * FROM logs.shown"):
            assert engine.count(open_table(engine, name)) == len(GOOD)
        for name, meant in {"show": "shown", "logs.show": "logs.shown", "log.shown": "shown"}.items():
            with pytest.raises(OptionError, match=rf"a table of postgres must be one of .*did you mean '{meant}'"):
                open_table(engine, name)


def test_values_of_any_type_are_brought_without_a_loss(url: str, tmp_path: Path) -> None:
    sql = """
        SELECT 12345678901234567890123::numeric AS large, 9007199254740993::bigint AS whole,
               1.25::numeric(10, 2) AS money,
               '{"a": {"b": 1}}'::json AS nested, '10.0.0.1'::inet AS address, interval '1 day' AS span,
               '00000000-0000-0000-0000-000000000001'::uuid AS id, ARRAY[1.5, 2]::numeric[] AS prices,
               timestamptz '2024-01-31 23:30:00-05' AS moment, NULL::text AS nothing, 'NaN'::float8 AS no_number
    """
    (found,) = rows(url, tmp_path / "work", f"sql:{sql}")
    assert (found["large"], found["whole"], float(found["money"])) == ("12345678901234567890123", 2**53 + 1, 1.25)
    assert (found["nested"], found["address"]) == ('{"a": {"b": 1}}', "10.0.0.1/32")
    assert (found["id"], found["prices"]) == ("00000000-0000-0000-0000-000000000001", ["1.5", "2"])
    assert found["moment"].isoformat() == "2024-02-01T04:30:00+00:00"
    assert found["nothing"] is None
    assert np.isnan(found["no_number"])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1; DELETE FROM changed",
        "DELETE FROM changed RETURNING v",
        "WITH gone AS (DELETE FROM changed RETURNING v) SELECT * FROM gone",
        "SELECT * INTO copied FROM changed",
        "COPY changed TO STDOUT",
        "SET work_mem = '1MB'",
        "",
    ],
)
def test_a_query_of_postgresql_must_be_one_select(sql: str, url: str, tmp_path: Path) -> None:
    with opened(url, tmp_path / "work") as engine, pytest.raises(OptionError, match="must be one SELECT statement"):
        open_table(engine, f"sql:{sql}")
    assert run(url, "SELECT count(*) FROM changed") == [(1,)]


def test_a_function_that_changes_something_is_refused_by_the_server(url: str, tmp_path: Path) -> None:
    run(url, "CREATE FUNCTION change() RETURNS int LANGUAGE sql AS 'DELETE FROM changed RETURNING v'")
    with opened(url, tmp_path / "work") as engine, pytest.raises(DataError, match="in a read-only transaction"):
        open_table(engine, "sql:SELECT change() AS v")
    assert run(url, "SELECT count(*) FROM changed") == [(1,)]


def test_what_is_wrong_with_a_database_is_one_sentence(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OptionError, match="cannot connect to the engine postgres: ") as caught:
        read_log("shown", engine="postgres://me:secret@/postgres?host=/nowhere")
    assert not re.search("secret|\n", str(caught.value))
    with pytest.raises(DataError, match=r"the query SELECT nothing FROM shown cannot be read .*column .nothing. does"):
        read_log("sql:SELECT nothing FROM shown", engine=url)
    with pytest.raises(DataError, match=r"the query SELECT \(1 is not understood by postgres: .*; correct it"):
        read_log("sql:SELECT (1", engine=url)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "ibis.backends.postgres", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[postgres\]'"):
        read_log("shown", engine=url)

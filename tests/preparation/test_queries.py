from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pytest
from pyarrow import csv, parquet
from tests.preparation.test_log import GOOD, frame

from ultr.errors import DataError, OptionError
from ultr.preparation.engine import Engine, connect
from ultr.preparation.log import prepare, read_log
from ultr.preparation.sources import name_of, open_table


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log as companies have it, what was shown in CSV files and what was clicked in Parquet, and a database."""
    table = frame(GOOD)
    (tmp_path / "shown").mkdir()
    shown = table.drop(["click"])
    csv.write_csv(shown.slice(0, 3), tmp_path / "shown" / "1.csv")
    csv.write_csv(shown.slice(3), tmp_path / "shown" / "2.csv")
    clicked = table.filter(pyarrow.compute.equal(table["click"], 1)).select(["impression", "document"])
    parquet.write_table(clicked, tmp_path / "clicks.parquet")
    parquet.write_table(table, tmp_path / "log.parquet")
    with duckdb.connect(str(tmp_path / "log.db")) as connection:
        connection.execute(f"CREATE TABLE shown AS FROM '{tmp_path / 'log.parquet'}'")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@contextmanager
def opened(work: Path) -> Iterator[Engine]:
    work.mkdir()
    with connect("duckdb", work, memory="1GB") as engine:
        yield engine


def rows(work: Path, log: str) -> list[dict[str, Any]]:
    with opened(work) as engine:
        found: list[dict[str, Any]] = engine.fetch(open_table(engine, log)).to_pylist()
        return found


def test_files_are_joined_by_a_query_without_a_database(folder: Path) -> None:
    sql = """
        SELECT s.*, c.document IS NOT NULL AS click
        FROM 'shown/*.csv' AS s LEFT JOIN 'clicks.parquet' AS c USING (impression, document);
    """
    assert read_log(f"sql:{sql}").fingerprint() == read_log(frame(GOOD)).fingerprint()


@pytest.mark.parametrize("place", ["sql:", "duckdb:log.db?sql="])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM 'log.parquet'; COPY (SELECT 42) TO 'written.csv'",
        "SELECT 1; SELECT 2",
        "COPY (SELECT 42) TO 'written.csv'",
        "CREATE TABLE written AS SELECT 42",
        "PRAGMA version",
        "SET memory_limit = '1GB'",
        "ATTACH 'written.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "CALL pragma_version()",
        "EXPLAIN SELECT 1",
        "",
        "-- nothing",
    ],
)
def test_whatever_is_not_one_select_is_refused_and_not_run(sql: str, place: str, folder: Path) -> None:
    before = sorted(os.listdir(folder))
    with pytest.raises(
        OptionError, match=r"must be one SELECT statement, got (2 of them|something else); nothing else"
    ):
        read_log(place + sql)
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT 'a;b' AS v -- and; so on", "a;b"),
        ("SELECT 'it''s ' || 1 + 1 AS v", "it's 2"),
        ("SELECT '%20&x=1?sql=2' AS v", "%20&x=1?sql=2"),
        ("SELECT count(*)::VARCHAR AS v FROM 'it''s \"so\" [1].parquet'", "8"),
        ("FROM (VALUES ('x')) AS t(v);", "x"),
        ("WITH a AS (SELECT 'y' AS v) SELECT * FROM a", "y"),
        ("SELECT (sum(10 ** 18)::HUGEINT * 10000 + 1)::VARCHAR AS v FROM range(3)", "30000000000000000000001"),
    ],
)
def test_a_query_is_taken_as_it_is_written(sql: str, value: str, folder: Path) -> None:
    # DuckDB takes a name in a query for a pattern, so that the bracket stands for 1 alone.
    parquet.write_table(frame(GOOD), folder / 'it\'s "so" 1.parquet')
    for number, place in enumerate(("sql:", "duckdb:log.db?sql=")):
        assert rows(folder / f"work{number}", place + sql) == [{"v": value}]


def test_a_database_is_found_by_any_name_and_its_tables_too(folder: Path) -> None:
    for name in ("what?.db", "it's.db", "50%20.db"):
        with duckdb.connect(name) as connection:
            connection.execute("""CREATE TABLE "a&b+c%20?" AS SELECT 7 AS v""")
        places = (f"duckdb:{name}?table=a&b+c%20?", f"""duckdb:{name}?sql=SELECT v FROM log."a&b+c%20?" """)
        for number, place in enumerate(places):
            assert rows(folder / f"{name} {number}", place) == [{"v": 7}]


def test_a_log_may_be_written_to_a_folder_of_any_name(folder: Path) -> None:
    for name in ("what?", "it's [1] *", 'so "it" is; --'):
        assert prepare("sql:FROM 'log.parquet'", name).log.fingerprint() == read_log(frame(GOOD)).fingerprint()


def test_a_query_cannot_change_the_database(folder: Path) -> None:
    with opened(folder / "work") as engine:
        before = (folder / "log.db").read_bytes()
        table = open_table(engine, "duckdb:log.db?sql=SELECT * FROM log.shown")
        assert engine.count(table) == 8
    assert (folder / "log.db").read_bytes() == before


def test_the_rows_of_a_query_are_the_same_whenever_they_are_read(folder: Path) -> None:
    with opened(folder / "work") as engine:
        table = open_table(engine, "sql:SELECT random() AS v FROM range(100)")
        assert sorted(engine.fetch(table)["v"].to_pylist()) == sorted(engine.fetch(table)["v"].to_pylist())


def test_nothing_is_fetched_from_a_network(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        for sql in (
            f"SELECT * FROM 'http://127.0.0.1:{port}/log.parquet'",
            f"SELECT * FROM read_csv('http://127.0.0.1:{port}/log.csv')",
            "SELECT * FROM 's3://bucket/log.parquet'",
            "SELECT * FROM sqlite_scan('a.db', 'b')",
        ):
            with pytest.raises(DataError, match=r"^the query SELECT .* needs an extension .*: give files of this mach"):
                read_log(f"sql:{sql}")
        with pytest.raises(TimeoutError):
            server.accept()
    assert rows(folder / "work", "sql:SELECT 'http://a.b/c' AS v") == [{"v": "http://a.b/c"}]


def test_no_variable_of_the_program_is_a_table(folder: Path) -> None:
    shown = frame(GOOD)
    with pytest.raises(DataError, match="Table with name shown does not exist"):
        read_log("sql:SELECT * FROM shown")
    assert shown.num_rows


def test_a_query_that_fails_is_named_in_short(folder: Path) -> None:
    sql = "SELECT   impression,\n query,\n document, position, nothing FROM 'log.parquet'"
    with pytest.raises(DataError, match="Binder Error") as caught:
        read_log(f"sql:{sql}")
    assert str(caught.value).startswith("the query SELECT impression, query, document, posi... cannot be read")
    assert "\n" not in str(caught.value)
    assert name_of(f"duckdb:log.db?sql={sql}") == "the query SELECT impression, query, document, posi... of log.db"
    assert name_of("duckdb:log.db?table=shown") == "duckdb:log.db?table=shown"
    with pytest.raises(OptionError, match="is taken as it is written; write spaces in place of %20"):
        read_log("sql:SELECT%20*%20FROM%20'log.parquet'")
    with pytest.raises(DataError, match='is not understood by duckdb: syntax error at or near "SELEC"; correct it'):
        read_log("sql:SELEC * FROM 'log.parquet'")

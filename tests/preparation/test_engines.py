from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import csv, parquet
from tests.preparation.test_log import GOOD_FEATURES, frame, page
from tests.preparation.test_ubi import EVENTS, QUERIES, event, write

from ultr.errors import DataError, MissingExtraError
from ultr.preparation import engine as engines
from ultr.preparation.events import EventsSpec, join
from ultr.preparation.log import prepare, read_log
from ultr.preparation.sources import open_table
from ultr.preparation.ubi import read_ubi

needs_spark = pytest.mark.skipif(
    find_spec("pyspark") is None or shutil.which("java") is None,
    reason="the engine spark needs pyspark (pip install '.[spark]') and Java 17 or newer",
)


@pytest.fixture
def session() -> Iterator[None]:
    """A session of the caller that loses no time on small data: one partition, nothing compiled, a plain JVM."""
    from pyspark.sql import SparkSession

    options: dict[str, bool | float | int | str | None] = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.default.parallelism": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    spark = SparkSession.builder.master("local[1]").config(map=options).getOrCreate()
    yield
    spark.stop()


@needs_spark
@pytest.mark.usefixtures("session")
@pytest.mark.filterwarnings("ignore")
def test_spark_gives_the_same_rows_as_duckdb(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    rows = []
    for number in range(60):
        query = "ab"[random.integers(2)]
        documents = [name for name in "xyz" if (query, name) in GOOD_FEATURES]
        order = "".join(random.permutation(documents))
        clicks = "".join(random.choice(["0", "1"], size=len(order)))
        rows += page(number, query, order, clicks, random.choice(["phone", "desk", "watch"], p=[0.6, 0.35, 0.05]))
    rows[0] |= {"position": 0}
    rows[5] |= {"click": 2}
    days = [f"2024-02-{row['impression'] % 28 + 1:02}T0{row['position']}:30:00.5+02:00" for row in rows]
    days[-1], days[9] = "", "2024-02-30"
    grades = {"ax": "3", "ay": "1.33333", "az": "3.0", "bx": "-1", "by": ""}
    labels = [grades[row["query"] + row["document"]] for row in rows]
    labels[20] += "1"
    table = frame(rows).append_column("day", [days]).append_column("grade", [labels])
    csv.write_csv(table, tmp_path / "log.csv")
    # Document x of a has no features, z has infinity; others have gaps, of which another row fills one.
    features = ["a,y,2,,5,NA", "a,z,3,1,inf,1", "b,x,4,,3,2", "b,x,4,1.5,,2", "b,y,5,NaN,,7"]
    (tmp_path / "features.csv").write_text("\n".join(["query,document,bm25,age,size,price", *features]) + "\n")
    options: dict[str, Any] = {
        "factors": ["device"],
        "rare": 5,
        "time": "day",
        "periods": 4,
        "label": "grade",
        "unjudged": ["-1"],
        "pairs": True,
        "features_from": tmp_path / "features.csv",
    }
    one, other = (
        prepare(tmp_path / "log.csv", tmp_path / engine, engine=engine, memory="1GB", **options)
        for engine in ("duckdb", "spark")
    )
    assert one.log.fingerprint() == other.log.fingerprint()
    np.testing.assert_array_equal(one.log.features, [[2, np.nan, 5, np.nan], [4, 1.5, 3, 2], [5, np.nan, np.nan, 7]])
    assert len(one.summary.periods) == 4
    assert one.summary.as_json() | {"engine": "spark"} == other.summary.as_json()
    aside = [
        sorted(map(str, parquet.read_table(tmp_path / engine / "rejected.parquet").to_pylist()))
        for engine in ("duckdb", "spark")
    ]
    assert aside[0] == aside[1]
    assert len(aside[0]) > 3


@needs_spark
@pytest.mark.filterwarnings("ignore")
def test_spark_reads_numbers_as_days_and_documents_that_stand_twice_on_a_page_as_duckdb_does(tmp_path: Path) -> None:
    rows = [
        {
            "page": page,
            "q": "ab"[page % 2],
            "doc": doc,
            "position": place,
            "click": place % 2,
            "at": 1_709_251_198 + page,
        }
        for page in range(4)
        for place, doc in enumerate("xyx" if page == 1 else "xy", start=1)
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "log.parquet")
    one, other = (
        prepare(
            tmp_path / "log.parquet",
            tmp_path / engine,
            engine=engine,
            memory="1GB",
            impression=["page"],
            query="q",
            document="doc",
            time="at",
            periods="day",
            rare=0,
        )
        for engine in ("duckdb", "spark")
    )
    assert one.log.period_names == ("2024-02-29", "2024-03-01")
    assert one.log.fingerprint() == other.log.fingerprint()
    assert one.summary.as_json() | {"engine": "spark"} == other.summary.as_json()


@needs_spark
@pytest.mark.filterwarnings("ignore")
def test_spark_reads_pages_with_lists_as_duckdb_does(tmp_path: Path) -> None:
    table = pyarrow.table(
        {
            "query": ["a", "b", "b", "a", "a"],
            "docs": ["x|y", "y|x", "x|y", "x|y", "z|y|x"],
            "clicks": [[1], [0, 1], [1, 1, 0], [0, 1], [0, 0, 1]],
            "labels": [[1.0, 2.0], [], [3.0, 0.5], None, [float("nan"), 3.0, 1.0]],
            "kinds": [["ad", "web"], ["web", "web"], [], None, ["ad", "web", "web"]],
            "day": [date(2024, 1, number) for number in (1, 1, 2, 2, 3)],
        }
    )
    parquet.write_table(table, tmp_path / "log.parquet")
    (tmp_path / "names.toml").write_text('factors = ["kinds"]\nlabel = "labels"\ntime = "day"\nseparator = "|"')
    one, other = (
        prepare(
            tmp_path / "log.parquet",
            tmp_path / engine,
            engine=engine,
            memory="1GB",
            columns=tmp_path / "names.toml",
            rare=0,
        )
        for engine in ("duckdb", "spark")
    )
    assert one.log.fingerprint() == other.log.fingerprint()
    assert one.summary.as_json() | {"engine": "spark"} == other.summary.as_json()
    # Pages 0 and 2 have clicks of another length; y of query a is 2 on the first page and 3 on the last.
    assert one.summary.pages.aside == 2
    assert (one.summary.grades, one.summary.judged, one.summary.conflicting_labels) == (("0.5", "1", "3"), 3, 1)


@needs_spark
@pytest.mark.usefixtures("session")
@pytest.mark.filterwarnings("ignore")
def test_spark_joins_events_as_duckdb_does(tmp_path: Path) -> None:
    queries = [
        {**query, "timestamp": 1717527761998 + 1_500 * number, "query_attributes": {"device": "phone"}}
        for number, query in enumerate(QUERIES)
    ]
    later = {"query_id": "4", "user_query": "phone", "query_response_hit_ids": ["v", "w"], "timestamp": 1717527769998}
    write(tmp_path, "ubi_queries", [*queries, later])
    happened = [*EVENTS, event("1", "click", "x", 0), event("4", "click", "w", 11)]
    write(tmp_path, "ubi_events", [{**each, "at": f"2024-06-04T19:02:4{n}.5Z"} for n, each in enumerate(happened)])
    (tmp_path / "shown.csv").write_text(
        "".join(f"{line}\n" for line in ("q,d,t", "1,x,1717527760000", "1,x,1717527761500"))
    )
    (tmp_path / "clicks.csv").write_text("q,d,t\n1,x,2024-06-04T19:02:41.499999Z\n1,x,2024-06-04T19:02:41.5Z\n1,y,\n")
    (tmp_path / "written").mkdir()
    texts = ('["a, b", "é"]', "c,d", "[e, f]")
    pages = [{"query_id": str(n), "user_query": "q", "query_response_hit_ids": each} for n, each in enumerate(texts)]
    write(tmp_path / "written", "ubi_queries", pages)
    write(tmp_path / "written", "ubi_events", [event("0", "click", "a, b")])
    results: list[Any] = []
    for name in ("duckdb", "spark"):
        (tmp_path / name).mkdir()
        with engines.connect(name, tmp_path / name, memory="1GB") as engine:
            ubi = read_ubi(engine, tmp_path, others=("query_attributes.device", "timestamp"))
            clicks = open_table(engine, tmp_path / "clicks.csv")
            spec = EventsSpec(table=clicks, name="clicks", keys=("q",), document="d", time="t", window=60)
            timed = join(engine, open_table(engine, tmp_path / "shown.csv"), spec)
            written = read_ubi(engine, tmp_path / "written")
            tables = [
                sorted(engine.fetch(each.table).to_pylist(), key=str) for each in (ubi.joined, timed, written.joined)
            ]
            results.append([tables, ubi.notes, ubi.joined.unmatched, ubi.joined.duplicates, timed.unmatched])
    assert results[0] == results[1]
    (_, shown, written), notes, elsewhere, _, missed = results[0]
    assert [row["document"] for row in written] == ["a, b", "é", "c", "d", "e", "f"]
    assert sorted((row["t"], row["click"]) for row in shown) == [("1717527760000", 1), ("1717527761500", 1)]
    assert (elsewhere, missed) == ({"click": 1}, {"click": 1})
    assert any(note.startswith("1 result page begins further down") for note in notes)


def test_an_engine_that_is_not_installed_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"needs ibis; install it with: pip install '\.\[prepare\]'"):
        read_log(frame(page(1, "a", "xy", "01")))


def test_an_interrupted_query_is_an_interrupt_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr("ibis.backends.duckdb.Backend.create_table", interrupted)
    with pytest.raises(KeyboardInterrupt):
        prepare(frame(page(1, "a", "xy", "01")), tmp_path / "log")
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_another_program_writes_is_said_to_be_open(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    hold = f"import duckdb, sys; held = duckdb.connect({str(path)!r}); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(DataError, match=r"is open elsewhere .*; close it there or copy it"):
            read_log(f"duckdb:{path}?table=shown")
        other.communicate()

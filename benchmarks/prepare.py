"""How fast a raw log is collapsed: `python -m benchmarks.prepare [--rows 1000000 ...] [--memory 4GB] [--features 8]`.

Writes a log of so many rows as Parquet, ten documents a page, prepares it in a fresh process and prints a table: time,
the processor time of plain SQL that does the same in another process, the peak of resident memory, what lay on disk on
the way, and how many impressions there are for each list that is left. The SQL finds the pages without a fault of those
that this log has, the lists that they show, their clicks, the features of each document and the rows that are put
aside, and writes all of it; that both give as many of each is checked. Queries are texts that follow Zipf's law, each
has a few rankings, one of them common, the device is a bias factor, and one row in a thousand has a fault. With
`--second-table`, the features come from a table beside it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from math import nan
from pathlib import Path
from time import perf_counter, sleep

import numpy as np
import numpy.typing as npt
import pyarrow
from pyarrow import parquet

from benchmarks.measurement import Measurement, write

POSITIONS = 10
CHUNK = 100_000
"""Pages written at once."""
QUERIES = 1_000_000
RANKINGS = (0.7, 0.2, 0.07, 0.03)
DEVICES = {"phone": 0.6, "desk": 0.35, "tablet": 0.05}
FAULTY = 0.001
# `ru_maxrss` of a child starts at that of its parent, so the child asks for its own peak, which exec resets.
_CHILD = """
import resource, sys, time
from benchmarks.child import memory as memory_of
from ultr.preparation.log import prepare

source, second, out, memory, engine, *features = sys.argv[1:]
started = time.perf_counter()
options = {"features_from": second} if second else {"features": features}
prepared = prepare(source, out, factors=["device"], memory=memory, engine=engine, **options)
spent = time.perf_counter() - started
peak = memory_of()["VmHWM"]
used = resource.getrusage(resource.RUSAGE_SELF)
summary = prepared.summary
print(spent, used.ru_utime + used.ru_stime, peak, summary.collapse_ratio, prepared.log.fingerprint())
print(prepared.log.lists, summary.clicks.kept, summary.documents, summary.rows.aside)
"""
_PLAIN = """
import resource, sys
import duckdb

source, out, memory, *features = sys.argv[1:]
base = duckdb.connect(f"{out}.duckdb", config={"memory_limit": memory, "preserve_insertion_order": "false"})
base.execute("SET enable_progress_bar = false")
names = ", ".join(features)
of_rows = ", ".join(f"any_value(r.{name}) AS {name}" for name in features)
same = " AND ".join(f"d.{name} IS NOT DISTINCT FROM s.{name}" for name in features)
bits = f"hash(position, doc_id, device, {names})"
for query in (
    f'''CREATE TEMP TABLE pages AS SELECT impression_id AS page, min(query) AS query, max(query) AS last,
        count(*) AS length, min(position) AS top, sum({bits} & 68719476735)::BIGINT AS one,
        sum(({bits} >> 28) & 68719476735)::BIGINT AS two FROM '{source}' GROUP BY ALL''',
    '''CREATE TEMP TABLE lists AS SELECT query, one, two, length, min(page) AS list, count(*) AS impressions
        FROM pages WHERE top >= 1 AND query = last GROUP BY ALL''',
    f'''CREATE TEMP TABLE shown AS SELECT l.list, r.doc_id, r.position, any_value(l.impressions) AS impressions,
        any_value(r.query) AS query, any_value(r.device) AS device, sum((r.click > 0)::INT) AS clicks,
        sum(r.click) AS events, {of_rows}
        FROM '{source}' r JOIN pages p ON r.impression_id = p.page JOIN lists l
        ON l.query = p.query AND l.one = p.one AND l.two = p.two AND l.length = p.length
        WHERE p.top >= 1 AND p.query = p.last GROUP BY l.list, r.doc_id, r.position''',
    f'''CREATE TEMP TABLE documents AS SELECT *, row_number() OVER (ORDER BY query, doc_id, {names}) AS row
        FROM (SELECT DISTINCT query, doc_id, {names} FROM shown)''',
    f'''COPY (SELECT s.list, s.impressions, d.row, s.position, s.device, s.clicks, s.events FROM shown s
        JOIN documents d ON d.query = s.query AND d.doc_id = s.doc_id AND {same} ORDER BY s.list, s.position)
        TO '{out}.shown.parquet' ''',
    f"COPY (SELECT * FROM documents ORDER BY row) TO '{out}.documents.parquet'",
    f'''COPY (SELECT r.impression_id, r.query, r.doc_id, r.position, r.click, r.device,
        if(p.top < 1, 'position below 1', 'two queries on one page') AS reason
        FROM '{source}' r JOIN pages p ON r.impression_id = p.page WHERE p.top < 1 OR p.query <> p.last)
        TO '{out}.rejected.parquet' ''',
):
    base.execute(query)
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime)
counts = "count(DISTINCT list), sum(clicks)::BIGINT, count(DISTINCT row)"
counts = base.execute(f"SELECT {counts} FROM '{out}.shown.parquet'").fetchone()
print(*counts, *base.execute(f"SELECT count(*) FROM '{out}.rejected.parquet'").fetchone())
"""
HEADER = (
    "|        rows | log, GB | seconds | CPU seconds | of plain SQL | ratio | peak memory, GB | on disk, GB "
    "| put aside | lists | impressions a list |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Result:
    """One measurement."""

    rows: int
    size: int
    seconds: float
    processor: float
    plain: float
    """Processor time of plain SQL."""
    peak: int
    disk: int
    aside: int
    ratio: float
    lists: int
    fingerprint: str

    def __str__(self) -> str:
        return (
            f"| {self.rows:>11,} | {self.size / 1e9:.2f} | {self.seconds:.1f} | {self.processor:.1f} "
            f"| {self.plain:.1f} | {self.processor / self.plain:.2f} | {self.peak / 1e9:.2f} | {self.disk / 1e9:.2f} "
            f"| {self.aside:,} | {self.lists:,} | {self.ratio:.2f} |"
        )

    def measurements(self) -> list[Measurement]:
        """The numbers that tell how it did."""
        what = f"{self.rows:,} rows"
        return [
            Measurement(f"{what}, time", self.seconds, "s"),
            Measurement(f"{what}, processor time", self.processor, "s"),
            Measurement(f"{what}, rate", self.rows / self.seconds, "rows/s"),
            Measurement(
                f"{what}, processor time over that of plain SQL", self.processor / self.plain, "", headline=True
            ),
            Measurement(f"{what}, peak memory", self.peak / 1e6, "MB", headline=True),
            Measurement(f"{what}, largest size of files on the way", self.disk / 1e6, "MB"),
        ]


def write_log(path: Path, rows: int, *, features: int, seed: int = 0) -> None:
    """A log of one row for each shown document, a chunk at a time."""
    generator = np.random.default_rng(seed)
    pages = max(rows // POSITIONS, 1)
    examined = 1 / np.arange(1, POSITIONS + 1)
    chances = np.cumsum(1 / np.arange(1, QUERIES + 1))
    place = np.arange(POSITIONS)
    writer = None
    for start in range(0, pages, CHUNK):
        count = min(CHUNK, pages - start)
        queries = np.searchsorted(chances / chances[-1], generator.random(count))
        ranking = generator.choice(len(RANKINGS), p=RANKINGS, size=count)
        # Each ranking of a query is its documents rotated by so many places.
        documents = (queries[:, None] * POSITIONS + (place + ranking[:, None]) % POSITIONS).ravel()
        relevance = (documents * 2654435761 % 1000) / 1000
        clicks = (generator.random(documents.size) < 0.6 * np.tile(examined, count) * relevance).astype(np.int8)
        positions = np.tile(place + 1, count)
        clicks[generator.random(documents.size) < FAULTY / 2] = 2
        positions[generator.random(documents.size) < FAULTY / 2 / POSITIONS] = 0
        device = generator.choice(list(DEVICES), p=list(DEVICES.values()), size=count)
        columns: dict[str, object] = {
            "impression_id": np.repeat(np.arange(start, start + count), POSITIONS),
            "query": _texts(np.repeat(queries, POSITIONS)),
            "doc_id": documents,
            "position": positions,
            "click": clicks,
            "device": pyarrow.array(np.repeat(device, POSITIONS)),
        }
        table = pyarrow.table(columns | _features(documents, features))
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def write_features(path: Path, *, features: int) -> None:
    """The features of every document of every query that a log may hold."""
    writer = None
    for start in range(0, QUERIES, CHUNK):
        queries = np.repeat(np.arange(start, min(start + CHUNK, QUERIES)), POSITIONS)
        documents = queries * POSITIONS + np.tile(np.arange(POSITIONS), len(queries) // POSITIONS)
        table = pyarrow.table({"query": _texts(queries), "doc_id": documents, **_features(documents, features)})
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _texts(queries: npt.NDArray[np.int64]) -> pyarrow.Array:
    known, numbers = np.unique(queries, return_inverse=True)
    texts = pyarrow.array([f"what is {number:x}" for number in known.tolist()])
    return texts.take(pyarrow.array(numbers))


def _features(documents: npt.NDArray[np.int64], count: int) -> dict[str, object]:
    return {f"feature_{n}": ((documents * (n + 3) % 997) / 997).astype(np.float32) for n in range(count)}


def measure(
    rows: int, *, memory: str = "4GB", features: int = 8, engine: str = "duckdb", second_table: bool = False
) -> Result:
    """Write a log and prepare it in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        source, second = Path(folder) / "log.parquet", Path(folder) / "features.parquet"
        started = perf_counter()
        write_log(source, rows, features=0 if second_table else features)
        if second_table:
            write_features(second, features=features)
        print(f"{rows:,} rows written in {perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
        names = [f"feature_{number}" for number in range(features)]
        arguments = [source, second if second_table else "", Path(folder) / "out", memory, engine, *names]
        command = [sys.executable, "-c", _CHILD, *map(str, arguments)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        disk = 0
        while child.poll() is None:
            disk = max(disk, _size(folder, ".out-*/new/.work/**/*"))
            sleep(0.5)
        printed = child.communicate()[0]
        if child.returncode:
            raise SystemExit(child.returncode)
        seconds, processor, peak, ratio, fingerprint, *counts = printed.split()
        size = _size(folder, "*.parquet")
        plain = nan
        if not second_table:
            arguments = [source, Path(folder) / "plain", memory, *names]
            command = [sys.executable, "-c", _PLAIN, *map(str, arguments)]
            first, *same = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            plain = float(first)
            if same != counts:
                raise SystemExit(f"prepare and plain SQL disagree: {counts} and {same} lists, clicks, documents, aside")
        return Result(
            rows,
            size,
            float(seconds),
            float(processor),
            plain,
            int(peak),
            disk,
            aside=int(counts[3]),
            ratio=float(ratio),
            lists=int(counts[0]),
            fingerprint=fingerprint,
        )


def _size(folder: str, pattern: str) -> int:
    total = 0
    for path in Path(folder).glob(pattern):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--features", type=int, default=8)
    parser.add_argument("--second-table", action="store_true")
    parser.add_argument("--engine", default="duckdb")
    parser.add_argument("--fingerprint", action="store_true", help="also print the name of the exact result")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    options = parser.parse_args()
    found = []
    print(HEADER, flush=True)
    for rows in options.rows:
        result = measure(
            rows,
            memory=options.memory,
            features=options.features,
            engine=options.engine,
            second_table=options.second_table,
        )
        print(f"{result}{result.fingerprint if options.fingerprint else ''}", flush=True)
        found += result.measurements()
    write(found, options.json)


if __name__ == "__main__":
    main()

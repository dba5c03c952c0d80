"""How fast a raw log is collapsed: `python -m benchmarks.prepare [--rows 1000000] [--memory 4GB] [--features 8]`.

Writes a log of so many rows as Parquet, ten documents a page, prepares it in a fresh process and prints rows a second,
the peak of memory and how many impressions there are for each list that is left. Queries follow a power law, and each
has a few rankings, so that a longer log collapses further, as real ones do.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow
from pyarrow import parquet

POSITIONS = 10
CHUNK = 100_000
"""Pages written at once."""
QUERIES = 200_000
RANKINGS = 4
# `ru_maxrss` of a child starts at that of its parent, so the child asks for its own peak, which exec resets.
_CHILD = """
import sys, time
from pathlib import Path
from ultr.preparation import prepare

source, out, memory, engine, *features = sys.argv[1:]
started = time.perf_counter()
prepared = prepare(source, out, factors=["device"], features=features, memory=memory, engine=engine)
spent = time.perf_counter() - started
lines = Path("/proc/self/status").read_text().splitlines()
peak = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
print(spent, peak, prepared.summary.collapse_ratio, prepared.log.lists)
"""


@dataclass(frozen=True)
class Result:
    """One measurement."""

    rows: int
    seconds: float
    peak: int
    ratio: float
    lists: int

    def __str__(self) -> str:
        return (
            f"{self.rows:>12,} rows  {self.seconds:8.1f} s  {self.rows / self.seconds:12,.0f} rows a second  "
            f"peak {self.peak / 1e9:5.2f} GB  {self.ratio:6.2f} impressions a list, {self.lists:,} lists"
        )


def write_log(path: Path, rows: int, *, features: int, seed: int = 0) -> None:
    """A log of one row for each shown document, a chunk at a time."""
    generator = np.random.default_rng(seed)
    pages = max(rows // POSITIONS, 1)
    examined = 1 / np.arange(1, POSITIONS + 1)
    writer = None
    for start in range(0, pages, CHUNK):
        count = min(CHUNK, pages - start)
        queries = np.minimum(generator.zipf(1.3, size=count), QUERIES) - 1
        ranking = generator.integers(RANKINGS, size=count)
        place = np.arange(POSITIONS)
        # Each ranking of a query is its documents rotated by so many places.
        documents = queries[:, None] * POSITIONS + (place + ranking[:, None]) % POSITIONS
        relevance = (documents * 2654435761 % 1000) / 1000
        flat = documents.ravel()
        columns: dict[str, object] = {
            "impression_id": np.repeat(np.arange(start, start + count), POSITIONS),
            "query_id": np.repeat(queries, POSITIONS),
            "doc_id": flat,
            "position": np.tile(place + 1, count),
            "click": (generator.random((count, POSITIONS)) < 0.6 * examined * relevance).astype(np.int8).ravel(),
            "device": pyarrow.array(np.repeat(generator.choice(["phone", "desk", "tablet"], size=count), POSITIONS)),
        }
        for number in range(features):
            columns[f"feature_{number}"] = ((flat * (number + 3) % 997) / 997).astype(np.float32)
        table = pyarrow.table(columns)
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def measure(rows: int, *, memory: str = "4GB", features: int = 8, engine: str = "duckdb") -> Result:
    """Write a log and prepare it in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "log.parquet"
        started = perf_counter()
        write_log(source, rows, features=features)
        print(
            f"{source.stat().st_size / 1e6:,.0f} MB of Parquet written in {perf_counter() - started:.0f} s", flush=True
        )
        names = [f"feature_{number}" for number in range(features)]
        command = [sys.executable, "-c", _CHILD, str(source), f"{folder}/out", memory, engine, *names]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    seconds, peak, ratio, lists = printed.split()
    return Result(rows, float(seconds), int(peak), float(ratio), int(lists))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--features", type=int, default=8)
    parser.add_argument("--engine", default="duckdb")
    options = parser.parse_args()
    for rows in options.rows:
        print(measure(rows, memory=options.memory, features=options.features, engine=options.engine))


if __name__ == "__main__":
    main()

"""Attacks on the preparation of raw logs, against a count in plain Python."""

from __future__ import annotations

import csv
import json
import shutil
import warnings
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow
from pyarrow import parquet

from benchmarks.attack.damage import damage
from benchmarks.attack.outcome import Outcome, outcome_of
from ultr.preparation.log import Prepared, prepare

Row = dict[str, Any]
NAMES = (
    *("a", "b", "a\x1fb", "b\x1fa", "\x1e0", "\x1e1", "\x1f", "it's", 'say "no"', "a,b", "a;b", "a\tb", "tab\t", "\\N"),
    *("NULL", "null", "nan", "None", "true", "0", "00", "1e5", "1.0", "-1", "1" + "0" * 22, "0x10", "2020-01-01", "\\"),
    *("ä", "a\u0308", "🦆", "\u202eevil", "\x1b[2J", "<script>", "{{7*7}}", "'; DROP TABLE log; --", "%s", "${x}"),
    *("x" * 3_000, "a ", " a", "A", "a\x00", "\x00", "a\x00b", "a\nb", "a\r", "\ufeff", "\u00a0", "\uffff"),
)
"""Texts that are ids like any other."""


class RawLogs:
    """Logs whose ids are odd, and files of logs that are damaged."""

    name = "raw logs"
    # A log takes a second.
    share = 3.0

    def __init__(self, work: Path) -> None:
        self.work = work / "raw logs"
        self.work.mkdir()

    def attempt(self, random: Random) -> tuple[Outcome, str]:
        """Write a log and prepare it."""
        rows = _rows(random)
        ending = random.choice(("parquet", "csv", "jsonl"))
        path, out = self.work / f"log.{ending}", self.work / "out"
        _write(path, rows)
        damaged, how = random.random() < 0.4, "odd names"
        if damaged:
            content, how = damage(path.read_bytes(), random)
            path.write_bytes(content)
        shutil.rmtree(out, ignore_errors=True)

        def read() -> Prepared:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return prepare(path, out, factors=["device"], rare=1)

        # Nothing tells which bytes of a text were meant, so that of a damaged one only the account must be right.
        same = _is_accounted if damaged else lambda found: _counts(found, out) == _expected(rows)
        outcome, said = outcome_of(read, same)
        return outcome, f"{ending}, {how}: {said}"


def _rows(random: Random) -> list[Row]:
    queries, documents, devices = (random.sample(NAMES, count) for count in (4, 6, 2))
    rows = []
    for page in range(random.randrange(30, 60)):
        shown = random.sample(documents, 3)
        query, device = random.choice(queries), random.choice(devices)
        for position, document in enumerate(shown, start=1):
            click = int(random.random() < 0.4)
            rows.append(
                {
                    "impression": f"page {page}",
                    "query": query,
                    "document": document,
                    "position": position,
                    "click": click,
                    "device": device,
                }
            )
    return rows


def _write(path: Path, rows: list[Row]) -> None:
    if path.suffix == ".parquet":
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


def _expected(rows: list[Row]) -> tuple[Counter[Any], Counter[Any]]:
    """Impressions of each shown list, and clicks of each of its documents."""
    pages: dict[str, list[Row]] = {}
    for row in rows:
        pages.setdefault(row["impression"], []).append(row)
    impressions: Counter[Any] = Counter()
    clicks: Counter[Any] = Counter()
    for page in pages.values():
        key = (page[0]["query"], page[0]["device"], tuple(row["document"] for row in page))
        impressions[key] += 1
        clicks.update((key, row["position"]) for row in page if row["click"])
    return impressions, clicks


def _counts(found: Prepared, folder: Path) -> tuple[Counter[Any], Counter[Any]]:
    log, names = found.log, parquet.read_table(folder / "documents.parquet")["document"].to_pylist()
    device = log.factors[1]
    impressions: Counter[Any] = Counter()
    clicks: Counter[Any] = Counter()
    for number, (start, end) in enumerate(zip(log.offsets[:-1], log.offsets[1:], strict=True)):
        documents = tuple(names[row] for row in log.documents[start:end])
        key = (str(log.query_ids[log.queries[number]]), device.levels[device.values[start]], documents)
        impressions[key] += int(log.impressions[number])
        for place in range(start, end):
            clicks[key, int(log.positions[place])] += int(log.clicks[place])
    return impressions, +clicks


def _is_accounted(found: Prepared) -> bool:
    """Whether every row and page that was read is kept or put aside, and every click that is kept is in the log."""
    summary, log = found.summary, found.log
    return summary.pages.kept == int(log.impressions.sum()) and summary.clicks.kept == int(log.clicks.sum())

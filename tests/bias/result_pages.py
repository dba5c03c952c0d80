"""A reader of the public click logs that have one result page a row, for tests only."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ultr.arrays import Integers
from ultr.data.click_log import ClickLog


def rows(path: Path, *, split: str | None = None) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if split is None or row["split"] == split:
                yield row


def click_log(path: Path, *, query: str) -> ClickLog:
    """The pages of a log; a document is another one for another query, and has no features worth the name."""
    documents: list[int] = []
    clicks: list[int] = []
    numbers: dict[tuple[str, str], int] = {}
    offsets, queries = [0], []
    for row in rows(path):
        documents += [numbers.setdefault((row[query], name), len(numbers)) for name in row["docs"].split(",")]
        clicks += [int(bit) for bit in row["clicks"]]
        offsets.append(len(documents))
        queries.append(row[query])
    return ClickLog.of(
        features=np.zeros((len(numbers), 1)), documents=documents, offsets=offsets, clicks=clicks, queries=queries
    )


def grade_table(path: Path, *, split: str, grades: int) -> tuple[Integers, Integers]:
    """Clicks and impressions by grade and position; grades below 0 count as 0, and those above the last as the last."""
    clicks, impressions = np.zeros((grades, 10), dtype=np.int64), np.zeros((grades, 10), dtype=np.int64)
    for row in rows(path, split=split):
        for position, (bit, label) in enumerate(zip(row["clicks"], row["labels"].split(","), strict=True)):
            grade = min(max(int(label), 0), grades - 1)
            impressions[grade, position] += 1
            clicks[grade, position] += int(bit)
    return clicks, impressions

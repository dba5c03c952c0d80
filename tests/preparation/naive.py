"""The preparation of a log in plain Python, straight from its description."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

from pyarrow import parquet

from ultr.data import ragged
from ultr.data.click_log import ClickLog

Row = dict[str, Any]
Key = tuple[str, int, tuple[tuple[int, str, str], ...]]


@dataclass
class Naive:
    """Impressions, clicks and pairs clicked together by shown list and period; rows aside or repeated; empty pages."""

    impressions: dict[Key, int] = field(default_factory=lambda: defaultdict(int))
    clicks: dict[tuple[Key, int], int] = field(default_factory=lambda: defaultdict(int))
    pairs: dict[tuple[Key, int, int], int] = field(default_factory=lambda: defaultdict(int))
    aside: int = 0
    repeated: int = 0
    empty: int = 0


def periods_of(times: list[int], count: int) -> dict[int, int]:
    """The period of each time: `count` times the share of pages before it and half of its own, without gaps."""
    before = {time: sum(other < time for other in times) + Fraction(times.count(time), 2) for time in times}
    period = {time: floor(count * pages / len(times)) for time, pages in before.items()}
    used = sorted(set(period.values()))
    return {time: used.index(number) for time, number in period.items()}


def collapsed(rows: list[Row], *, rare: int, periods: int = 0) -> Naive:
    """With `periods`, the rows have a time as well."""
    pages: dict[int, list[Row]] = defaultdict(list)
    result = Naive()
    # A log that says 0 nowhere says nothing where there was no click.
    said = [row["click"] for row in rows]
    if None in said and 0 not in said:
        rows = [row | {"click": row["click"] or 0} for row in rows]
    for row in rows:
        if row["impression"] is None:
            result.aside += 1
        else:
            pages[row["impression"]].append(row)
    kept = []
    times = []
    for page in pages.values():
        fine = [row for row in page if row["document"] is not None and row["click"] is not None and row["click"] >= 0]
        given = len(fine)
        fine = list({tuple(row.items()): row for row in fine}.values())
        trusted = all(row["query"] and row["position"] is not None and row["position"] >= 1 for row in page)
        trusted = trusted and len({row["query"] for row in fine}) <= 1
        if periods:
            trusted = trusted and all(row["time"] is not None for row in page)
            times += [min(row["time"] for row in page)] if trusted and fine else []
        for name in ("position", "document"):
            trusted = trusted and len({row[name] for row in fine}) == len(fine)
        result.aside += len(page) - (given if trusted else 0)
        result.repeated += given - len(fine) if trusted else 0
        if trusted and fine:
            time = min(row["time"] for row in page) if periods else None
            kept.append([row | {"device": row["device"] or "missing", "time": time} for row in fine])
    seen: dict[str, int] = defaultdict(int)
    for page in kept:
        for device in {row["device"] for row in page}:
            seen[device] += 1
    period = periods_of(times, periods) if periods else {None: 0}
    for page in kept:
        page.sort(key=lambda row: row["position"])
        cells = tuple(
            (row["position"], row["document"], row["device"] if seen[row["device"]] >= rare else "other")
            for row in page
        )
        key = (page[0]["query"], period[page[0]["time"]], cells)
        result.impressions[key] += 1
        clicked = [row["position"] for row in page if row["click"]]
        result.empty += not clicked
        for number, position in enumerate(clicked):
            result.clicks[key, position] += 1
            for other in clicked[number + 1 :]:
                result.pairs[key, position, other] += 1
    return result


def read_back(log: ClickLog, folder: Path) -> Naive:
    """The same out of a prepared folder."""
    names = parquet.read_table(folder / "documents.parquet").to_pylist()
    assert [row["row"] for row in names] == list(range(len(log.features)))
    summary = json.loads((folder / "summary.json").read_text())
    result = Naive(
        aside=parquet.read_metadata(folder / "rejected.parquet").num_rows,
        repeated=summary["rows"].get("repeated", 0),
        empty=summary["empty_pages"],
    )
    pairs = iter([] if log.pair_clicks is None else log.pair_clicks.tolist())
    device = log.factors[1]
    assert not len(log.offsets) or ragged.list_numbers(log.offsets).max() == log.lists - 1
    for number, (start, end) in enumerate(zip(log.offsets[:-1], log.offsets[1:], strict=True)):
        query = str(log.query_ids[log.queries[number]])
        documents = [names[row] for row in log.documents[start:end]]
        assert {row["query"] for row in documents} == {query}
        positions = log.positions[start:end].tolist()
        devices = [device.levels[value] for value in device.values[start:end]]
        cells = zip(positions, (row["document"] for row in documents), devices, strict=True)
        key = (query, 0 if log.periods is None else int(log.periods[number]), tuple(cells))
        assert key not in result.impressions
        result.impressions[key] = int(log.impressions[number])
        result.clicks |= {(key, p): c for p, c in zip(positions, log.clicks[start:end].tolist(), strict=True) if c}
        if log.pair_clicks is not None:
            for i, first in enumerate(positions):
                for second in positions[i + 1 :]:
                    if both := next(pairs):
                        result.pairs[key, first, second] = both
    return result

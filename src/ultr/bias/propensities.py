"""Propensities that somebody measured: read from a file, or the click rates of a log whose rankings were random."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from ultr.arrays import Doubles
from ultr.counted import counted
from ultr.data.click_log import ClickLog
from ultr.data.totals import Totals
from ultr.errors import DataError

KEY = "propensities"
HEADERS = (["propensity"], ["propensities"], ["position", "propensity"])
_WANTED = "write one number a line, or position,propensity"


def read_propensities(path: str | Path) -> tuple[float, ...]:
    """The propensities in a file, by position from the first.

    The file is JSON, a list or an object with the key `propensities`; or text, CSV or TSV with one number a line or
    with the two columns position and propensity, whose positions may stand in any order. A header `propensity` or
    `position,propensity` is skipped. Only ratios matter, so any unit serves.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot read the propensities {path}: {error.strerror}; check the path") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a text file; give propensities as JSON, CSV or plain text") from error
    if Path(path).suffix.lower() == ".json" or text.lstrip()[:1] in {"[", "{"}:
        return _of_json(text, path)
    return _of_lines(text, path)


def click_rate_propensities(log: ClickLog) -> Doubles:
    """The propensities of a log whose rankings were random: click rates by position, that of the first set to 1.

    Where every position had the same documents on average, its click rate is its propensity times a mean relevance
    that is the same for all.
    """
    return click_rate_curve(log.totals(log.position))


def click_rate_curve(totals: Totals) -> Doubles:
    """Click rates over that of the first, from the totals of each position."""
    if not totals.clicks.all():
        raise DataError(_without_a_click(totals))
    curve: Doubles = totals.rates / totals.rates[0]
    return curve


def _without_a_click(totals: Totals) -> str:
    """What is known of the first position without a click, and what to do.

    No click on n impressions leaves a rate of at most 1 - 0.05^(1/n), 95 % for certain if clicks are independent
    (Clopper and Pearson).
    """
    place = int(np.flatnonzero(totals.clicks == 0)[0])
    shown, known = totals.impressions[place], ""
    if shown and place:
        most = (1 - 0.05 ** (1 / shown)) / totals.rates[0]
        known = f", only a bound: it is clicked at most about {most:.2g} times as often as the first"
    shorter = f"leave out of every log what stands below position {place}, " if place > 1 else ""
    return (
        f"position {place + 1} has no click on {counted(int(shown), 'impression')}, so it has no click "
        f"rate to go by{known}; log more pages, {shorter}or give a file of propensities"
    )


def _of_json(text: str, path: str | Path) -> tuple[float, ...]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON ({error}); write it again") from error
    values = content.get(KEY) if isinstance(content, dict) else content
    if not isinstance(values, list):
        raise DataError(f"{path} has no list of propensities; write a list of numbers, or an object with the key {KEY}")
    if not values:
        raise DataError(f"{path} has no propensities; write one number for each position")
    return tuple(_number(value, f"{path}, position {place}") for place, value in enumerate(values, start=1))


def _of_lines(text: str, path: str | Path) -> tuple[float, ...]:
    rows = [
        (number, [field.strip('"') for field in re.split(r"\s*[,\t]\s*|\s+", line.strip())])
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]
    if rows and [field.casefold() for field in rows[0][1]] in HEADERS:
        rows = rows[1:]
    if not rows:
        raise DataError(f"{path} has no propensities; {_WANTED}")
    if not re.search("[0-9]", "".join(rows[0][1])):
        raise DataError(
            f"{path}, line {rows[0][0]}: {' '.join(rows[0][1])!r} is neither a number nor a known header; "
            "call the columns propensity or position,propensity, or leave the header out"
        )
    columns = len(rows[0][1])
    for number, fields in rows:
        if len(fields) != columns or columns > 2:
            expected = "one or two columns" if columns > 2 else f"{columns} as in the lines before"
            raise DataError(f"{path}, line {number}: {len(fields)} columns, expected {expected}; {_WANTED}")
    if columns == 1:
        return tuple(_number(fields[0], f"{path}, line {number}") for number, fields in rows)
    return _in_order(rows, path)


def _in_order(rows: list[tuple[int, list[str]]], path: str | Path) -> tuple[float, ...]:
    found: dict[int, tuple[float, int]] = {}
    for number, (place, value) in rows:
        where = f"{path}, line {number}"
        if not re.fullmatch("[0-9]{1,9}", place) or int(place) < 1:
            raise DataError(f"{where}: {place!r} is not a position; positions are whole numbers from 1")
        position = int(place)
        if position in found:
            raise DataError(f"{where}: position {position} stands on line {found[position][1]} already; keep one")
        found[position] = _number(value, where), number
    for position in range(1, len(found) + 1):
        if position not in found:
            last = max(found)
            raise DataError(
                f"{path} has no position {position}, but line {found[last][1]} has position {last}; "
                "write every position from 1 on"
            )
    return tuple(found[position][0] for position in range(1, len(found) + 1))


def _number(value: Any, where: str) -> float:
    """`value` as a propensity, or an error that says where it stands."""
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 < number < math.inf:
        raise DataError(f"{where}: {value!r} is not a propensity; write a number above 0")
    return number

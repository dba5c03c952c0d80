"""Attacks on the reader of LETOR lines, against a parser of its own that is slow and follows the grammar."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from benchmarks.attack.damage import damage
from benchmarks.attack.outcome import Outcome, outcome_of
from ultr.arrays import Floats
from ultr.data.judged import JudgedLists
from ultr.datasets.svmlight import MAX_FEATURE, read_svmlight

HIGHEST_LABEL = 31
LONGEST_ID = 256
MOST_BYTES = 2**29
LABELS = ("0", "1", "2", "4", "31", "1.0", "+1", "1e0"), ("32", "-1", "a", "٣", "1e400", "")
QUERIES = ("1", "1", "1", "2", "10032", "ä", "a:b", "🦆"), ("q" * 257, "\u200b", "", "a#b")
FEATURES = (1, 2, 3, 5, 46, 136, 1_000), (0, 100_000, 100_001, 10**20)
NUMBERS = (
    ("0", "1", "-0.0", ".5", "5.", "1e-45", "3.4028235e38", "nan", "NaN", "1e-400", "0.1", "16777217", "7e-1"),
    ("3.4028236e38", "1e39", "inf", "0x1", "1_0", "1e400", "0.10.1", "", "--1", "1e", "٣"),
)
"""Usual parts of a line, and those that it does not or only just have."""
Documents = list[tuple[int, str, dict[int, bytes]]]
"""Label, query and the bits of the values by feature of each line."""


class LetorLines:
    """Files of generated lines, some damaged."""

    name = "LETOR lines"
    share = 0.5

    def __init__(self, work: Path) -> None:
        self.path = work / "lines.txt"

    def attempt(self, random: Random) -> tuple[Outcome, str]:
        """Read some lines by both parsers."""
        text = "".join(_line(random) for _ in range(random.randrange(1, 8))).encode()
        for _ in range(random.choice((0, 0, 0, 1, 1, 2))):
            text = damage(text, random)[0]
        self.path.write_bytes(text)
        expected = slowly(text)
        outcome, said = outcome_of(
            lambda: read_svmlight(self.path), lambda lists: _documents(lists) == _dense(expected)
        )
        if outcome is Outcome.REFUSED and expected is not None:
            outcome, said = Outcome.SILENT, f"refused, though the grammar takes it: {said}"
        return outcome, f"{text!r}: {said}"


def slowly(text: bytes) -> Documents | None:
    """The documents of a file; None if the grammar does not take it."""
    try:
        lines = text.decode().split("\n")
    except UnicodeDecodeError:
        return None
    documents: Documents = []
    closed: set[str] = set()
    for line in lines:
        body = line[:-1] if line.endswith("\r") else line
        parts = [part for part in body.split("#")[0].replace("\t", " ").split(" ") if part]
        if not parts:
            continue
        document = _document(parts)
        if document is None:
            return None
        if documents and documents[-1][1] != document[1]:
            closed.add(documents[-1][1])
        if document[1] in closed:
            return None
        documents.append(document)
    widest = max((max(values, default=0) for _, _, values in documents), default=0)
    return documents if widest and 4 * widest * len(documents) <= MOST_BYTES else None


def _document(parts: list[str]) -> tuple[int, str, dict[int, bytes]] | None:
    label = _number(parts[0])
    if label is None or label != int(label) or not 0 <= label <= HIGHEST_LABEL or len(parts) < 2:
        return None
    query = parts[1][4:]
    if parts[1][:4] != "qid:" or not 0 < len(query) <= LONGEST_ID or not query.isprintable():
        return None
    values: dict[int, bytes] = {}
    last = 0
    for part in parts[2:]:
        key, colon, written = part.partition(":")
        number = float("nan") if written.lower() == "nan" and written.isascii() else _number(written)
        if not colon or not _digits(key) or not last < int(key[-30:]) <= MAX_FEATURE or len(key.lstrip("0")) > 6:
            return None
        if number is None:
            return None
        last = int(key)
        try:
            values[last] = struct.pack("<f", number)
        except OverflowError:
            return None
    return int(label), query, values


def _number(text: str) -> float | None:
    """A decimal number, character by character: sign, digits with a dot, exponent."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    mantissa, exponent = rest, None
    for mark in "eE":
        if exponent is None and mark in rest:
            mantissa, _, exponent = rest.partition(mark)
    whole, _, fraction = mantissa.partition(".")
    if not (whole or fraction) or (whole and not _digits(whole)) or (fraction and not _digits(fraction)):
        return None
    if exponent is not None and not _digits(exponent[1:] if exponent[:1] in ("+", "-") else exponent):
        return None
    number = float(text)
    return None if number in (float("inf"), float("-inf")) else number


def _digits(text: str) -> bool:
    return bool(text) and all(mark in "0123456789" for mark in text)


def _dense(documents: Documents | None) -> object:
    if documents is None:
        return None
    width = max(max(values, default=0) for _, _, values in documents)
    rows = np.zeros((len(documents), width), dtype="<f4")
    for row, (_, _, values) in zip(rows, documents, strict=True):
        for feature, bits in values.items():
            row[feature - 1] = struct.unpack("<f", bits)[0]
    return [document[:2] for document in documents], _bits(rows)


def _documents(lists: JudgedLists) -> object:
    queries = [str(query) for query, length in zip(lists.query_ids, lists.lengths, strict=True) for _ in range(length)]
    return list(zip(lists.labels.tolist(), queries, strict=True)), _bits(lists.features.astype("<f4"))


def _bits(rows: Floats) -> bytes:
    """The bits of values, one pattern for all that are missing."""
    return np.where(np.isnan(rows), np.float32(np.nan), rows).tobytes()


def _line(random: Random) -> str:
    def one_of(parts: tuple[Sequence[Any], Sequence[Any]]) -> Any:
        return random.choice(parts[random.random() < 0.01])

    separator = random.choice((" ", " ", " ", "\t", "  "))
    features = sorted({one_of(FEATURES) for _ in range(random.randrange(1, 5))})
    pairs = [f"{feature}:{one_of(NUMBERS)}" for feature in features]
    comment = random.choice(("", "", "", " # docid", "#"))
    ending = random.choice(("\n", "\n", "\r\n"))
    return separator.join([one_of(LABELS), f"qid:{one_of(QUERIES)}", *pairs]) + comment + ending

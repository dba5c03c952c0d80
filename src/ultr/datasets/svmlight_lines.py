"""The grammar of LETOR / SVMlight text, read line by line: slow, exact, and the source of every error sentence.

    line    = [ label "qid:" id { feature ":" value } ] [ "#" comment ]
    label   = a number that is an integer of at least 0
    id      = printable characters
    feature = digits, from 1 and rising along the line
    value   = [ "+" | "-" ] digits [ "." digits ] [ ( "e" | "E" ) [ "+" | "-" ] digits ] | "nan"

Spaces or tabs separate the parts; lines end with LF or CRLF; the text is UTF-8. A feature that is left out is 0; one
that is missing is nan, in small or capital letters.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ultr.arrays import Floats, Integers
from ultr.errors import DataError

HIGHEST_LABEL = 31
LONGEST_QUERY_ID = 256
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_MISSING = re.compile(rb"nan", re.IGNORECASE)
_DIGITS = re.compile(rb"[0-9]+")
_LONGEST_FEATURE = 18
_INFINITE = 2.0**128 - 2.0**103
"""The smallest number that float32 rounds to infinity."""


@dataclass(frozen=True)
class Limits:
    """The highest feature id and the highest label."""

    feature: int
    label: int
    known_features: bool = False
    """True if `feature` is the number of features that the caller asked for."""


@dataclass(frozen=True, eq=False)
class Block:
    """The documents of some lines, with the features that are written down."""

    lines: Integers
    """[documents], the line of each document in the file."""
    labels: Integers
    """int64 [documents]."""
    query_ids: list[str]
    """One for each run of documents with the same query id."""
    query_starts: Integers
    """The first document of each run."""
    offsets: Integers
    """[documents + 1]; document `i` has the pairs `offsets[i]:offsets[i + 1]`."""
    columns: Integers
    """int32 [pairs], feature ids from 1."""
    values: Floats
    """float32 [pairs]."""


def parse_lines(text: bytes, *, path: str | Path, line: int, limits: Limits) -> Block:
    """The block in `text`, whose first line is number `line` of `path`; anything wrong is a `DataError`."""
    lines: list[int] = []
    labels: list[int] = []
    query_ids: list[str] = []
    query_starts: list[int] = []
    offsets = [0]
    columns: list[int] = []
    values: list[float] = []
    for number, content in enumerate(text.split(b"\n")[:-1], start=line):
        try:
            tokens = _tokens(content)
            if not tokens:
                continue
            label, query_id = _label(tokens[0], limits), _query_id(tokens)
            _append_pairs(tokens[2:], columns, values, limits)
        except _LineError as error:
            raise DataError(f"{path}, line {number}: {error}") from None
        if not query_ids or query_ids[-1] != query_id:
            query_ids.append(query_id)
            query_starts.append(len(labels))
        lines.append(number)
        labels.append(label)
        offsets.append(len(columns))
    return Block(
        lines=np.array(lines, dtype=np.int64),
        labels=np.array(labels, dtype=np.int64),
        query_ids=query_ids,
        query_starts=np.array(query_starts, dtype=np.int64),
        offsets=np.array(offsets, dtype=np.int64),
        columns=np.array(columns, dtype=np.int32),
        values=np.array(values, dtype=np.float64).astype(np.float32),
    )


class _LineError(Exception):
    """A fault of a line, and what to do about it."""


def _tokens(line: bytes) -> list[bytes]:
    try:
        line.decode()
    except UnicodeDecodeError as error:
        raise _LineError(
            f"byte {error.start + 1} is not UTF-8; convert the file to UTF-8 or check that it is text"
        ) from None
    body = line.removesuffix(b"\r").partition(b"#")[0]
    return [token for token in body.replace(b"\t", b" ").split(b" ") if token]


def _label(token: bytes, limits: Limits) -> int:
    shown = _shown(token)
    if not _NUMBER.fullmatch(token):
        raise _LineError(f"the label {shown} is not a number; start each line with an integer label")
    label = float(token)
    if not label.is_integer() or label < 0:
        raise _LineError(f"the label {shown} is not an integer of at least 0; map labels to 0, 1, 2, ...")
    if label > limits.label:
        reason = "where the gain 2^label - 1 explodes" if limits.label == HIGHEST_LABEL else "the highest known"
        raise _LineError(f"the label {shown} is above {limits.label}, {reason}; mend it or raise max_label")
    return int(label)


def _query_id(tokens: list[bytes]) -> str:
    if len(tokens) < 2 or not tokens[1].startswith(b"qid:"):
        raise _LineError("no qid:<id> follows the label; write one on each line")
    query_id = tokens[1][4:].decode()
    # numpy drops NUL at the end of strings and stores all strings at the width of the longest.
    if not query_id.isprintable() or not 0 < len(query_id) <= LONGEST_QUERY_ID:
        raise _LineError(
            f"the query id {_shown(tokens[1][4:])} must have 1 to {LONGEST_QUERY_ID} printable characters; rename it"
        )
    return query_id


def _append_pairs(tokens: list[bytes], columns: list[int], values: list[float], limits: Limits) -> None:
    last = 0
    for token in tokens:
        key, _, written = token.partition(b":")
        column, value = _column(key, token, limits), _value(written, token)
        if column <= last:
            what = "is repeated" if column == last else f"comes after {last}"
            raise _LineError(f"feature id {column} {what}; sort the ids of each line and write each one once")
        columns.append(column)
        values.append(value)
        last = column


def _column(key: bytes, token: bytes, limits: Limits) -> int:
    if not _DIGITS.fullmatch(key) or not key.strip(b"0"):
        raise _LineError(f"{_shown(token)} is not <feature id>:<value> with an id of 1 or more; mend it")
    column = int(key) if len(key) <= _LONGEST_FEATURE else math.inf
    if column > limits.feature:
        limit, option = (
            (f"the {limits.feature} known features", "features")
            if limits.known_features
            else (f"the limit of {limits.feature}", "max_feature")
        )
        raise _LineError(f"feature id {_shown(key)} is above {limit}; mend it or raise {option}")
    return int(column)


def _value(written: bytes, token: bytes) -> float:
    if _MISSING.fullmatch(written):
        return math.nan
    if not _NUMBER.fullmatch(written):
        raise _LineError(f"the value in {_shown(token)} is not a finite decimal number; mend or remove it")
    value = float(written)
    if abs(value) >= _INFINITE:
        raise _LineError(f"the value in {_shown(token)} is too large for float32; scale the feature down")
    return value


def _shown(token: bytes) -> str:
    text = token.decode(errors="replace")
    return repr(text if len(text) <= 40 else text[:37] + "...")

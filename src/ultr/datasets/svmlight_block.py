"""The fast parser of LETOR / SVMlight text: a whole block at once, or nothing if the block is out of the ordinary."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ultr.arrays import Floats, Integers, Mask
from ultr.datasets.svmlight_lines import LONGEST_QUERY_ID, Block, Limits, parse_lines

_NEWLINE, _SPACE, _HASH, _COLON, _ZERO = b"\n #:0"
_MOST_DIGITS = 9

Bytes = npt.NDArray[np.uint8]


def parse_block(text: bytes, *, path: str | Path, line: int, limits: Limits) -> Block:
    """The block in `text`, by the fast parser if it can and line by line if not."""
    block = parse_ordinary(text, line=line, limits=limits)
    return parse_lines(text, path=path, line=line, limits=limits) if block is None else block


def parse_ordinary(text: bytes, *, line: int, limits: Limits) -> Block | None:
    """The same block that `parse_lines` gives, or None if any line is unusual or wrong.

    Ordinary is: no empty lines, one space between parts and at most one at the end, unsigned integer labels.
    Everything else is left to `parse_lines`, which alone decides what is legal.
    """
    try:
        text.decode()
    except UnicodeDecodeError:
        return None
    if b"\r" in text or b"\t" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\t", b" ")
    body, bounds = _without_comments(text)
    colons = np.flatnonzero(body == _COLON)
    keys = _repeated_keys(body, colons, bounds) or _varied_keys(body, colons, bounds)
    if keys is None or keys.columns.max() > limits.feature:
        return None
    labels = _whole_numbers(body, bounds[:-1], keys.spaces[keys.heads])
    if labels is None or labels.max() > limits.label:
        return None

    documents, total = len(labels), len(colons)
    stops = np.append(keys.spaces[1:], len(body))
    stops[np.append(keys.heads[1:], total) - 1] = bounds[1:]
    tails = _slices(body, colons + 1, stops, kind=pa.string())
    is_pair = keys.columns > 0
    values = _decimal_numbers(tails, is_pair)
    runs = _runs(tails.take(pa.array(keys.heads * 2)))
    if values is None or runs is None:
        return None
    query_ids, query_starts = runs
    return Block(
        lines=np.arange(line, line + documents),
        labels=labels.astype(np.int64),
        query_ids=query_ids,
        query_starts=query_starts,
        offsets=np.append(keys.heads, total) - np.arange(documents + 1),
        columns=keys.columns[is_pair],
        values=values,
    )


def _slices(text: bytes | Bytes, starts: Integers, stops: Integers, *, kind: Any) -> Any:
    """An Arrow array over `text`, not copied, whose items 0, 2, 4, ... are the slices and the others the gaps."""
    offsets = np.empty(2 * len(starts), dtype=np.int32)
    offsets[0::2] = starts
    offsets[1::2] = stops
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


def _content(array: Any) -> tuple[Bytes, Integers]:
    """The joined bytes of a string or binary array, and its offsets into them."""
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[: len(array) + 1]
    size = int(bounds[-1])
    return (np.frombuffer(data, dtype=np.uint8)[:size] if size else np.empty(0, np.uint8)), bounds


def _without_comments(text: bytes) -> tuple[Bytes, Integers]:
    """The lines without comment, line end and one space before these, joined; and where each begins."""
    raw = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(raw == _NEWLINE)
    starts = np.append(0, ends[:-1] + 1)
    hashes = np.flatnonzero(raw == _HASH)
    if len(hashes):
        ends = np.minimum(ends, np.append(hashes, len(raw))[np.searchsorted(hashes, starts)])
    ends = ends - ((ends > starts) & (raw[ends - 1] == _SPACE))
    lines = _slices(text, starts, ends, kind=pa.binary())
    return _content(lines.take(pa.array(np.arange(0, len(lines), 2))))


@dataclass(frozen=True, eq=False)
class _Keys:
    """Where the keys stand: on each line `qid`, then feature ids, each between a space and a colon."""

    spaces: Integers
    heads: Integers
    """Which of the keys are `qid`."""
    columns: Integers
    """int32, the feature ids; 0 for `qid`."""


def _varied_keys(body: Bytes, colons: Integers, bounds: Integers) -> _Keys | None:
    """The keys, read one by one.

    That space and colon alternate inside each line need not be checked: labels and feature ids must turn out to be
    digits, and with a separator or line end in the wrong place one of them would hold it.
    """
    spaces = np.flatnonzero(body == _SPACE)
    if len(spaces) != len(colons):
        return None
    borders = np.searchsorted(spaces, bounds)
    heads = borders[:-1]
    if (heads == borders[1:]).any() or not _follow_qid(body, spaces[heads], colons[heads]):
        return None
    columns = _whole_numbers(body, spaces + 1, colons, skip=heads)
    return None if columns is None or not _rise(columns, heads) else _Keys(spaces, heads, columns)


def _repeated_keys(body: Bytes, colons: Integers, bounds: Integers) -> _Keys | None:
    """The keys, if every line has those of the first, as in dense data: comparing takes half the time of reading.

    More spaces than these would be part of a label, a value or a query id, where none is accepted.
    """
    documents = len(bounds) - 1
    count, left = divmod(len(colons), documents)
    if left or not count:
        return None
    grid = colons.reshape(documents, count)
    if (grid[:, 0] < bounds[:-1]).any() or (grid[:, -1] >= bounds[1:]).any():
        return None
    first = _varied_keys(body[: bounds[1]], grid[0], bounds[:2])
    if first is None:
        return None
    widths = grid[0] - first.spaces
    for place in range(1, int(widths.max()) + 1):
        long = grid if place <= widths.min() else grid[:, widths >= place]
        letters = body[long - place]
        if (letters != letters[0]).any():
            return None
    heads = np.arange(0, len(colons), count)
    return _Keys((grid - widths).reshape(-1), heads, np.tile(first.columns, documents))


def _follow_qid(body: Bytes, spaces: Integers, colons: Integers) -> bool:
    """Whether each of these pairs begins with `qid`."""
    if (colons - spaces != len("qid") + 1).any():
        return False
    return all((body[spaces + 1 + place] == letter).all() for place, letter in enumerate(b"qid"))


def _whole_numbers(body: Bytes, starts: Integers, stops: Integers, *, skip: Integers | None = None) -> Integers | None:
    """The slices as int32, if all are short runs of digits; those to skip become 0."""
    widths = stops - starts
    widest = int(widths.max())
    if widths.min() < 1 or widest > _MOST_DIGITS:
        return None
    numbers = np.zeros(len(starts), dtype=np.int32)
    for place in range(widest):
        digits = body[stops - 1 - place] - np.uint8(_ZERO)
        if place:
            digits[widths <= place] = 0
        if skip is not None:
            digits[skip] = 0
        if digits.max() > 9:
            return None
        numbers += digits * np.int32(10**place)
    return numbers


def _rise(columns: Integers, heads: Integers) -> bool:
    """Whether the columns after each head, which is 0, rise."""
    steps = np.diff(columns)
    steps[heads[1:] - 1] = 1
    return bool((steps > 0).all())


def _decimal_numbers(tails: Any, chosen: Mask) -> Floats | None:
    """The chosen ones of the slices as float32, rounded from float64, if all are finite decimal numbers or nan."""
    # Null items are not parsed, so the gaps between slices need not be cut out first.
    valid = np.zeros(len(tails), dtype=np.bool_)
    valid[0::2] = chosen
    bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    texts = pa.Array.from_buffers(tails.type, len(tails), [bits, *tails.buffers()[1:]])
    try:
        exact = np.frombuffer(pc.cast(texts, pa.float64()).buffers()[1], dtype=np.float64)[: len(tails)]
    except pa.ArrowInvalid:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        values: Floats = exact[0::2][chosen].astype(np.float32)
    missing = np.isnan(values)
    # Arrow also takes nan with a sign or with something in brackets.
    written = pc.utf8_lower(texts.take(pa.array(2 * np.flatnonzero(chosen)[missing]))).to_pylist()
    return values if set(written) <= {"nan"} and not np.isinf(values).any() else None


def _runs(query_ids: Any) -> tuple[list[str], Integers] | None:
    """The query id of each run of equal ones, and where the run begins, if all are printable ASCII."""
    letters, bounds = _content(query_ids)
    widths = np.diff(bounds)
    if widths.min() < 1 or widths.max() > LONGEST_QUERY_ID:
        return None
    if letters.min() <= _SPACE or letters.max() > ord("~"):
        return None
    changes = pc.not_equal(query_ids[1:], query_ids[:-1]).to_numpy(zero_copy_only=False)
    starts = np.append(0, np.flatnonzero(changes) + 1)
    return query_ids.take(pa.array(starts)).to_pylist(), starts

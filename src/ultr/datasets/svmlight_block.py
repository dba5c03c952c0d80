"""The fast parser of LETOR / SVMlight text: a whole block at once, or nothing if the block is out of the ordinary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ultr.arrays import Integers, Mask
from ultr.datasets.svmlight_lines import Block, Limits, is_query_id, parse_lines

_NEWLINE, _SPACE, _HASH, _COLON = b"\n #:"

Bytes = npt.NDArray[np.uint8]


def parse_block(text: bytes, *, path: str | Path, line: int, limits: Limits) -> Block:
    """The block in `text`, by the fast parser if it can and line by line if not."""
    block = parse_ordinary(text, line=line, limits=limits)
    return parse_lines(text, path=path, line=line, limits=limits) if block is None else block


class _UnusualError(Exception):
    """Text that the fast parser leaves to the other."""


def parse_ordinary(text: bytes, *, line: int, limits: Limits) -> Block | None:
    """The same block that `parse_lines` gives, or None if any line is unusual or wrong.

    Ordinary is: no empty lines, one space between parts and at most one at the end, integer labels. Everything else is
    left to `parse_lines`, which alone decides what is legal.
    """
    try:
        return _parsed(text, line, limits)
    except (_UnusualError, UnicodeDecodeError, pa.ArrowInvalid):
        return None


def _parsed(text: bytes, line: int, limits: Limits) -> Block:
    text.decode()
    if b"\r" in text or b"\t" in text:
        text = text.replace(b"\r\n", b"\n").replace(b"\t", b" ")
    body, bounds = _without_comments(text)
    spaces, colons = np.flatnonzero(body == _SPACE), np.flatnonzero(body == _COLON)
    _need(len(spaces) == len(colons))
    # Each line is a label and then, after a space each, a key, a colon and what it has: first `qid`, then features.
    borders = np.searchsorted(spaces, bounds)
    heads = borders[:-1]
    _need(heads < borders[1:])
    stops = np.append(spaces[1:], len(body))
    stops[borders[1:] - 1] = bounds[1:]
    _need((spaces < colons) & (colons < stops))
    is_pair = np.ones(len(spaces), dtype=np.bool_)
    is_pair[heads] = False
    keys, tails = _slices(body, spaces + 1, colons), _slices(body, colons + 1, stops)
    _need(pc.equal(keys.take(pa.array(2 * heads)), "qid").to_numpy(zero_copy_only=False))

    with np.errstate(over="ignore", invalid="ignore"):
        values = _numbers(tails, is_pair, pa.float64())[is_pair].astype(np.float32)
    _need(np.isfinite(values))
    # Arrow also reads integers such as 0x1F.
    _need((body[np.append(spaces + 2, bounds[:-1] + 1)] | 0x20) != ord("x"))
    labels = _numbers(_slices(body, bounds[:-1], spaces[heads]), np.ones(len(heads), dtype=np.bool_), pa.int64())
    _need((labels >= 0) & (labels <= limits.label))
    columns = _numbers(keys, is_pair, pa.int32())
    rises = columns > np.append(0, columns[:-1])
    rises[heads] = True
    _need(rises & (columns <= limits.feature))
    runs = pc.run_end_encode(tails.take(pa.array(2 * heads)))
    query_ids = runs.values.to_pylist()
    _need(all(map(is_query_id, query_ids)))
    return Block(
        lines=np.arange(line, line + len(heads)),
        labels=labels,
        query_ids=query_ids,
        query_starts=np.append(0, runs.run_ends[:-1]).astype(np.int64),
        offsets=borders - np.arange(len(borders)),
        columns=columns[is_pair],
        values=values,
    )


def _need(condition: Any) -> None:
    """Leave the text to the other parser unless all of the condition is true."""
    if not np.all(condition):
        raise _UnusualError


def _slices(text: bytes | Bytes, starts: Integers, stops: Integers) -> Any:
    """An Arrow array over `text`, not copied, whose items 0, 2, 4, ... are the slices and the others the gaps."""
    offsets = np.empty(2 * len(starts), dtype=np.int32)
    offsets[0::2] = starts
    offsets[1::2] = stops
    return pa.Array.from_buffers(pa.string(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(text)])


def _without_comments(text: bytes) -> tuple[Bytes, Integers]:
    """The lines without comment, line end and one space before these, joined; and where each begins."""
    raw = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(raw == _NEWLINE)
    starts = np.append(0, ends[:-1] + 1)
    hashes = np.flatnonzero(raw == _HASH)
    if len(hashes):
        ends = np.minimum(ends, np.append(hashes, len(raw))[np.searchsorted(hashes, starts)])
    ends = ends - ((ends > starts) & (raw[ends - 1] == _SPACE))
    lines = _slices(text, starts, ends)
    _, offsets, data = lines.take(pa.array(np.arange(0, len(lines), 2))).buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[: len(starts) + 1]
    return (np.frombuffer(data, dtype=np.uint8)[: bounds[-1]] if bounds[-1] else np.empty(0, np.uint8)), bounds


def _numbers(slices: Any, chosen: Mask, kind: Any) -> npt.NDArray[Any]:
    """The chosen ones of the slices as numbers, 0 for the others."""
    # Null items are not parsed, so the gaps between slices need not be cut out first.
    valid = np.zeros(len(slices), dtype=np.bool_)
    valid[0::2] = chosen
    bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
    texts = pa.Array.from_buffers(slices.type, len(slices), [bits, *slices.buffers()[1:]])
    numbers = np.frombuffer(pc.cast(texts, kind).buffers()[1], dtype=kind.to_pandas_dtype())[: len(slices) : 2]
    return np.where(chosen, numbers, 0)

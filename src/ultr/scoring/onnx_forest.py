"""The forest inside an ONNX file that `ultr export` wrote, read without the package onnx, which services do without.

An ONNX file is a message of protocol buffers: fields of a number and a value, some of which are messages again.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from ultr.arrays import Integers
from ultr.scoring.forest import LEAF, Forest

_GRAPH, _NODE, _KIND, _ATTRIBUTE = 7, 1, 4, 5
"""Numbers of fields: the graph of a model, a node of a graph, the operator and an attribute of a node."""
_NAME, _FLOATS, _INTEGERS, _STRINGS = 1, 7, 8, 9
"""Those of an attribute: its name and its values, of one of three types."""
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
"""Wire types, the ways to write a value: a number of any length, eight bytes, so many bytes, four bytes."""


def forest_in(content: bytes) -> Forest | None:
    """The forest of a file whose scores are those of one forest with one output; None if there is no such forest.

    What else the graph does with these scores is not looked at: compare them with the file's own.
    """
    graph = _first(content, _GRAPH)
    nodes = [node for number, node in _fields(graph) if number == _NODE and isinstance(node, bytes)]
    trees = [node for node in nodes if _first(node, _KIND) == b"TreeEnsembleRegressor"]
    return _forest(_attributes(trees[0])) if len(trees) == 1 else None


def _forest(values: dict[str, list[int | float | bytes]]) -> Forest | None:
    numbers = {name: np.array(each) for name, each in values.items() if each and not isinstance(each[0], bytes)}
    modes = values.get("nodes_modes", [])
    if not modes or numbers["target_ids"].any() or set(modes) - {b"LEAF", b"BRANCH_LEQ"}:
        return None
    leaf = np.array(modes) == b"LEAF"
    roots = np.flatnonzero(numbers["nodes_nodeids"] == 0)
    first = np.repeat(roots, np.diff(np.append(roots, len(leaf))))
    adds = np.zeros(len(leaf))
    adds[roots[numbers["target_treeids"]] + numbers["target_nodeids"]] = numbers["target_weights"]

    def following(side: str) -> Integers:
        return np.where(leaf, np.arange(len(leaf)), first + numbers[side])

    return Forest(
        features=np.where(leaf, LEAF, numbers["nodes_featureids"]),
        thresholds=numbers["nodes_values"].astype(np.float32),
        missing_left=numbers["nodes_missing_value_tracks_true"].astype(bool),
        left=following("nodes_truenodeids"),
        right=following("nodes_falsenodeids"),
        values=adds,
        roots=roots,
        outputs=np.zeros_like(roots),
    )


def _attributes(node: bytes) -> dict[str, list[int | float | bytes]]:
    """The repeated attributes of a node by name."""
    found: dict[str, list[int | float | bytes]] = {}
    for number, attribute in _fields(node):
        if number == _ATTRIBUTE and isinstance(attribute, bytes):
            fields = list(_fields(attribute))
            name = next(value for number, value in fields if number == _NAME and isinstance(value, bytes))
            found[name.decode()] = [value for number, value in fields if number in (_FLOATS, _INTEGERS, _STRINGS)]
    return found


def _first(message: bytes, wanted: int) -> bytes:
    """The first field of this number, empty if there is none."""
    return next((value for number, value in _fields(message) if number == wanted and isinstance(value, bytes)), b"")


def _fields(message: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    """Number and value of each field."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        match key & 7:
            case kind if kind == _VARINT:
                value, place = _varint(message, place)
                yield key >> 3, value
            case kind if kind == _BYTES:
                length, place = _varint(message, place)
                yield key >> 3, message[place : place + length]
                place += length
            case kind if kind == _FOUR:
                yield key >> 3, struct.unpack_from("<f", message, place)[0]
                place += 4
            case kind if kind == _EIGHT:
                place += 8
            case kind:
                raise ValueError(f"no protocol buffers: a field of type {kind}")


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """A number written in groups of seven bits, the lowest first, and the place behind it."""
    value = shift = 0
    while True:
        byte = message[place]
        value, place, shift = value | (byte & 127) << shift, place + 1, shift + 7
        if byte < 128:
            return value, place

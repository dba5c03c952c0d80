"""Tensors of an ONNX file that stand in other files, found before the runtime opens any of them."""

from __future__ import annotations

from collections.abc import Iterator

_NESTED: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
"""The fields of `onnx.proto` by which a message holds a tensor, however deep."""
_EXTERNAL_DATA, _DATA_LOCATION = 13, 14


def has_external_data(content: bytes) -> bool:
    """True if a tensor of the file is said to be elsewhere; a `ValueError` if the file is no protocol buffer."""
    waiting = [("model", memoryview(content))]
    while waiting:
        kind, message = waiting.pop()
        for field, value in _fields(message):
            if kind == "tensor" and (field == _EXTERNAL_DATA or (field == _DATA_LOCATION and value != 0)):
                return True
            nested = _NESTED[kind].get(field)
            if nested is not None and isinstance(value, memoryview):
                waiting.append((nested, value))
    return False


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The number and the value of each field; numbers of a fixed size, which are not needed, are skipped."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        match key & 7:
            case 0:
                value, place = _varint(message, place)
                yield key >> 3, value
            case 1:
                place += 8
            case 2:
                length, place = _varint(message, place)
                yield key >> 3, message[place : place + length]
                place += length
            case 5:
                place += 4
            case _:
                raise ValueError("an unknown kind of field")
    if place != len(message):
        raise ValueError("a field ends behind its message")


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """The number at a place, seven bits a byte, and the place behind it."""
    number = shift = 0
    while place < len(message) and shift < 70:
        byte = message[place]
        place += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & (2**64 - 1), place
        shift += 7
    raise ValueError("a number without an end")

"""Fields of a protocol buffer, the format of ONNX files, read without the package onnx, which services do without."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
"""Wire types, the ways to write a value: a number of any length, eight bytes, so many bytes, four bytes."""


def fields(message: memoryview) -> Iterator[tuple[int, int | float | memoryview]]:
    """The number and the value of each field, some of which are messages again; values of eight bytes are left out.

    Raises a `ValueError` where the bytes are no protocol buffer.
    """
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
                if place + 4 <= len(message):
                    yield key >> 3, struct.unpack_from("<f", message, place)[0]
                place += 4
            case kind if kind == _EIGHT:
                place += 8
            case _:
                raise ValueError("an unknown kind of field")
    if place != len(message):
        raise ValueError("a field ends behind its message")


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """The number at a place, seven bits a byte with the lowest first, and the place behind it."""
    number = shift = 0
    while place < len(message) and shift < 70:
        byte = message[place]
        place += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & (2**64 - 1), place
        shift += 7
    raise ValueError("a number without an end")

"""Tensors of an ONNX file that stand in other files, found before the runtime opens any of them."""

from __future__ import annotations

from ultr.scoring.protocol_buffer import fields

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
        for field, value in fields(message):
            if kind == "tensor" and (field == _EXTERNAL_DATA or (field == _DATA_LOCATION and value != 0)):
                return True
            nested = _NESTED[kind].get(field)
            if nested is not None and isinstance(value, memoryview):
                waiting.append((nested, value))
    return False

"""The forest inside an ONNX file that `ultr export` wrote."""

from __future__ import annotations

import numpy as np

from ultr.arrays import Integers
from ultr.scoring.forest import LEAF, Forest
from ultr.scoring.protocol_buffer import fields

_GRAPH, _NODE, _KIND, _ATTRIBUTE = 7, 1, 4, 5
"""Numbers of fields: the graph of a model, a node of a graph, the operator and an attribute of a node."""
_NAME, _FLOATS, _INTEGERS, _STRINGS = 1, 7, 8, 9
"""Those of an attribute: its name and its values, of one of three types."""


def forest_in(content: bytes) -> Forest | None:
    """The forest of a file whose scores are those of one forest with one output; None if there is no such forest.

    What else the graph does with these scores is not looked at: compare them with the file's own.
    """
    graph = _first(memoryview(content), _GRAPH)
    nodes = [node for number, node in fields(graph) if number == _NODE and isinstance(node, memoryview)]
    trees = [node for node in nodes if _first(node, _KIND).tobytes() == b"TreeEnsembleRegressor"]
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


def _attributes(node: memoryview) -> dict[str, list[int | float | bytes]]:
    """The repeated attributes of a node by name."""
    found: dict[str, list[int | float | bytes]] = {}
    for number, attribute in fields(node):
        if number == _ATTRIBUTE and isinstance(attribute, memoryview):
            found[_first(attribute, _NAME).tobytes().decode()] = [
                value.tobytes() if isinstance(value, memoryview) else value
                for number, value in fields(attribute)
                if number in (_FLOATS, _INTEGERS, _STRINGS)
            ]
    return found


def _first(message: memoryview, wanted: int) -> memoryview:
    """The first message or text in a field of this number, empty if there is none."""
    found = (value for number, value in fields(message) if number == wanted and isinstance(value, memoryview))
    return next(found, memoryview(b""))

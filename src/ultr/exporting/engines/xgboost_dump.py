"""The dump of XGBoost that the learning-to-rank plugins of Elasticsearch and OpenSearch read: `model/xgboost+json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ultr.exporting.engines.nested import InnerNode, next_above, trees
from ultr.scoring.forest import Forest


def definition(forest: Forest, names: Sequence[str]) -> str:
    """The `definition` of a model: an array of trees, whose features have the names of the feature set.

    The parser is strict: it wants these keys, the children in this order, and no others. Values below
    `split_condition`, in float32, go to `yes`.
    """

    def split(node: InnerNode[dict[str, Any]]) -> dict[str, Any]:
        yes, no = node.left["nodeid"], node.right["nodeid"]
        return {
            "nodeid": node.number,
            "depth": 0,
            "split": names[node.feature],
            "split_condition": float(next_above(np.array(node.threshold))),
            "yes": yes,
            "no": no,
            "missing": yes if node.missing_left else no,
            "children": [node.left, node.right],
        }

    return json.dumps(trees(forest, split, lambda number, value: {"nodeid": number, "leaf": value}))

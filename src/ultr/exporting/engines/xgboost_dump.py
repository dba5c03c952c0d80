"""The dump of XGBoost that the learning-to-rank plugins of Elasticsearch and OpenSearch read: `model/xgboost+json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ultr.exporting.engines.nested import next_above, trees
from ultr.relevance.forest import Forest


def definition(forest: Forest, names: Sequence[str]) -> str:
    """The `definition` of a model: an array of trees, whose features have the names of the feature set.

    The parser is strict: it wants these keys, the children in this order, and no others. Values below
    `split_condition`, in float32, go to `yes`.
    """
    return json.dumps(trees(forest, lambda *node: _split(names, *node), _leaf))


def _split(
    names: Sequence[str],
    number: int,
    feature: int,
    threshold: np.float32,
    missing_left: bool,  # noqa: FBT001
    left: dict[str, Any],
    right: dict[str, Any],
) -> dict[str, Any]:
    yes, no = left["nodeid"], right["nodeid"]
    return {
        "nodeid": number,
        "depth": 0,
        "split": names[feature],
        "split_condition": float(next_above(np.array(threshold))),
        "yes": yes,
        "no": no,
        "missing": yes if missing_left else no,
        "children": [left, right],
    }


def _leaf(number: int, value: float) -> dict[str, Any]:
    return {"nodeid": number, "leaf": value}

"""The forests of LightGBM and XGBoost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ultr.arrays import Integers
from ultr.relevance.category_splits import by_thresholds
from ultr.scoring.forest import LEAF, Forest

_ZERO = float(np.float32(1e-35))
"""LightGBM takes values up to this size for 0, which is above a threshold of minus this."""


def at_most(threshold: float) -> np.float32:
    """The largest float32 that is not above a threshold: float32 values compare with both alike.

    >>> float(at_most(0.1)) <= 0.1
    True
    """
    # A split of missing values from all others has a threshold that no float32 reaches.
    nearest = np.float32(min(threshold, float(np.finfo(np.float32).max)))
    return nearest if float(nearest) <= threshold else np.nextafter(nearest, np.float32(-np.inf))


def forest_of_lightgbm(
    trees: Sequence[dict[str, Any]], outputs: int, codes: Mapping[int, Integers] | None = None
) -> Forest:
    """The forest of the `tree_info` of LightGBM's dump; one tree for each output in turn.

    `codes` has the category codes of each categorical feature by the numbers that LightGBM knows them by.
    """
    rows: list[tuple[float, ...]] = []
    for number, tree in enumerate(trees):
        nodes = _rows(by_thresholds(tree["tree_structure"], codes or {}), len(rows))
        rows += [(number, number % outputs, *node) for node in nodes]
    return Forest.of_matrix(np.array(rows, dtype=np.float64).reshape(-1, 8))


def _rows(node: dict[str, Any], number: int) -> Iterator[tuple[float, ...]]:
    """The rows of a node and of all below it, numbered from `number`, as in `Forest.as_matrix` behind its tree."""
    if "split_feature" not in node:
        yield LEAF, 0, 0, number, number, node["leaf_value"]
        return
    threshold = float(node["threshold"])
    if threshold == -_ZERO:
        threshold = float(np.nextafter(np.float32(threshold), np.float32(-np.inf)))
    # Where no value was missing in training, LightGBM takes a missing one for 0.
    missing_left = node["default_left"] if node["missing_type"] == "NaN" else threshold >= 0
    left = list(_rows(node["left_child"], number + 1))
    right = number + 1 + len(left)
    yield node["split_feature"], float(at_most(threshold)), missing_left, number + 1, right, 0.0
    yield from left
    yield from _rows(node["right_child"], right)


def forest_of_xgboost(trees: Sequence[dict[str, Any]]) -> Forest:
    """The forest of the `trees` in XGBoost's model file, without its base score, which is the same for all."""
    forest = Forest.empty()
    for tree in trees:
        left = np.array(tree["left_children"], dtype=np.int64)
        leaf, nodes = left < 0, np.arange(len(left))
        # Of a node below which value it goes left, of a leaf what it adds.
        numbers = np.array(tree["split_conditions"], dtype=np.float32)
        below = np.nextafter(numbers, np.float32(-np.inf))
        forest = forest.add(
            Forest(
                features=np.where(leaf, LEAF, np.array(tree["split_indices"], dtype=np.int64)),
                thresholds=np.where(leaf, np.float32(0), below),
                missing_left=~leaf & np.array(tree["default_left"], dtype=bool),
                left=np.where(leaf, nodes, left),
                right=np.where(leaf, nodes, np.array(tree["right_children"], dtype=np.int64)),
                values=np.where(leaf, numbers.astype(np.float64), 0.0),
                roots=np.zeros(1, dtype=np.int64),
                outputs=np.zeros(1, dtype=np.int64),
            )
        )
    return forest

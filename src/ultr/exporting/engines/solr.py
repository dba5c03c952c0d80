"""The `MultipleAdditiveTreesModel` of Solr."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ultr.exporting.engines.nested import InnerNode, trees
from ultr.scoring.forest import Forest

_SLACK = np.float32(1e-6)
"""Solr adds this to a threshold, in float32, and sends left what is at most the sum."""


def model(forest: Forest, names: Sequence[str], *, name: str) -> dict[str, Any]:
    """The body of `PUT /solr/<collection>/schema/model-store`, for Solr 9.2 or later."""

    def split(node: InnerNode[dict[str, Any]]) -> dict[str, Any]:
        return {
            "feature": names[node.feature],
            "threshold": str(_threshold(node.threshold)),
            "missing": "left" if node.missing_left else "right",
            "left": node.left,
            "right": node.right,
        }

    roots = trees(forest, split, lambda _, value: {"value": str(value)})
    return {
        "class": "org.apache.solr.ltr.model.MultipleAdditiveTreesModel",
        "name": name,
        "features": [{"name": each} for each in names],
        # Without this, nodes are not asked where missing values go.
        "params": {"isNullSameAsZero": False, "trees": [{"weight": "1", "root": root} for root in roots]},
    }


def _threshold(threshold: np.float32) -> np.float32:
    """The float32 whose sum with the slack is the threshold; where there is none, 0 is on the right side of the sum."""
    found = threshold - _SLACK
    while found + _SLACK >= threshold:
        found = np.nextafter(found, np.float32(-np.inf))
    while found + _SLACK < threshold:
        found = np.nextafter(found, np.float32(np.inf))
    if threshold < 0 <= found + _SLACK:
        found = np.nextafter(found, np.float32(-np.inf))
    return found

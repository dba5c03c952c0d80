"""The trained models of Elasticsearch's own learning to rank."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ultr.scoring.forest import LEAF, Forest


def trained_model(forest: Forest, names: Sequence[str]) -> dict[str, Any]:
    """The body of `PUT _ml/trained_models/<id>`; its feature extractors are to be filled in.

    The definition is JSON, packed by gzip, in base64.
    """
    packed = gzip.compress(json.dumps(definition(forest, names)).encode(), mtime=0)
    extractors = [{"query_extractor": {"feature_name": name, "query": {"match_all": {}}}} for name in names]
    return {
        "inference_config": {"learning_to_rank": {"feature_extractors": extractors}},
        "compressed_definition": base64.b64encode(packed).decode(),
    }


def definition(forest: Forest, names: Sequence[str]) -> dict[str, Any]:
    """An ensemble of trees; values that are at most the threshold (`lte`) go left."""
    members = [_tree(forest.some(slice(number, number + 1)), names) for number in range(len(forest))]
    return {
        "trained_model": {
            "ensemble": {
                "feature_names": list(names),
                "target_type": "regression",
                "trained_models": members,
                "aggregate_output": {"weighted_sum": {"weights": [1.0] * len(members)}},
            }
        }
    }


def _tree(tree: Forest, names: Sequence[str]) -> dict[str, Any]:
    structure = [_node(tree, node) for node in range(len(tree.features))]
    return {"tree": {"feature_names": list(names), "tree_structure": structure, "target_type": "regression"}}


def _node(tree: Forest, node: int) -> dict[str, Any]:
    if tree.features[node] == LEAF:
        return {"node_index": node, "leaf_value": float(tree.values[node])}
    return {
        "node_index": node,
        "split_feature": int(tree.features[node]),
        "decision_type": "lte",
        "threshold": float(np.float64(tree.thresholds[node])),
        "default_left": bool(tree.missing_left[node]),
        "left_child": int(tree.left[node]),
        "right_child": int(tree.right[node]),
    }

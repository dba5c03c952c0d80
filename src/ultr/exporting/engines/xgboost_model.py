"""The model file of XGBoost, as `Booster.save_model("model.json")` writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ultr.errors import OptionError
from ultr.exporting.engines.nested import next_above
from ultr.scoring.forest import LEAF, Forest

_NO_PARENT = 2**31 - 1


def model(forest: Forest, names: Sequence[str]) -> dict[str, Any]:
    """The model that `Booster(model_file=...)` reads.

    Leaves are split conditions and base weights of nodes without children; the base score is 0. A name that XGBoost
    would refuse is an `OptionError`.
    """
    for name in names:
        if set(name) & set("[]<"):
            raise OptionError(f"XGBoost refuses the feature name {name!r}; give another one (--feature-map)")
    single = [_siblings_together(forest.some(slice(number, number + 1))) for number in range(len(forest))]
    members = [_tree(tree, number, len(names)) for number, tree in enumerate(single)]
    counts = {"num_parallel_tree": "1", "num_trees": str(len(members))}
    return {
        "learner": {
            "attributes": {},
            "feature_names": list(names),
            "feature_types": ["float"] * len(names),
            "gradient_booster": {
                "model": {
                    "gbtree_model_param": counts,
                    "iteration_indptr": list(range(len(members) + 1)),
                    "tree_info": [0] * len(members),
                    "trees": members,
                },
                "name": "gbtree",
            },
            "learner_model_param": {
                "base_score": "0E0",
                "boost_from_average": "1",
                "num_class": "0",
                "num_feature": str(len(names)),
                "num_target": "1",
            },
            "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
        },
        "version": [3, 0, 0],
    }


def _siblings_together(tree: Forest) -> Forest:
    """The same tree level by level: below its sixth level, XGBoost looks for the right child next to the left one."""
    order = [0]
    for node in order:
        if tree.features[node] != LEAF:
            order += [int(tree.left[node]), int(tree.right[node])]
    place = np.argsort(order)
    return replace(
        tree,
        features=tree.features[order],
        thresholds=tree.thresholds[order],
        missing_left=tree.missing_left[order],
        left=place[tree.left[order]],
        right=place[tree.right[order]],
        values=tree.values[order],
    )


def _tree(tree: Forest, number: int, features: int) -> dict[str, Any]:
    leaf = tree.features == LEAF
    nodes = len(tree.features)
    parents = np.full(nodes, _NO_PARENT)
    for side in (tree.left, tree.right):
        parents[side[~leaf]] = np.flatnonzero(~leaf)
    values = tree.values.astype(np.float32)
    conditions = np.where(leaf, values, next_above(tree.thresholds))
    zeros = [0.0] * nodes
    return {
        "base_weights": values.tolist(),
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": tree.missing_left.astype(int).tolist(),
        "id": number,
        "left_children": np.where(leaf, -1, tree.left).tolist(),
        "loss_changes": zeros,
        "parents": parents.tolist(),
        "right_children": np.where(leaf, -1, tree.right).tolist(),
        "split_conditions": conditions.tolist(),
        "split_indices": np.where(leaf, 0, tree.features).tolist(),
        "split_type": [0] * nodes,
        "sum_hessian": zeros,
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(features),
            "num_nodes": str(nodes),
            "size_leaf_vector": "1",
        },
    }

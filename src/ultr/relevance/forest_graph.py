"""A forest as a piece of a graph that torch writes as ONNX."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from ultr.scoring.forest import LEAF, Forest


class ForestGraph(nn.Module):
    """Raw features, NaN where one is missing, to outputs: one `TreeEnsembleRegressor` of ONNX."""

    def __init__(self, forest: Forest, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs
        tree = forest.trees
        first = forest.roots[tree]
        leaf = forest.features == LEAF
        nodes = np.arange(len(tree)) - first
        self.attributes = {
            "n_targets": outputs,
            "aggregate_function": "SUM",
            "post_transform": "NONE",
            "nodes_treeids": tree.tolist(),
            "nodes_nodeids": nodes.tolist(),
            "nodes_featureids": np.where(leaf, 0, forest.features).tolist(),
            "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
            "nodes_values": forest.thresholds.astype(np.float64).tolist(),
            "nodes_truenodeids": np.where(leaf, 0, forest.left - first).tolist(),
            "nodes_falsenodeids": np.where(leaf, 0, forest.right - first).tolist(),
            "nodes_missing_value_tracks_true": forest.missing_left.astype(int).tolist(),
            "target_treeids": tree[leaf].tolist(),
            "target_nodeids": nodes[leaf].tolist(),
            "target_ids": forest.outputs[tree[leaf]].tolist(),
            "target_weights": forest.values[leaf].tolist(),
        }

    def forward(self, features: Tensor) -> Tensor:
        """[documents, features] -> [documents, outputs]."""
        return torch.onnx.ops.symbolic(
            "ai.onnx.ml::TreeEnsembleRegressor",
            [features],
            self.attributes,
            dtype=torch.float32,
            shape=(features.shape[0], self.outputs),
            version=3,
        )

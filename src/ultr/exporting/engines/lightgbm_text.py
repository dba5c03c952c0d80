"""The model file of LightGBM, and its dump, which Vespa reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ultr.errors import OptionError
from ultr.exporting.engines.nested import InnerNode, next_above, trees
from ultr.scoring.forest import LEAF, Forest

_NAN = 2 << 2
"""Decision type of a node whose missing values are NaN."""
_DEFAULT_LEFT = 2
_FORBIDDEN = ' \t"[]{},:'


def model_text(forest: Forest, names: Sequence[str]) -> str:
    """The text that `lightgbm.Booster(model_str=...)` reads; a name that it would refuse is an `OptionError`."""
    for name in names:
        if not name or set(name) & set(_FORBIDDEN):
            raise OptionError(f"LightGBM refuses the feature name {name!r}; give another one (--feature-map)")
    blocks = [_tree(forest.some(slice(number, number + 1)), number) for number in range(len(forest))]
    header = [
        "tree",
        "version=v4",
        "num_class=1",
        "num_tree_per_iteration=1",
        "label_index=0",
        f"max_feature_idx={len(names) - 1}",
        "objective=lambdarank",
        f"feature_names={' '.join(names)}",
        f"feature_infos={' '.join(['[-1e308:1e308]'] * len(names))}",
        f"tree_sizes={' '.join(str(len(block)) for block in blocks)}",
        "",
        "",
    ]
    return "\n".join(header) + "".join(blocks) + "end of trees\n\npandas_categorical:null\n"


def dump(forest: Forest, names: Sequence[str]) -> dict[str, Any]:
    """The content of `Booster.dump_model`, as far as Vespa reads it.

    Vespa takes `<=` for `<`, so that thresholds are written as the next value above.
    """

    def split(node: InnerNode[dict[str, Any]]) -> dict[str, Any]:
        return {
            "split_feature": node.feature,
            "threshold": float(next_above(np.array(node.threshold))),
            "decision_type": "<=",
            "default_left": node.missing_left,
            "missing_type": "NaN",
            "left_child": node.left,
            "right_child": node.right,
        }

    roots = trees(forest, split, lambda _, value: {"leaf_value": value})
    return {
        "name": "tree",
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": len(names) - 1,
        "objective": "lambdarank",
        "average_output": False,
        "feature_names": list(names),
        "feature_infos": {},
        "pandas_categorical": [],
        "tree_info": [{"tree_index": number, "tree_structure": root} for number, root in enumerate(roots)],
    }


def _tree(tree: Forest, number: int) -> str:
    leaf = tree.features == LEAF
    # Inner nodes and leaves are numbered apart; a leaf n is written as -1 - n.
    numbers = np.where(leaf, -np.cumsum(leaf), np.cumsum(~leaf) - 1)
    inner = np.flatnonzero(~leaf)
    lines = {
        "Tree": number,
        "num_leaves": int(leaf.sum()),
        "num_cat": 0,
        "split_feature": _joined(tree.features[inner]),
        "split_gain": _joined(np.ones(len(inner), dtype=np.int64)),
        "threshold": _joined(tree.thresholds[inner].astype(np.float64)),
        "decision_type": _joined(_NAN + _DEFAULT_LEFT * tree.missing_left[inner]),
        "left_child": _joined(numbers[tree.left[inner]]),
        "right_child": _joined(numbers[tree.right[inner]]),
        "leaf_value": _joined(tree.values[leaf]),
        "leaf_weight": _joined(np.ones(int(leaf.sum()), dtype=np.int64)),
        "leaf_count": _joined(np.ones(int(leaf.sum()), dtype=np.int64)),
        "internal_value": _joined(np.zeros(len(inner), dtype=np.int64)),
        "internal_weight": _joined(np.ones(len(inner), dtype=np.int64)),
        "internal_count": _joined(np.ones(len(inner), dtype=np.int64)),
        "is_linear": 0,
        "shrinkage": 1,
    }
    return "\n".join(f"{name}={value}" for name, value in lines.items()) + "\n\n\n"


def _joined(values: Iterable[Any]) -> str:
    return " ".join(repr(each.item()) for each in values)

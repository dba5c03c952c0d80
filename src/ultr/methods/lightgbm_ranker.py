"""LightGBM's LambdaMART, on raw clicks or with its own correction for positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch

from ultr.errors import imported
from ultr.methods.lambdamart import LabelledLists, LambdaMART
from ultr.relevance.forest import forest_of_lightgbm
from ultr.relevance.relevance_model import Relevance
from ultr.relevance.trees import Trees, category_parameters
from ultr.scoring.forest import Forest
from ultr.train.objective import ScalarObjective


class _LightGBM:
    """A booster of LightGBM with its data."""

    def __init__(self, booster: Any, categories: Mapping[int, Sequence[str]]) -> None:
        self._booster = booster
        self._codes = {column: np.arange(len(values)) for column, values in categories.items()}

    def grow(self) -> None:
        self._booster.update()

    def value(self) -> float:
        ((_, _, value, _),) = self._booster.eval_valid()
        return float(value)

    def forest(self, trees: int) -> Forest:
        return forest_of_lightgbm(self._booster.dump_model(num_iteration=trees)["tree_info"], 1, self._codes)

    def tell(self, objective: ScalarObjective) -> None:
        """LightGBM keeps to itself what it learned about positions."""


@dataclass(kw_only=True, eq=False)
class LightGBMRanker(LambdaMART):
    """LambdaMART as LightGBM has it, on raw clicks or with a number for each position that is added while it learns.

        L = sum_{i clicked, j not} |delta nDCG_ij| log(1 + exp(s_j - s_i)),   s_i = f(x_i) [+ b_p(i) if debias]

    It learns from drawn sessions with a click, by default up to 300 trees of 31 leaves and 255 bins at a learning rate
    of 0.1, over all pairs of a list. With validation data, the trees with the best nDCG@10 are kept, and training ends
    after 30 without a better one. What it learned about positions, LightGBM does not tell, so clicks are predicted from
    f(x) alone. Position is the only bias factor it knows. A killed run starts anew and ends with the same trees.

    Ke et al.: LightGBM: A Highly Efficient Gradient Boosting Decision Tree, NIPS 2017; Burges: From RankNet to
    LambdaRank to LambdaMART, Microsoft Research 2010.
    """

    name: ClassVar[str] = "lightgbm"

    relevance: Relevance = field(default_factory=lambda: Trees(leaves=31, fewest_documents=20, shrinkage=0.0))
    """The size of the trees and how fast they learn, the rest as LightGBM has it; the loss is LightGBM's own."""

    def boosting(self, lists: LabelledLists, held_out: LabelledLists | None) -> _LightGBM:
        """LightGBM's `lambdarank`; debiased with the `position` of its data set."""
        lightgbm = imported("lightgbm", "trees", why=f"{type(self).__name__} needs lightgbm")
        trees = self.relevance
        assert isinstance(trees, Trees)
        columns, fewest = list(lists.categories), min(trees.fewest_documents, max(len(lists.labels) // 4, 1))
        options = {
            "objective": "lambdarank",
            "metric": "ndcg",
            "eval_at": [10],
            "lambdarank_truncation_level": int(lists.lengths.max()),
            "num_leaves": trees.leaves,
            "max_bin": trees.bins,
            "min_data_in_leaf": fewest,
            "lambda_l2": trees.shrinkage,
            "learning_rate": trees.learning_rate,
            "num_threads": torch.get_num_threads(),
            "deterministic": True,
            "force_col_wise": True,
            "seed": self.seed % 2**31,
            "verbosity": -1,
            **(category_parameters(columns, lists.features.shape[1], fewest) if columns else {}),
        }
        data = lightgbm.Dataset(
            lists.features,
            label=lists.labels,
            group=lists.lengths,
            position=lists.positions - 1 if self.debias else None,
            categorical_feature=columns,
            params=options,
        )
        booster = lightgbm.Booster(options, data)
        if held_out is not None:
            labels, lengths = held_out.labels, held_out.lengths
            watched = data.create_valid(held_out.features, label=labels, group=lengths, params=options)
            booster.add_valid(watched, "validation")
        return _LightGBM(booster, lists.categories)

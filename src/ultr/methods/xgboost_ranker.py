"""XGBoost's LambdaMART, on raw clicks or with its own correction for positions."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ultr.arrays import Doubles
from ultr.data import ragged
from ultr.errors import OptionError, UltrWarning, imported
from ultr.methods.factors import Factor
from ultr.methods.lambdamart import LabelledLists, LambdaMART
from ultr.relevance.forest import forest_of_xgboost
from ultr.relevance.trees import Trees
from ultr.scoring.forest import Forest
from ultr.train.lists import Batch
from ultr.train.objective import ScalarObjective

_SMALLEST = 1e-3
"""A position that was never clicked has t+ = 0; its clicks are predicted with this."""


class PlaceObjective(ScalarObjective):
    """XGBoost's bias of clicks, t+, and of skips, t-, by position; 1 for a position that it has not seen."""

    t_plus: Tensor
    t_minus: Tensor

    def __init__(self, positions: int) -> None:
        super().__init__()
        self.register_buffer("t_plus", torch.ones(positions))
        self.register_buffer("t_minus", torch.ones(positions))

    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """f(x) + log t+, [lists, width]."""
        return super().click_logits(r, batch) + batch.pad(self.t_plus[batch.positions].clamp(min=_SMALLEST).log())


class _XGBoost:
    """A booster of XGBoost with its data."""

    def __init__(self, booster: Any, data: Any, held_out: Any) -> None:
        self._booster, self._data, self._held_out = booster, data, held_out
        self._trees = 0

    def grow(self) -> None:
        self._booster.update(self._data, self._trees)
        self._trees += 1

    def value(self) -> float:
        told: str = self._booster.eval_set([(self._held_out, "validation")], self._trees)
        return float(told.rpartition(":")[2])

    def forest(self, trees: int) -> Forest:
        return forest_of_xgboost(self._learner()["gradient_booster"]["model"]["trees"][:trees])

    def tell(self, objective: ScalarObjective) -> None:
        """Hand over t+ and t- as they were after the last tree."""
        if isinstance(objective, PlaceObjective):
            learned = self._learner()["objective"]
            for bias, name in ((objective.t_plus, "ti+"), (objective.t_minus, "tj-")):
                bias[: len(learned[name])] = torch.tensor(learned[name])

    def _learner(self) -> dict[str, Any]:
        learner: dict[str, Any] = json.loads(self._booster.save_raw("json"))["learner"]
        return learner


@dataclass(kw_only=True, eq=False)
class XGBoostRanker(LambdaMART):
    """LambdaMART as XGBoost has it, on raw clicks or with weights for the positions of both documents of a pair.

        L = sum_{i clicked, j not} |delta nDCG_ij| log(1 + exp(f(x_j) - f(x_i))) [/ (t+_p(i) t-_p(j)) if debias]

    It learns from drawn sessions with a click, by default up to 300 trees of 31 leaves and 255 bins at a learning rate
    of 0.1, over all pairs of a list. With validation data, the trees with the best nDCG@10 are kept, and training ends
    after 30 without a better one. Position is the only bias factor it knows, and it takes the place in the list for it.
    A killed run starts anew and ends with the same trees.

    Chen, Guestrin: XGBoost: A Scalable Tree Boosting System, KDD 2016; Hu, Wang, Peng, Li: Unbiased LambdaMART: An
    Unbiased Pairwise Learning-to-Rank Algorithm, WWW 2019.
    """

    name: ClassVar[str] = "xgboost"
    without: ClassVar[tuple[str, ...]] = (*LambdaMART.without, "relevance__fewest_documents")

    def library(self) -> str:
        """XGBoost grows these trees."""
        return "xgboost"

    def objective(self, factors: Sequence[Factor]) -> ScalarObjective:
        """The objective with XGBoost's t+ and t- for each position, if position bias is corrected."""
        return PlaceObjective(len(factors[0].levels)) if factors else ScalarObjective()

    def boosting(self, lists: LabelledLists, held_out: LabelledLists | None) -> _XGBoost:
        """XGBoost's `rank:ndcg`, leaf by leaf as LightGBM grows; debiased with `lambdarank_unbiased`."""
        xgboost = imported("xgboost", "xgboost", why=f"{type(self).__name__} needs xgboost")
        trees, threads = self.relevance, torch.get_num_threads()
        assert isinstance(trees, Trees)
        if self.debias and (lists.positions != ragged.ranks(lists.offsets) + 1).any():
            message = (
                "XGBoost takes the place in a list for the position, and some lists of the log leave positions out"
            )
            warnings.warn(message, UltrWarning, stacklevel=5)
        if lists.categories:
            message = (
                f"XGBoostRanker takes the codes of {len(lists.categories)} categorical features for numbers; "
                "the other methods know them as categories"
            )
            warnings.warn(message, UltrWarning, stacklevel=5)

        def matrix(part: LabelledLists, ref: Any = None) -> Any:
            return xgboost.QuantileDMatrix(
                part.features, label=part.labels, group=part.lengths, max_bin=trees.bins, ref=ref, nthread=threads
            )

        data = matrix(lists)
        watched = None if held_out is None else matrix(held_out, data)
        options = {
            "objective": "rank:ndcg",
            "eval_metric": "ndcg@10",
            "lambdarank_unbiased": self.debias,
            "lambdarank_pair_method": "topk",
            "lambdarank_num_pair_per_sample": int(lists.lengths.max()),
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_leaves": trees.leaves,
            "max_depth": 0,
            "max_bin": trees.bins,
            "lambda": trees.shrinkage,
            "learning_rate": trees.learning_rate,
            "nthread": threads,
            "seed": self.seed % 2**31,
            "verbosity": 0,
        }
        known = [data] if watched is None else [data, watched]
        return _XGBoost(xgboost.Booster(options, known), data, watched)

    def propensities(self) -> tuple[Doubles, Doubles]:
        """The learned t+ and t- by position, those of the first position being 1."""
        objective = self.ranker_.objective
        if not isinstance(objective, PlaceObjective):
            raise OptionError("XGBoostRanker learns propensities with debias=True only")
        return objective.t_plus.double().numpy(), objective.t_minus.double().numpy()

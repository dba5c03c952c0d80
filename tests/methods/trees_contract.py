"""The contract of methods once more, with trees as the relevance model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ultr.methods.estimator import Estimator
from ultr.relevance import Relevance, Trees
from ultr.testing.methods import Data, MethodContract

CODES = "linear_1"
"""The feature that stands for a category."""


class TreesContract(MethodContract):
    """The same tests with trees as the relevance model."""

    relevance: ClassVar[Relevance] = Trees(rounds=8, fewest_documents=10)
    common_changes: ClassVar[dict[str, Any]] = {
        "relevance": Trees(rounds=8, fewest_documents=10, leaves=3),
        "relevance__rounds": 6,
        "relevance__leaves": 4,
        "relevance__learning_rate": 0.2,
        "relevance__fewest_documents": 200,
        "relevance__shrinkage": 10.0,
        "relevance__bins": 7,
        "relevance__categorical": (CODES,),
        "seed": 1,
        "seeds": 2,
        "value": {"purchase": 1.0},
        "evaluate_every": 3,
        "patience": 1,
    }
    fewest_scores: ClassVar[int] = 7
    longer: ClassVar[dict[str, Any]] = {"relevance__rounds": 25, "evaluate_every": 5}
    overfitting: ClassVar[dict[str, Any]] = {
        "relevance__rounds": 20,
        "relevance__learning_rate": 0.9,
        "evaluate_every": 1,
    }

    def data_for(self, option: str, method: type[Estimator]) -> Data:
        """For categories, data with one feature that holds the codes of one."""
        data = super().data_for(option, method)
        if option != "relevance__categorical":
            return data
        features, column = np.zeros_like(data.features), data.feature_names.index(CODES)
        eighths = np.argsort(np.argsort(data.features[:, column])) * 8 // len(features)
        features[:, column] = eighths * 3 % 8
        return replace(data, features=features)

    def few_steps_on(self, lists: int) -> dict[str, Any]:
        """Options of a few small steps; trees take all lists in any case."""
        return {"relevance__rounds": 2}

"""The upper bound: the same relevance model on relevance labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.methods.estimator import Estimator
from ultr.methods.factors import Factor
from ultr.relevance.inputs import Inputs
from ultr.train.lists import TrainingLists
from ultr.train.objective import ScalarObjective
from ultr.train.stage import Stage


@dataclass(kw_only=True, eq=False)
class LabelBaseline(Estimator[ScalarObjective]):
    """Labels of all candidates in the place of clicks: what a debiased ranker can hope to reach.

    L = - sum_i (2^y_i - 1) / 2^y_max log softmax_i( f(x_i) )
    """

    name: ClassVar[str] = "label"
    learns_from: ClassVar[type[ClickLog] | type[JudgedLists]] = JudgedLists
    without: ClassVar[tuple[str, ...]] = ("value",)

    def objective(self, factors: Sequence[Factor]) -> ScalarObjective:
        """No bias parameters."""
        return ScalarObjective()

    def stages(self, objective: ScalarObjective, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """One stage, on the labels."""
        return [Stage("labels", steps, objective.click_loss, objective.score, clicked_only=True)]

    def training_lists(self, data: Any, inputs: Inputs) -> TrainingLists:
        """All candidates with their gains."""
        gains = (2.0**data.labels - 1) / 2.0**data.max_label
        clicks, impressions = gains.astype(np.float32), np.ones(data.queries, dtype=np.int64)
        return TrainingLists(inputs, np.arange(data.documents), data.offsets, (), clicks, impressions)

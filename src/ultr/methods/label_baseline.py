"""The upper bound: the same network on relevance labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.methods.estimator import Estimator
from ultr.methods.network import Shape
from ultr.methods.scalar import ScalarNetwork
from ultr.train.inputs import Inputs
from ultr.train.lists import TrainingLists
from ultr.train.stage import Stage


@dataclass(kw_only=True, eq=False)
class LabelBaseline(Estimator):
    """Labels of all candidates in the place of clicks: what a debiased ranker can hope to reach.

    L = - sum_i (2^y_i - 1) / 2^y_max log softmax_i( f(x_i) )
    """

    name: ClassVar[str] = "label"
    learns_from: ClassVar[type[ClickLog] | type[JudgedLists]] = JudgedLists

    def build(self, shape: Shape, generator: torch.Generator) -> ScalarNetwork:
        """A network with one score a document."""
        return ScalarNetwork(shape.features, self.hidden, generator)

    def stages(self, network: ScalarNetwork, lists: TrainingLists) -> Sequence[Stage]:
        """One stage, on the labels."""
        return [Stage("labels", self.first_stage_steps(), network.loss, (network,), network.score)]

    def training_lists(self, data: Any, inputs: Inputs) -> TrainingLists:
        """All candidates with their gains."""
        gains = (2.0**data.labels - 1) / 2.0**data.max_label
        return TrainingLists.of_judged(data, gains.astype(np.float32), inputs)

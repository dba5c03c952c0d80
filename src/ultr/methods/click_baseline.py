"""The lower bound: the same network on raw clicks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from ultr.methods.estimator import Estimator
from ultr.methods.network import Shape
from ultr.methods.scalar import ScalarNetwork
from ultr.train.lists import TrainingLists
from ultr.train.stage import Stage


@dataclass(kw_only=True, eq=False)
class ClickBaseline(Estimator):
    """Raw clicks taken for relevance, bias and all: what every debiased ranker must beat.

    L = - sum_i c_i log softmax_i( f(x_i) )
    """

    name: ClassVar[str] = "click"

    def build(self, shape: Shape, generator: torch.Generator) -> ScalarNetwork:
        """A network with one score a document."""
        return ScalarNetwork(shape.features, self.hidden, generator)

    def stages(self, network: ScalarNetwork, lists: TrainingLists) -> Sequence[Stage]:
        """One stage, on the clicks."""
        return [Stage("clicks", self.first_stage_steps(), network.loss, (network,), network.score)]

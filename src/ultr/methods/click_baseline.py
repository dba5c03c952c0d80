"""The lower bound: the same relevance model on raw clicks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ultr.methods.estimator import Estimator
from ultr.methods.factors import Factor
from ultr.train.lists import TrainingLists
from ultr.train.objective import ScalarObjective
from ultr.train.stage import Stage


@dataclass(kw_only=True, eq=False)
class ClickBaseline(Estimator[ScalarObjective]):
    """Raw clicks taken for relevance, bias and all: what every debiased ranker must beat.

    L = - sum_i c_i log softmax_i( f(x_i) )
    """

    name: ClassVar[str] = "click"

    def learns(self, factor: Factor) -> bool:
        """No bias factor at all."""
        return False

    def objective(self, factors: Sequence[Factor]) -> ScalarObjective:
        """No bias parameters."""
        return ScalarObjective()

    def stages(self, objective: ScalarObjective, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """One stage, on the clicks."""
        return [Stage("clicks", steps, objective.click_loss, objective.score, clicked_only=True)]

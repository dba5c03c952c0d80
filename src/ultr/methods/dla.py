"""DLA: ranker and propensities learn from each other, each weighted by the other's inverse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from torch import Tensor

from ultr import checks
from ultr.arrays import Doubles
from ultr.losses import first_over_each, softmax_cross_entropy
from ultr.methods.estimator import Estimator
from ultr.methods.factors import Factor
from ultr.methods.observation import Observation
from ultr.train.lists import Batch, TrainingLists
from ultr.train.objective import ScalarObjective
from ultr.train.stage import Stage


class DualObjective(ScalarObjective):
    """h(t), the logit of observation, beside f(x), the logit of relevance."""

    def __init__(self, factors: Sequence[Factor], *, smooth: bool = True) -> None:
        super().__init__()
        self.observation = Observation(factors, 1, combine="sum", smooth=smooth)

    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """f(x) + h(t), [lists, width]: a click needs both."""
        return batch.pad(r.squeeze(-1)) + self._observation(batch)

    def loss(self, r: Tensor, batch: Batch) -> Tensor:
        """The inverse-propensity loss of the ranker plus the inverse-relevance loss of the propensities, [lists]."""
        relevance, observation, clicks = batch.pad(r.squeeze(-1)), self._observation(batch), batch.clicks
        of_ranker = softmax_cross_entropy(relevance, clicks * first_over_each(observation), mask=batch.mask)
        of_propensities = softmax_cross_entropy(observation, clicks * first_over_each(relevance), mask=batch.mask)
        return of_ranker + of_propensities

    def _observation(self, batch: Batch) -> Tensor:
        return batch.pad(self.observation(batch.factors).squeeze(-1))

    def propensities(self) -> dict[str, Doubles]:
        """The learned propensities of each bias factor by its name, relative to its first level, [levels]."""
        logits = {name: table[:, 0].astype(np.float64) for name, table in self.observation.embeddings().items()}
        return {name: np.exp(values - values[0]) for name, values in logits.items()}


@dataclass(kw_only=True, eq=False)
class DLA(Estimator[DualObjective]):
    """The dual learning algorithm: unbiased ranking and unbiased propensity estimation as one problem.

        L = - sum_i c_i theta_1 / theta_i log softmax_i( f(x_i) ) - sum_i c_i g_1 / g_i log softmax_i( h(t_i) )

    with theta = softmax(h) and g = softmax(f) within the list, 1 its first document. It assumes that the click
    probability is observation times relevance, two scalars. A bias factor that is the same for a whole list cancels in
    both softmaxes, so it is left out.

    Ai, Bi, Luo, Guo, Croft: Unbiased Learning to Rank with Unbiased Propensity Estimation, SIGIR 2018.
    """

    name: ClassVar[str] = "dla"
    within_lists: ClassVar[bool] = True

    smooth: bool = True
    """A smooth curve over the bins of a numeric bias factor; else a value for each bin."""

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        super().check()
        checks.boolean("smooth", self.smooth)

    def objective(self, factors: Sequence[Factor]) -> DualObjective:
        """A logit for each level of each bias factor."""
        return DualObjective(factors, smooth=self.smooth)

    def stages(self, objective: DualObjective, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """Both losses at once."""
        return [
            Stage(
                "dual",
                steps,
                objective.loss,
                objective.score,
                bias=(objective,),
                clicked_only=True,
                held_out=objective.click_loss,
            )
        ]

    def propensities(self) -> dict[str, Doubles]:
        """The learned propensities of each bias factor by its name, relative to its first level, [levels]."""
        return self.ranker_.objective.propensities()

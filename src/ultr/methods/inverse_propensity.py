"""IPW: the list-wise loss on clicks divided by known or estimated propensities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ultr import checks
from ultr.losses import softmax_cross_entropy
from ultr.methods.estimator import Estimator
from ultr.methods.factors import Factor
from ultr.methods.position_propensities import ESTIMATORS, check_enough, check_given, given_or_estimated
from ultr.train.lists import Batch, TrainingLists
from ultr.train.objective import ScalarObjective
from ultr.train.stage import Models, Stage


class WeightedObjective(ScalarObjective):
    """Fixed propensities by position."""

    propensities: Tensor

    def __init__(self, positions: int) -> None:
        super().__init__()
        self.register_buffer("propensities", torch.ones(positions))

    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """f(x) + log theta, [lists, width]."""
        propensities = batch.pad(self.propensities[batch.positions])
        return batch.pad(r.squeeze(-1)) + propensities.clamp(min=1e-9).log()

    def weighted_loss(self, r: Tensor, batch: Batch) -> Tensor:
        """Cross-entropy of the clicks divided by their propensities, [lists]."""
        weights = batch.pad(1 / self.propensities[batch.positions])
        return softmax_cross_entropy(batch.pad(r.squeeze(-1)), batch.clicks * weights, mask=batch.mask)


@dataclass(kw_only=True, eq=False)
class InversePropensity(Estimator[WeightedObjective]):
    """Inverse propensity weighting: a click at a position that is seldom examined counts for more.

        L = - sum_i c_i / theta_p(i) log softmax_i( f(x_i) )

    Propensities are given, or estimated from the log: from documents shown at several positions (`pivot`,
    `adjacent-chain`, `all-pairs`), or from the click rates of a log whose rankings were random (`click-rate`).

    Joachims, Swaminathan, Schnabel: Unbiased Learning-to-Rank with Biased Feedback, WSDM 2017.
    """

    name: ClassVar[str] = "inverse-propensity"
    position_only: ClassVar[bool] = True

    propensities: tuple[float, ...] | None = None
    """By position from the first, in any unit (`read_propensities` reads a file); by default estimated."""
    estimator: str = "all-pairs"
    """How to estimate them: pivot, adjacent-chain, all-pairs, or click-rate for a randomised log."""
    smallest: float = 0.01
    """Propensities below this share of the first one are raised to it, so that no click outweighs all others."""

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        super().check()
        checks.one_of("estimator", self.estimator, ESTIMATORS)
        checks.share("smallest", self.smallest)
        check_given(self.propensities)

    def objective(self, factors: Sequence[Factor]) -> WeightedObjective:
        """A propensity for each position."""
        return WeightedObjective(len(factors[0].levels))

    def stages(self, objective: WeightedObjective, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """One stage, on the weighted clicks."""
        check_enough(self.propensities, len(objective.propensities))

        def begin(_: Models) -> None:
            found = given_or_estimated(self.propensities, self.estimator, lists.log)
            objective.propensities.copy_(torch.from_numpy(np.maximum(found / found[0], self.smallest)))

        return [
            Stage(
                "weighted clicks",
                steps,
                objective.weighted_loss,
                objective.score,
                clicked_only=True,
                held_out=objective.click_loss,
                begin=begin,
            )
        ]

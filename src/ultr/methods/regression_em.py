"""RegressionEM: expectation maximisation of a position-based model whose relevance is a function of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ultr import checks
from ultr.arrays import Doubles, Floats
from ultr.methods.em_rate import em_rate
from ultr.methods.estimator import Estimator
from ultr.methods.factors import Factor
from ultr.methods.ranker import Ranker
from ultr.train.lists import Batch, TrainingLists
from ultr.train.objective import PointwiseObjective
from ultr.train.stage import Stage

_SURE = 1e-6


def expected(clicks: Tensor, theta: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """The E step: probabilities that a document was examined and that it is relevant, given click or skip."""
    skipped = (1 - clicks) / (1 - theta * g).clamp(min=_SURE)
    return clicks + skipped * theta * (1 - g), clicks + skipped * g * (1 - theta)


class RegressionObjective(PointwiseObjective):
    """The propensity theta of each position; relevance is g(x) = sigmoid(f(x))."""

    theta: Tensor

    def __init__(self, positions: int, start: float) -> None:
        super().__init__()
        self.register_buffer("theta", torch.full((positions,), start))

    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """log( theta g(x) ), [lists, width]."""
        theta = self.theta[batch.positions].clamp(min=_SURE)
        return batch.pad(functional.logsigmoid(r.squeeze(-1)) + theta.log())

    def expect(self, r: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The cross-entropy of g(x) against the expected relevance, [lists]; and the sums of the M step.

        These are how many documents were examined at each position, and how many there were, [2, positions].
        """
        logits = r.squeeze(-1)
        theta = self.theta[batch.positions]
        examined, relevant = expected(batch.clicks[batch.mask], theta, logits.detach().sigmoid())
        losses = functional.binary_cross_entropy_with_logits(logits, relevant, reduction="none")
        sums = batch.sum_by_position(len(self.theta), examined, torch.ones_like(examined))
        return batch.pad(losses).sum(dim=-1), sums

    def maximise(self, sums: Tensor, rate: float) -> None:
        """Move each propensity towards the mean probability that the documents at its position were examined."""
        examined, count = sums
        mean = (examined / count.where(count > 0, 1)).float()
        self.theta.lerp_(mean.where(count > 0, self.theta), rate)

    def propensities(self) -> Doubles:
        """The learned propensities by position, relative to the first: clicks fix them only up to a factor."""
        values = self.theta.double()
        return (values / values[0]).numpy()


def attractiveness(ranker: Ranker[RegressionObjective], features: Floats) -> Doubles:
    """theta_1 g(x) of each document: the probability of a click in the first place, times `propensities` below."""
    g: Doubles = 1 / (1 + np.exp(-ranker.outputs(features)[:, 0].astype(np.float64)))
    return float(ranker.objective.theta[0]) * g


@dataclass(kw_only=True, eq=False)
class RegressionEM(Estimator[RegressionObjective]):
    """Regression-based EM: P(click) = theta_p g(x), fitted without any randomised or repeated ranking.

    E step, for a document that was not clicked (a clicked one was examined and is relevant):

        P(examined) = theta (1 - g) / (1 - theta g),   P(relevant) = g (1 - theta) / (1 - theta g)

    M step, batch by batch: theta_p moves towards the mean P(examined) at position p, and g takes a gradient step on
    the cross-entropy against P(relevant). The original samples relevance from P(relevant); the loss is linear in it,
    so that only adds noise. Position is the only bias factor it knows.

    Wang, Golbandi, Bendersky, Metzler, Najork: Position Bias Estimation for Unbiased Learning to Rank in Personal
    Search, WSDM 2018.
    """

    name: ClassVar[str] = "regression-em"
    position_only: ClassVar[bool] = True

    em_rate: float | None = None
    """Share of the way to an estimate that the propensities move; by default 0.05, or 1 where a step sees all lists."""
    start: float = 0.5
    """The propensity of every position at the start. Public code has 0.9, from where the first ones stick at 1."""

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        super().check()
        if self.em_rate is not None:
            checks.share("em_rate", self.em_rate)
        checks.share("start", self.start)

    def objective(self, factors: Sequence[Factor]) -> RegressionObjective:
        """A propensity for each position."""
        return RegressionObjective(len(factors[0].levels), self.start)

    def stages(self, objective: RegressionObjective, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """One stage: the gradient for g, the averages for theta."""
        rate = em_rate(self.em_rate, self.relevance)
        return [
            Stage(
                "expectation and maximisation",
                steps,
                objective.expect,
                objective.score,
                held_out=objective.click_loss,
                update=lambda sums: objective.maximise(sums, rate),
            )
        ]

    def attractiveness(self, features: Floats) -> Doubles:
        """theta_1 g(x) of each document: the probability of a click in the first place, times `propensities` below."""
        return attractiveness(self.ranker_, features)

    def propensities(self) -> Doubles:
        """The learned propensities by position, relative to the first: clicks fix them only up to a factor."""
        return self.ranker_.objective.propensities()

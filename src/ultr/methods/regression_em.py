"""RegressionEM: expectation maximisation of a position-based model whose relevance is a network."""

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
from ultr.losses import click_likelihood_loss
from ultr.methods.estimator import Estimator
from ultr.methods.network import PointwiseClickNetwork, Shape
from ultr.methods.scalar import ScalarNetwork
from ultr.train.lists import Batch, TrainingLists
from ultr.train.stage import Stage

_SURE = 1e-6


class RegressionNetwork(PointwiseClickNetwork, ScalarNetwork):
    """The probability of relevance g(x) = sigmoid(f(x)) and the propensity theta of each position."""

    propensities: Tensor

    def __init__(self, shape: Shape, hidden: Sequence[int], start: float, generator: torch.Generator) -> None:
        super().__init__(shape.features, hidden, generator)
        self.register_buffer("propensities", torch.full((shape.levels[0],), start))

    def click_logits(self, batch: Batch) -> Tensor:
        """The logarithm of theta g(x), [lists, width]."""
        theta = self.propensities[batch.factors[:, 0]].clamp(min=_SURE)
        return batch.pad(functional.logsigmoid(self.relevance(batch.features).squeeze(-1)) + theta.log())

    def click_loss(self, batch: Batch) -> Tensor:
        """Minus the log-likelihood of each list's clicks and skips, [lists]."""
        return click_likelihood_loss(self.click_logits(batch), batch.clicks, mask=batch.mask)

    def expect(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The E step: what is examined and relevant once clicks and skips are known.

        The cross-entropy of g(x) against the probability of relevance, [lists]; how many documents were examined at
        each position, and how many there were, [2, positions].
        """
        logits, clicks = self.relevance(batch.features).squeeze(-1), batch.clicks[batch.mask]
        theta, g = self.propensities[batch.factors[:, 0]], logits.detach().sigmoid()
        skipped = (1 - clicks) / (1 - theta * g).clamp(min=_SURE)
        relevant, examined = clicks + skipped * g * (1 - theta), clicks + skipped * theta * (1 - g)
        losses = functional.binary_cross_entropy_with_logits(logits, relevant, reduction="none")
        sums = batch.sum_by_position(len(self.propensities), examined, torch.ones_like(examined))
        return batch.pad(losses).sum(dim=-1), sums

    def update_propensities(self, sums: Tensor, rate: float) -> None:
        """Move each propensity towards the mean probability that the documents at its position were examined."""
        examined, count = sums
        mean = (examined / count.clamp(min=1)).float()
        self.propensities.lerp_(mean.where(count > 0, self.propensities), rate)


@dataclass(kw_only=True, eq=False)
class RegressionEM(Estimator):
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

    em_rate: float = 0.05
    """How far a step moves the propensities towards the batch's estimate."""
    start: float = 0.5
    """The propensity of every position at the start. Public code has 0.9, from where the first ones stick at 1."""

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        super().check()
        checks.share("em_rate", self.em_rate)
        checks.share("start", self.start)

    def build(self, shape: Shape, generator: torch.Generator) -> RegressionNetwork:
        """A relevance network and a propensity for each position."""
        return RegressionNetwork(shape, self.hidden, self.start, generator)

    def stages(self, network: RegressionNetwork, lists: TrainingLists) -> Sequence[Stage]:
        """One stage: the gradient for g, the averages for theta."""
        return [
            Stage(
                "expectation and maximisation",
                self.first_stage_steps(),
                network.expect,
                (network,),
                network.score,
                held_out=network.click_loss,
                update=lambda sums: network.update_propensities(sums, self.em_rate),
            )
        ]

    def relevance(self, features: Floats) -> Doubles:
        """theta_1 g(x) of each document: the probability of a click in the first place, times `propensities` below."""
        self.check_fitted()
        assert isinstance(self.network_, RegressionNetwork)
        g: Doubles = 1 / (1 + np.exp(-self.score(features).astype(np.float64)))
        return float(self.network_.propensities[0]) * g

    def propensities(self) -> Doubles:
        """The learned propensities by position, that of the first set to 1: clicks fix them only up to a factor."""
        self.check_fitted()
        assert isinstance(self.network_, RegressionNetwork)
        values = self.network_.propensities.double()
        return (values / values[0]).numpy()

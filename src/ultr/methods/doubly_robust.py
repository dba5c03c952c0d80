"""DoublyRobust: a regression estimate of relevance, corrected by clicks over expected exposure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ultr import checks
from ultr.arrays import Doubles
from ultr.losses import softmax_cross_entropy
from ultr.methods.em_rate import em_rate
from ultr.methods.estimator import Estimator
from ultr.methods.factors import Factor
from ultr.methods.position_propensities import ESTIMATORS, check_enough, check_given, given_or_estimated
from ultr.methods.trust_rates import JUDGE, TrustObjective, em_stage
from ultr.train.lists import Batch, TrainingLists
from ultr.train.stage import RELEVANCE, Models, Stage

EM = "em"


def corrected_estimate(mu: Tensor, clicks: Tensor, alpha: Tensor, beta: Tensor, exposure: Tensor) -> Tensor:
    """The doubly robust estimate of relevance by one impression of each document, [documents].

        r = mu + (c - beta_p - alpha_p mu) / exposure

    With exposure the mean alpha of a document, the mean over its impressions is r = mu + (ctr - b - a mu) / a: the
    regression where it is right, whatever a is, and (ctr - b) / a where a and b are right, whatever mu is.
    """
    return mu + (clicks - beta - alpha * mu) / exposure


def mean_exposure(lists: TrainingLists, alpha: Doubles) -> Doubles:
    """The mean alpha over the impressions of each document, [rows of the features]; 0 for one that is never shown."""
    cells = lists.log.cells()
    shown, exposed = (
        np.bincount(cells.documents, each) for each in (cells.impressions, cells.impressions * alpha[cells.positions])
    )
    exposure = np.zeros(len(lists.inputs))
    exposure[cells.ids] = exposed / shown
    return exposure


class RobustObjective(TrustObjective):
    """The click rates and the judge mu(x), and the loss of the ranker on estimates that clicks correct."""

    def robust_loss(self, r: Tensor, batch: Batch, smallest: float, exposure: Tensor | None = None) -> Tensor:
        """The list-wise loss on doubly robust estimates, [lists]; r are the outputs of ranker and judge.

        Without exposures, [documents], each impression is divided by the alpha of its own position.
        """
        relevant, other = self.rates(batch)
        alpha = relevant - other
        exposure = (alpha if exposure is None else exposure).clamp(min=smallest)
        mu = r[:, 1].detach().sigmoid()
        estimate = corrected_estimate(mu, batch.clicks[batch.mask], alpha, other, exposure)
        return softmax_cross_entropy(batch.pad(r[:, 0]), batch.pad(estimate), mask=batch.mask)


@dataclass(kw_only=True, eq=False)
class DoublyRobust(Estimator[RobustObjective]):
    """Doubly robust estimation: right if the regression of relevance is, or if the bias is.

        r = mu(x) + (ctr - b - a mu(x)) / max(a, smallest),   L = - sum_i r_i log softmax_i( f(x_i) )

    Clicks follow P(click) = alpha_p g(x) + beta_p, as in Affine; a and b are the means of alpha and beta over the
    impressions of a document, and ctr its click rate. Stage 1 fits the judge mu and, by EM, alpha and beta; or only mu,
    with propensities that are given or estimated from swaps for alpha, and beta = 0. Stage 2 trains the ranker.
    Position is the only bias factor it knows.

    Oosterhuis: Doubly Robust Estimation for Correcting Position Bias in Click Feedback for Unbiased Learning to Rank,
    TOIS 2023.
    """

    name: ClassVar[str] = "doubly-robust"
    position_only: ClassVar[bool] = True
    model_names: ClassVar[tuple[str, ...]] = (*RELEVANCE, *JUDGE)
    by_loss: ClassVar[tuple[str, ...]] = ("regression", "doubly robust")

    propensities: tuple[float, ...] | None = None
    """The alpha of each position from the first, in any unit (`read_propensities` reads a file), with beta = 0."""
    estimator: str = EM
    """Estimator of the bias otherwise: `em` for alpha and beta (trust bias); pivot, adjacent-chain, all-pairs or, in a
    randomised log, click-rate for alpha with beta = 0."""
    em_rate: float | None = None
    """Share of the way to an estimate that the click rates move; by default 0.05, or 1 where a step sees all lists."""
    smallest: float = 0.01
    """Mean alphas below this are raised to it, so that no click outweighs all others."""

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        super().check()
        checks.one_of("estimator", self.estimator, [EM, *ESTIMATORS])
        if self.em_rate is not None:
            checks.share("em_rate", self.em_rate)
        checks.share("smallest", self.smallest)
        check_given(self.propensities)

    def objective(self, factors: Sequence[Factor]) -> RobustObjective:
        """Two click rates for each position."""
        return RobustObjective(len(factors[0].levels))

    def stages(self, objective: RobustObjective, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """The regression, with the click rates where they are not given, then the ranker."""

        # The rates are fixed by then, and a checkpoint holds them: a killed run finds the same exposures.
        @cache
        def exposure() -> Tensor:
            return torch.from_numpy(mean_exposure(lists, objective.correction()[0])).float()

        def loss(r: Tensor, batch: Batch) -> Tensor:
            of_documents = exposure()[batch.documents.rows].to(r.device)
            return objective.robust_loss(r, batch, self.smallest, of_documents)

        ranking = Stage(
            "doubly robust",
            steps,
            loss,
            objective.score,
            uses=self.model_names,
            held_out=lambda r, batch: objective.robust_loss(r, batch, self.smallest),
        )
        return [self._regression(objective, lists, steps), ranking]

    def _regression(self, objective: RobustObjective, lists: TrainingLists, steps: int) -> Stage:
        if self.propensities is None and self.estimator == EM:
            return em_stage(objective, lists, steps, em_rate(self.em_rate, self.relevance))
        check_enough(self.propensities, len(objective.other_rates))

        def begin(_: Models) -> None:
            found = given_or_estimated(self.propensities, self.estimator, lists.log)
            objective.relevant_rates.copy_(torch.from_numpy(found / found.max()))

        loss, score = objective.click_loss, objective.score
        return Stage("regression", steps, loss, score, uses=JUDGE, ranks_with=JUDGE, moves=JUDGE, begin=begin)

    def correction(self) -> tuple[Doubles, Doubles]:
        """The alpha and the beta of each position."""
        return self.ranker_.objective.correction()

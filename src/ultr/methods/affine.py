"""Affine: clicks of the trust-bias model, corrected by an affine function of each position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ultr import checks
from ultr.arrays import Doubles
from ultr.losses import softmax_cross_entropy
from ultr.methods.em_rate import em_rate
from ultr.methods.estimator import Estimator
from ultr.methods.factors import Factor
from ultr.methods.trust_rates import JUDGE, TrustObjective, em_stage
from ultr.train.lists import Batch, TrainingLists
from ultr.train.stage import RELEVANCE, Stage


class AffineObjective(TrustObjective):
    """The click rates, and the loss of the ranker on clicks that they correct."""

    def corrected_loss(self, r: Tensor, batch: Batch, smallest: float) -> Tensor:
        """The list-wise loss on unbiased clicks, (c - beta) / alpha, without positions that tell little, [lists]."""
        relevant, other = self.rates(batch)
        alpha = relevant - other
        corrected = batch.pad((batch.clicks[batch.mask] - other) / alpha.clamp(min=smallest))
        telling = batch.mask & batch.pad(alpha >= smallest)
        return softmax_cross_entropy(batch.pad(r.squeeze(-1)), corrected, mask=telling)


@dataclass(kw_only=True, eq=False)
class Affine(Estimator[AffineObjective]):
    """The affine correction for trust bias: P(click) = alpha_p g(x) + beta_p.

    Stage 1 estimates, by regression-based EM, how often a relevant and another document are clicked at each position,
    alpha_p + beta_p and beta_p. Stage 2 trains the ranker on clicks that are unbiased under this model:

        L = - sum_i (c_i - beta_p(i)) / alpha_p(i) log softmax_i( f(x_i) )

    Position is the only bias factor it knows.

    Vardasbi, Oosterhuis, de Rijke: When Inverse Propensity Scoring does not Work: Affine Corrections for Unbiased
    Learning to Rank, CIKM 2020; the EM as in Agarwal et al.: Addressing Trust Bias for Unbiased Learning-to-Rank, WWW
    2019.
    """

    name: ClassVar[str] = "affine"
    position_only: ClassVar[bool] = True
    model_names: ClassVar[tuple[str, ...]] = (*RELEVANCE, *JUDGE)
    by_loss: ClassVar[tuple[str, ...]] = ("corrected clicks",)

    em_rate: float | None = None
    """Share of the way to an estimate that the click rates move; by default 0.05, or 1 where a step sees all lists."""
    smallest: float = 0.01
    """Positions with an alpha below this are left out of stage 2: clicks there tell hardly anything of relevance."""

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        super().check()
        if self.em_rate is not None:
            checks.share("em_rate", self.em_rate)
        checks.share("smallest", self.smallest)

    def objective(self, factors: Sequence[Factor]) -> AffineObjective:
        """Two click rates for each position."""
        return AffineObjective(len(factors[0].levels))

    def stages(self, objective: AffineObjective, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """The EM, then the ranker."""
        return [
            em_stage(objective, lists, steps, em_rate(self.em_rate, self.relevance)),
            Stage(
                "corrected clicks",
                steps,
                lambda r, batch: objective.corrected_loss(r, batch, self.smallest),
                objective.score,
            ),
        ]

    def correction(self) -> tuple[Doubles, Doubles]:
        """The alpha and the beta of each position."""
        return self.ranker_.objective.correction()

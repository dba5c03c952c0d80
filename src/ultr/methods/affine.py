"""Affine: clicks of the trust-bias model, corrected by an affine function of each position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ultr import checks
from ultr.arrays import Doubles
from ultr.losses import click_likelihood_loss, softmax_cross_entropy
from ultr.methods.estimator import Estimator
from ultr.methods.network import PointwiseClickNetwork, Shape
from ultr.methods.scalar import ScalarNetwork
from ultr.nn import MLP
from ultr.train.lists import Batch, TrainingLists
from ultr.train.stage import Stage

_SURE = 1e-6
_STARTS = 2.0, 0.8
"""Click rates of relevant and of other documents at the start, over that of their position; equal ones never part.

Of six pairs of starts, this one came closest to the true rates on trust-bias clicks with swaps.
"""


class AffineNetwork(PointwiseClickNetwork, ScalarNetwork):
    """The ranker f(x), a judge g(x) for the EM, and click rates of relevant and other documents by position."""

    relevant_rates: Tensor
    other_rates: Tensor

    def __init__(self, shape: Shape, hidden: Sequence[int], generator: torch.Generator) -> None:
        super().__init__(shape.features, hidden, generator)
        self.judge = MLP(shape.features, hidden, 1, normalise=True, generator=generator)
        self.register_buffer("relevant_rates", torch.ones(shape.levels[0]))
        self.register_buffer("other_rates", torch.zeros(shape.levels[0]))

    def start_rates(self, clicks: Tensor) -> None:
        """Start from the click rate of each position, so that low positions do not look like irrelevance."""
        self.relevant_rates.copy_(torch.minimum(_STARTS[0] * clicks, (1 + clicks) / 2))
        self.other_rates.copy_(_STARTS[1] * clicks)

    def judge_score(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """g(x) as a logit, [documents]."""
        scores: Tensor = self.judge(inputs)
        return scores.squeeze(-1)

    def click_logits(self, batch: Batch) -> Tensor:
        """The logarithm of alpha g(x) + beta, [lists, width]."""
        relevant, other = self._rates(batch)
        g = self.judge_score(batch.features, batch.mask).sigmoid()
        return batch.pad((g * relevant + (1 - g) * other).log())

    def click_loss(self, batch: Batch) -> Tensor:
        """Minus the log-likelihood of each list's clicks and skips, [lists]."""
        return click_likelihood_loss(self.click_logits(batch), batch.clicks, mask=batch.mask)

    def expect(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The E step: what is relevant once clicks and skips are known.

        The cross-entropy of g(x) against the probability of relevance, [lists]; clicks and skips of relevant
        documents, then of others, at each position, [4, positions].
        """
        logits, clicks = self.judge_score(batch.features, batch.mask), batch.clicks[batch.mask]
        if_clicked, if_skipped = self._relevance_given_click(batch, logits.detach().sigmoid())
        of_relevant = clicks * if_clicked, (1 - clicks) * if_skipped
        of_others = clicks * (1 - if_clicked), (1 - clicks) * (1 - if_skipped)
        losses = functional.binary_cross_entropy_with_logits(logits, of_relevant[0] + of_relevant[1], reduction="none")
        sums = batch.sum_by_position(len(self.other_rates), *of_relevant, *of_others)
        return batch.pad(losses).sum(dim=-1), sums

    def update_rates(self, sums: Tensor, rate: float) -> None:
        """Move the click rates towards those of the documents that are probably relevant, and probably not."""
        weights = []
        for rates, (clicks, skips) in zip((self.relevant_rates, self.other_rates), sums.view(2, 2, -1), strict=True):
            shown = clicks + skips
            rates.lerp_((clicks / shown.clamp(min=_SURE)).float().where(shown > 0, rates), rate)
            weights.append(shown.clamp(min=_SURE).to(rates.dtype))
        # The likeliest rates under the constraint: where relevant documents would be clicked less, both are the same.
        pooled = (weights[0] * self.relevant_rates + weights[1] * self.other_rates) / (weights[0] + weights[1])
        reversed_ = self.relevant_rates < self.other_rates
        for rates in (self.relevant_rates, self.other_rates):
            rates.copy_(pooled.where(reversed_, rates))

    def corrected_loss(self, batch: Batch, smallest: float) -> Tensor:
        """The list-wise loss on unbiased clicks, (c - beta) / alpha, without positions that tell little, [lists]."""
        relevant, other = self._rates(batch)
        alpha = relevant - other
        corrected = batch.pad((batch.clicks[batch.mask] - other) / alpha.clamp(min=smallest))
        telling = batch.mask & batch.pad(alpha >= smallest)
        return softmax_cross_entropy(super().click_logits(batch), corrected, mask=telling)

    def _rates(self, batch: Batch) -> tuple[Tensor, Tensor]:
        positions = batch.factors[:, 0]
        return self.relevant_rates[positions].clamp(min=_SURE), self.other_rates[positions].clamp(min=_SURE)

    def _relevance_given_click(self, batch: Batch, g: Tensor) -> tuple[Tensor, Tensor]:
        relevant, other = self._rates(batch)
        if_clicked = g * relevant / (g * relevant + (1 - g) * other)
        if_skipped = g * (1 - relevant) / (g * (1 - relevant) + (1 - g) * (1 - other)).clamp(min=_SURE)
        return if_clicked, if_skipped


@dataclass(kw_only=True, eq=False)
class Affine(Estimator):
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

    em_rate: float = 0.05
    """How far a step moves the click rates towards the batch's estimate."""
    smallest: float = 0.01
    """Positions with an alpha below this are left out of stage 2: clicks there tell hardly anything of relevance."""

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        super().check()
        checks.share("em_rate", self.em_rate)
        checks.share("smallest", self.smallest)

    def build(self, shape: Shape, generator: torch.Generator) -> AffineNetwork:
        """Ranker, judge and click rates."""
        return AffineNetwork(shape, self.hidden, generator)

    def stages(self, network: AffineNetwork, lists: TrainingLists) -> Sequence[Stage]:
        """The EM, then the ranker."""
        steps = self.first_stage_steps()
        levels, *totals = lists.factor_totals()
        shown, clicked = (np.bincount(levels[:, 0], each, minlength=len(network.other_rates)) for each in totals)
        rates = torch.from_numpy(clicked / np.maximum(shown, 1)).float()
        return [
            Stage(
                "expectation and maximisation",
                steps,
                network.expect,
                (network.judge,),
                network.judge_score,
                held_out=network.click_loss,
                begin=lambda: network.start_rates(rates),
                update=lambda sums: network.update_rates(sums, self.em_rate),
            ),
            Stage(
                "corrected clicks",
                steps,
                lambda batch: network.corrected_loss(batch, self.smallest),
                (network.relevance,),
                network.score,
            ),
        ]

    def correction(self) -> tuple[Doubles, Doubles]:
        """The alpha and the beta of each position."""
        self.check_fitted()
        assert isinstance(self.network_, AffineNetwork)
        relevant, other = self.network_.relevant_rates.double(), self.network_.other_rates.double()
        return (relevant - other).numpy(), other.numpy()

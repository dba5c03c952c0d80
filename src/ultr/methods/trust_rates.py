"""Click rates of relevant and of other documents by position: the trust-bias model, estimated by EM."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from ultr.arrays import Doubles
from ultr.train.lists import Batch, TrainingLists
from ultr.train.objective import PointwiseObjective
from ultr.train.stage import Stage

_SURE = 1e-6
_STARTS = 2.0, 0.8
"""Click rates of relevant and of other documents at the start, over that of their position; equal ones never part.

Of six pairs of starts, this one came closest to the true rates on trust-bias clicks with swaps.
"""
JUDGE = ("judge",)


def relevance_given_click(g: Tensor, relevant: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """The E step, Bayes' rule: P(relevant | click) and P(relevant | skip) from P(relevant) and the click rates."""
    if_clicked = g * relevant / (g * relevant + (1 - g) * other)
    if_skipped = g * (1 - relevant) / (g * (1 - relevant) + (1 - g) * (1 - other)).clamp(min=_SURE)
    return if_clicked, if_skipped


class TrustObjective(PointwiseObjective):
    """Click rates of relevant and of other documents by position; a judge g(x) for the EM beside the ranker f(x).

    P(click) = alpha g(x) + beta, with beta the click rate of other documents and alpha + beta that of relevant ones.
    """

    clicks_with = JUDGE
    relevant_rates: Tensor
    other_rates: Tensor

    def __init__(self, positions: int) -> None:
        super().__init__()
        self.register_buffer("relevant_rates", torch.ones(positions))
        self.register_buffer("other_rates", torch.zeros(positions))

    def start_rates(self, clicks: Tensor) -> None:
        """Start from the click rate of each position, so that low positions do not look like irrelevance."""
        self.relevant_rates.copy_(torch.minimum(_STARTS[0] * clicks, (1 + clicks) / 2))
        self.other_rates.copy_(_STARTS[1] * clicks)

    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """log( alpha g(x) + beta ), [lists, width]; r is the judge's logit."""
        relevant, other = self.rates(batch)
        g = r.squeeze(-1).sigmoid()
        return batch.pad((g * relevant + (1 - g) * other).log())

    def expect(self, r: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The cross-entropy of the judge's g(x) against the expected relevance, [lists]; and the sums of the M step.

        These are clicks and skips of relevant documents, then of others, at each position, [4, positions].
        """
        logits, clicks = r.squeeze(-1), batch.clicks[batch.mask]
        if_clicked, if_skipped = relevance_given_click(logits.detach().sigmoid(), *self.rates(batch))
        of_relevant = clicks * if_clicked, (1 - clicks) * if_skipped
        of_others = clicks * (1 - if_clicked), (1 - clicks) * (1 - if_skipped)
        losses = functional.binary_cross_entropy_with_logits(logits, of_relevant[0] + of_relevant[1], reduction="none")
        sums = batch.sum_by_position(len(self.other_rates), *of_relevant, *of_others)
        return batch.pad(losses).sum(dim=-1), sums

    def maximise(self, sums: Tensor, rate: float) -> None:
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

    def rates(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The click rates of relevant and of other documents at the position of each document, [documents]."""
        relevant, other = self.relevant_rates[batch.positions], self.other_rates[batch.positions]
        return relevant.clamp(min=_SURE), other.clamp(min=_SURE)

    def correction(self) -> tuple[Doubles, Doubles]:
        """The alpha and the beta of each position."""
        relevant, other = self.relevant_rates.double(), self.other_rates.double()
        return (relevant - other).numpy(), other.numpy()


def em_stage(objective: TrustObjective, lists: TrainingLists, steps: int, rate: float) -> Stage:
    """The stage that estimates the click rates and trains the judge, batch by batch."""
    shown, clicked = lists.log.totals(lists.log.position)
    rates = torch.from_numpy(clicked / np.maximum(shown, 1)).float()
    return Stage(
        "expectation and maximisation",
        steps,
        objective.expect,
        objective.score,
        uses=JUDGE,
        ranks_with=JUDGE,
        moves=JUDGE,
        held_out=objective.click_loss,
        begin=lambda _: objective.start_rates(rates),
        update=lambda sums: objective.maximise(sums, rate),
    )

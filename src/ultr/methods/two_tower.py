"""Two towers: relevance and bias add up to the click logit, fitted by maximum likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ultr import checks
from ultr.arrays import Floats
from ultr.errors import OptionError
from ultr.losses import softmax_cross_entropy
from ultr.methods.estimator import Estimator
from ultr.methods.factors import Factor
from ultr.methods.observation import Observation, drop
from ultr.methods.placement import PlacementWeights
from ultr.train.lists import Batch, TrainingLists
from ultr.train.objective import ScalarObjective
from ultr.train.stage import Stage

LINKS = ("sigmoid", "softmax")


def reverse(values: Tensor, reversal: float) -> Tensor:
    """The values themselves, whose gradient is multiplied by -reversal."""
    return (1 + reversal) * values.detach() - reversal * values


class Adversary(nn.Module):
    """A click logit w h + v from the bias tower alone: what it knows of clicks, the tower is to unlearn."""

    def __init__(self) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.tensor([1.0, 0.0]))

    def forward(self, bias: Tensor) -> Tensor:
        """[documents] -> [documents]."""
        return self.values[0] * bias + self.values[1]


class TowersObjective(ScalarObjective):
    """The bias tower h(t) beside the relevance tower f(x), and with a reversal the adversary of the bias tower."""

    def __init__(
        self, factors: Sequence[Factor], *, link: str, dropout: float, smooth: bool = True, reversal: float = 0.0
    ) -> None:
        super().__init__()
        self.tower = Observation(factors, 1, combine="sum", start=0.0, smooth=smooth)
        self.adversary = Adversary() if reversal else None
        self.link, self.dropout, self.reversal = link, dropout, reversal

    def bias(self, batch: Batch) -> Tensor:
        """h(t), [documents]."""
        bias: Tensor = self.tower(batch.factors).squeeze(-1)
        return bias

    def logits(self, r: Tensor, batch: Batch) -> Tensor:
        """f(x) + h(t), [documents]; with noise, h(t) is dropped for some documents."""
        bias = self.bias(batch)
        if batch.noise is not None:
            bias = drop(bias, batch.noise[:, 0], self.dropout)
        return r.squeeze(-1) + bias

    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """The logarithm of the click probability sigmoid(f + h), or f + h for the softmax, [lists, width]."""
        logits = self.logits(r, batch)
        return batch.pad(functional.logsigmoid(logits) if self.link == "sigmoid" else logits)

    def loss(self, r: Tensor, batch: Batch, weights: Tensor | None = None) -> Tensor:
        """Minus the log-likelihood of each list's clicks, [lists], with the weights of its documents if there are any.

        With a reversal, that of the adversary is added.
        """
        loss = self._unlikelihood(self.logits(r, batch), batch, weights)
        if self.adversary is None:
            return loss
        return loss + self._unlikelihood(self.adversary(reverse(self.bias(batch), self.reversal)), batch, weights)

    def likelihood_loss(self, r: Tensor, batch: Batch) -> Tensor:
        """Minus the log-likelihood of each list's clicks, and nothing else, [lists]."""
        return self._unlikelihood(self.logits(r, batch), batch, None)

    def _unlikelihood(self, logits: Tensor, batch: Batch, weights: Tensor | None) -> Tensor:
        if self.link == "softmax":
            return softmax_cross_entropy(batch.pad(logits), batch.clicks, mask=batch.mask)
        losses = functional.binary_cross_entropy_with_logits(
            logits, batch.clicks[batch.mask], weights, reduction="none"
        )
        return batch.pad(losses).sum(dim=-1)

    def click_probabilities(self, r: Tensor, batch: Batch, *, clicks_per_impression: float) -> Tensor:
        """sigmoid(f + h), or the shares of the softmax times the clicks per impression, [lists, width]."""
        if self.link == "sigmoid":
            return batch.pad(self.logits(r, batch).double().sigmoid())
        return super().click_probabilities(r, batch, clicks_per_impression=clicks_per_impression)

    def effects(self) -> dict[str, Floats]:
        """What each level adds to the click logit, relative to the first level of its factor, [levels]."""
        return {name: table[:, 0] - table[0, 0] for name, table in self.tower.embeddings().items()}


@dataclass(kw_only=True, eq=False)
class TwoTower(Estimator[TowersObjective]):
    """Additive towers of relevance and bias, fitted by maximum likelihood, ranking by relevance alone.

        P(click) = sigmoid( f(x) + h(t) ),   L = - sum_i [ c_i log P_i + (1 - c_i) log(1 - P_i) ]

    With the link `softmax`, clicks are shared out within a list instead, L = - sum_i c_i log softmax_i( f + h ).

    Where the logging ranker was good, position and relevance go together and the bias tower takes part of the
    relevance with it. Three remedies, in training only: dropout of the bias tower makes f(x) explain clicks without it,
    too (h is multiplied by m / (1 - dropout) with m = 0 for a share `dropout` of the shown documents, drawn anew each
    step); an adversary predicts clicks from h alone, and h is moved against it (`reversal`); impressions weigh
    1 / P(position | x), so that positions look random (`largest_weight`).

    Zhang, Yan, Qin, Zhuang, Shen, Wang, Bendersky, Najork: Towards Disentangling Relevance and Bias in Unbiased
    Learning to Rank, KDD 2023; the weights as in Hager, Zoeter, de Rijke: Unidentified and Confounded? Understanding
    Two-Tower Models for Unbiased Learning to Rank, ICTIR 2025.
    """

    name: ClassVar[str] = "two-tower"

    dropout: float = 0.0
    """Share of the shown documents whose bias is dropped in a step of training."""
    reversal: float = 0.0
    """Factor of the reversed gradient by which the bias tower unlearns what predicts clicks without relevance."""
    largest_weight: float | None = None
    """Impressions weigh 1 / P(position | x), but no more than this; by default all weigh the same."""
    link: str = "sigmoid"
    """`sigmoid`: each document is clicked or not. `softmax`: the documents of a list share its clicks."""
    smooth: bool = True
    """A smooth curve over the bins of a numeric bias factor; else a value for each bin."""

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        super().check()
        checks.one_of("link", self.link, LINKS)
        checks.boolean("smooth", self.smooth)
        if checks.not_negative("dropout", self.dropout) >= 1:
            raise OptionError(f"dropout must be at least 0 and below 1, got {self.dropout!r}")
        checks.not_negative("reversal", self.reversal)
        if self.largest_weight is not None:
            if checks.positive("largest_weight", self.largest_weight) < 1:
                raise OptionError(f"largest_weight must be at least 1, got {self.largest_weight!r}")
            if self.link == "softmax":
                raise OptionError(
                    "largest_weight needs link='sigmoid': a softmax shares out clicks, and weights would change the "
                    "shares; leave one of the two out"
                )

    def learns(self, factor: Factor) -> bool:
        """All factors by the sigmoid; by the softmax, only those that vary within a list."""
        return self.link == "sigmoid" or not factor.by_page

    def objective(self, factors: Sequence[Factor]) -> TowersObjective:
        """The bias tower."""
        return TowersObjective(
            factors, link=self.link, dropout=self.dropout, smooth=self.smooth, reversal=self.reversal
        )

    def stages(self, objective: TowersObjective, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """One stage, on the likelihood; validation has no dropout, no adversary and no weights."""
        weights = None
        if self.largest_weight is not None:
            weights = PlacementWeights.of(lists, largest=self.largest_weight)
        return [
            Stage(
                "likelihood",
                steps,
                lambda r, batch: objective.loss(r, batch, None if weights is None else weights(batch)),
                objective.score,
                bias=(objective,),
                noise=1 if self.dropout else 0,
                held_out=objective.likelihood_loss,
            )
        ]

    def effects(self) -> dict[str, Floats]:
        """What each level adds to the click logit, relative to the first level of its factor, [levels]."""
        return self.ranker_.objective.effects()

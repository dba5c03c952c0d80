"""Two towers: relevance and bias add up to the click logit, fitted by maximum likelihood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor
from torch.nn import functional

from ultr import checks
from ultr.arrays import Floats
from ultr.errors import OptionError
from ultr.losses import softmax_cross_entropy
from ultr.methods.estimator import Estimator
from ultr.methods.factors import Factor
from ultr.methods.observation import Observation
from ultr.train.lists import Batch, TrainingLists
from ultr.train.objective import ScalarObjective
from ultr.train.stage import Stage

LINKS = ("sigmoid", "softmax")


def drop(bias: Tensor, noise: Tensor, dropout: float) -> Tensor:
    """Inverted dropout: 0 where the noise is below `dropout`, else bias / (1 - dropout), so that the mean is kept."""
    return bias * (noise >= dropout).to(bias.dtype) / (1 - dropout)


class TowersObjective(ScalarObjective):
    """The bias tower h(t) beside the relevance tower f(x)."""

    def __init__(self, factors: Sequence[Factor], *, link: str, dropout: float, smooth: bool = True) -> None:
        super().__init__()
        self.tower = Observation(factors, 1, combine="sum", start=0.0, smooth=smooth)
        self.link, self.dropout = link, dropout

    def logits(self, r: Tensor, batch: Batch) -> Tensor:
        """f(x) + h(t), [documents]; with noise, h(t) is dropped for some documents."""
        bias: Tensor = self.tower(batch.factors).squeeze(-1)
        if batch.noise is not None:
            bias = drop(bias, batch.noise[:, 0], self.dropout)
        return r.squeeze(-1) + bias

    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """The logarithm of the click probability sigmoid(f + h), or f + h for the softmax, [lists, width]."""
        logits = self.logits(r, batch)
        return batch.pad(functional.logsigmoid(logits) if self.link == "sigmoid" else logits)

    def loss(self, r: Tensor, batch: Batch) -> Tensor:
        """Minus the log-likelihood of each list's clicks, [lists]."""
        logits = self.logits(r, batch)
        if self.link == "softmax":
            return softmax_cross_entropy(batch.pad(logits), batch.clicks, mask=batch.mask)
        losses = functional.binary_cross_entropy_with_logits(logits, batch.clicks[batch.mask], reduction="none")
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
    relevance with it. Dropout of the bias tower, in training only, makes f(x) explain clicks without it, too:
    h is multiplied by m / (1 - dropout) with m = 0 for a share `dropout` of the shown documents, drawn anew each step.

    Zhang, Yan, Qin, Zhuang, Shen, Wang, Bendersky, Najork: Towards Disentangling Relevance and Bias in Unbiased
    Learning to Rank, KDD 2023.
    """

    name: ClassVar[str] = "two-tower"

    dropout: float = 0.0
    """Share of the shown documents whose bias is dropped in a step of training."""
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

    def learns(self, factor: Factor) -> bool:
        """All factors by the sigmoid; by the softmax, only those that vary within a list."""
        return self.link == "sigmoid" or not factor.by_page

    def objective(self, factors: Sequence[Factor]) -> TowersObjective:
        """The bias tower."""
        return TowersObjective(factors, link=self.link, dropout=self.dropout, smooth=self.smooth)

    def stages(self, objective: TowersObjective, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """One stage, on the likelihood; validation drops nothing."""
        noise = 1 if self.dropout else 0
        return [Stage("likelihood", steps, objective.loss, objective.score, bias=(objective,), noise=noise)]

    def effects(self) -> dict[str, Floats]:
        """What each level adds to the click logit, relative to the first level of its factor, [levels]."""
        return self.ranker_.objective.effects()

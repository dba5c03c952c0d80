"""LBD: observation that depends on document and position, kept apart from relevance by dropout and a penalty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from ultr import checks
from ultr.errors import OptionError
from ultr.losses import softmax_cross_entropy
from ultr.methods.estimator import Estimator
from ultr.methods.factors import Factor
from ultr.methods.observation import Observation, drop
from ultr.relevance.mlp import MLP
from ultr.relevance.preprocessing import InputLayout
from ultr.relevance.relevance_model import Relevance, RelevanceModel
from ultr.train.lists import Batch, TrainingLists
from ultr.train.objective import Objective
from ultr.train.stage import Stage


class DecoupledObjective(Objective):
    """o(x, t) = v(t) . u(x) + b(t) beside f(x), where f and u are outputs of one network."""

    def __init__(self, factors: Sequence[Factor], code: int, *, dropout: float, smooth: bool = True) -> None:
        super().__init__()
        self.observation = Observation(factors, code + 1, combine="sum", start=0.0, smooth=smooth)
        self.code, self.dropout = code, dropout

    def observed(self, r: Tensor, batch: Batch) -> Tensor:
        """o(x, t), [documents]."""
        vectors: Tensor = self.observation(batch.factors)
        return (vectors[:, :-1] * r[:, 1:]).sum(dim=-1) + vectors[:, -1]

    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """f(x) + o(x, t), [lists, width]; with noise, o is dropped for some documents."""
        observed = self.observed(r, batch)
        if batch.noise is not None:
            observed = drop(observed, batch.noise[:, 0], self.dropout)
        return batch.pad(r[:, 0] + observed)

    def neutral_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """f(x), [lists, width]: what a place adds to a click is all of o(x, t)."""
        return batch.pad(r[:, 0])

    def neutral_direction(self) -> Tensor:
        """The first output, f(x)."""
        return functional.one_hot(torch.tensor(0), 1 + self.code).float()

    def combine(self, r: Tensor, mask: Tensor) -> Tensor:
        """f(x): the list adds nothing."""
        return r[..., 0]

    def direction(self, r: Tensor, mask: Tensor) -> Tensor:
        """The first output, f(x)."""
        return self.neutral_direction()

    def score(self, r: Tensor, mask: Tensor) -> Tensor:
        """f(x), [documents]."""
        return r[:, 0]

    def loss(self, r: Tensor, batch: Batch, penalty: float) -> Tensor:
        """Cross-entropy of the clicks plus the mean |d o / d x|^2 of the documents of each list, [lists]."""
        loss = softmax_cross_entropy(self.click_logits(r, batch), batch.clicks, mask=batch.mask)
        return loss + penalty * self.steepness(r, batch) if penalty else loss

    def steepness(self, r: Tensor, batch: Batch) -> Tensor:
        """The mean |d o(x, t) / d x|^2 of the documents of each list, [lists]; nothing is dropped."""
        # A document's o depends on its own inputs alone, so that the derivatives of the sum are those of each.
        inputs = batch.documents.preprocessed
        (slopes,) = torch.autograd.grad(self.observed(r, batch).sum(), inputs, create_graph=True)
        return batch.pad(slopes.square().sum(dim=-1)).sum(dim=-1) / batch.mask.sum(dim=-1)


@dataclass(kw_only=True, eq=False)
class LBD(Estimator[DecoupledObjective]):
    """Lipschitz and Bernoulli decoupling: whether a document is looked at depends on its place and on itself.

        logit = f(x) + m o(x, t),   o(x, t) = v(t) . u(x) + b(t)
        L = - sum_i c_i log softmax_i(logit_i) + penalty mean_i |d o(x_i, t_i) / d x_i|^2

    What x adds at all places alike could be relevance or observation. Two things make it relevance: o must not be
    steep in x (Lipschitz), and with `dropout` it is left out for so large a share of the documents, drawn anew each
    step (Bernoulli; m = 0, else 1 / (1 - dropout)). f and u are outputs of one network, which ranks by f alone. A bias
    factor that is the same for a whole list is left out.

    Chen, Liu, Liu, Sun: LBD: Decouple Relevance and Observation for Individual-Level Unbiased Learning to Rank, NeurIPS
    2022.
    """

    name: ClassVar[str] = "lbd"
    within_lists: ClassVar[bool] = True
    takes: ClassVar[type[Relevance]] = MLP

    dimension: int = 8
    """Length of u(x), by which documents differ in how they are looked at; 0 would be a position for all alike."""
    dropout: float = 0.0
    """Share of the shown documents whose observation is left out in a step of training; 0.1 in the publication."""
    penalty: float = 0.04
    """The weight of |d o / d x|^2."""
    smooth: bool = True
    """A smooth curve over the bins of a numeric bias factor; else a value for each bin."""

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        super().check()
        checks.integer("dimension", self.dimension, at_least=1)
        checks.not_negative("penalty", self.penalty)
        checks.boolean("smooth", self.smooth)
        if checks.not_negative("dropout", self.dropout) >= 1:
            raise OptionError(f"dropout must be at least 0 and below 1, got {self.dropout!r}")

    def objective(self, factors: Sequence[Factor]) -> DecoupledObjective:
        """A vector and a number for each level of each bias factor."""
        return DecoupledObjective(factors, self.dimension, dropout=self.dropout, smooth=self.smooth)

    def models(self, features: InputLayout, generator: torch.Generator) -> dict[str, RelevanceModel]:
        """One network for f(x) and u(x)."""
        return {"relevance": self.relevance.build(features, 1 + self.dimension, generator=generator)}

    def stages(self, objective: DecoupledObjective, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """One stage, on the clicks; validation has neither dropout nor penalty."""
        return [
            Stage(
                "decoupled clicks",
                steps,
                lambda r, batch: objective.loss(r, batch, self.penalty),
                objective.score,
                bias=(objective,),
                noise=1 if self.dropout else 0,
                slopes=self.penalty > 0,
                held_out=objective.click_loss,
            )
        ]

"""Relevance and observation vectors: what Vectorization makes clicks and scores of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ultr.arrays import Floats, Integers
from ultr.data import ragged
from ultr.losses import gaussian_loss, softmax_cross_entropy
from ultr.methods.click_weights import ClickWeights
from ultr.methods.factors import Factor
from ultr.methods.observation import Observation
from ultr.methods.ranker import Ranker
from ultr.methods.vector_offset import OffsetObjective
from ultr.train.lists import Batch, pad
from ultr.train.objective import Objective
from ultr.train.stage import RELEVANCE

BASE = ("base",)
"""The network that predicts under which observation a document is seen."""


class VectorObjective(Objective):
    """Observation embeddings o(t) in R^d, and what is made of r(x) and of the base network's (mu(x), log sigma^2(x)).

    Outputs side by side are r(x), mu(x) and log sigma^2(x), each in R^d; where one network is enough, only its own.
    """

    ranks_with = (*RELEVANCE, *BASE)
    vectors_by: ClassVar[tuple[str, ...]] = RELEVANCE
    """The relevance model whose outputs are r(x)."""
    centre: Tensor
    spread: Tensor
    shown: tuple[Tensor, Tensor]
    """The combinations of levels in the training log, [combinations, factors], and their shares of what was shown."""

    def __init__(
        self,
        factors: Sequence[Factor],
        dimension: int,
        *,
        combine: str,
        weight_power: float = 0.0,
        stopping: float | str = 0.0,
        smooth: bool = True,
    ) -> None:
        super().__init__()
        self.dimension = dimension
        self.observation = Observation(factors, dimension, combine=combine, smooth=smooth)
        self.click_weights = ClickWeights(len(factors[0].levels), weight_power, stopping=stopping)
        # The base network works in units of the log's observation embeddings: o = centre + spread * output.
        self.register_buffer("centre", torch.zeros(dimension))
        self.register_buffer("spread", torch.ones(dimension))

    def logits(self, r: Tensor, batch: Batch) -> Tensor:
        """r(x) . o(t) of each document, [lists, width]."""
        return batch.pad((r[:, : self.dimension] * self.observation(batch.factors)).sum(dim=-1))

    def click_loss(self, r: Tensor, batch: Batch) -> Tensor:
        """List-wise cross-entropy of the weighted clicks, [lists]."""
        return softmax_cross_entropy(self.logits(r, batch), self.click_weights.weighted(batch), mask=batch.mask)

    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """Logits of the clicks as they are, [lists, width]."""
        return self.click_weights.click_logits(self.logits(r, batch), batch)

    def mean_observation(self) -> Tensor:
        """The mean of o(t) over what was shown, [dimension]."""
        levels, shares = (each.to(self.centre.device) for each in self.shown)
        mean: Tensor = shares @ self.observation(levels)
        return mean

    def neutral_direction(self) -> Tensor:
        """The mean observation."""
        return self.mean_observation()

    def neutral_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """r(x) . b with b the mean observation, [lists, width]."""
        return batch.pad(self.score_on(r, self.mean_observation()))

    def base_loss(self, r: Tensor, batch: Batch) -> Tensor:
        """Loss of the base network's prediction of the observation embeddings, which it does not change, [lists]."""
        mean, log_variance = self.base_distribution(r[:, -2 * self.dimension :])
        target = self.observation(batch.factors).detach()
        return batch.pad(gaussian_loss(mean, log_variance, target)).sum(dim=-1)

    def joint_loss(self, r: Tensor, batch: Batch) -> Tensor:
        """Both losses, as released: that of the base network as a mean over documents and dimensions, [lists]."""
        scale = 2 / (batch.mask.sum(dim=-1) * self.dimension)
        return self.click_loss(r, batch) + scale * self.base_loss(r, batch)

    def base_distribution(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """mu(x) and log sigma^2(x) of the observation embedding under which x is seen, each [documents, dimension]."""
        mean, log_variance = outputs.chunk(2, dim=-1)
        return self.centre + self.spread * mean, 2 * self.spread.log() + log_variance

    @torch.no_grad()
    def set_units(self) -> None:
        """Let the base network start at the distribution of the log's observation embeddings, in units of them.

        Without this, their small differences are lost in the noise of the first thousands of steps.
        """
        levels, shares = (each.to(self.centre.device) for each in self.shown)
        embeddings = self.observation(levels)
        self.centre.copy_(shares @ embeddings)
        self.spread.copy_((shares @ (embeddings - self.centre).square()).sqrt().clamp(min=1e-3))

    def score_on(self, r: Tensor, vector: Tensor) -> Tensor:
        """r(x) projected on one vector, [documents]."""
        return (r[:, : self.dimension] * vector).sum(dim=-1)

    def combine(self, r: Tensor, mask: Tensor) -> Tensor:
        """r(x) projected on the base vector of its list, [lists, width]."""
        relevance, mean, log_variance = r.chunk(3, dim=-1)
        return (relevance * self._most_probable(mean, log_variance, mask)).sum(dim=-1)

    def base_vectors(self, r: Tensor, mask: Tensor) -> Tensor:
        """The most probable observation embedding of the candidates of each list, [lists, dimension]."""
        _, mean, log_variance = r.chunk(3, dim=-1)
        return self._most_probable(mean, log_variance, mask).squeeze(1)

    def direction(self, r: Tensor, mask: Tensor) -> Tensor:
        """The mean base vector of these lists, [dimension]."""
        return self.base_vectors(r, mask).mean(dim=0)

    def _most_probable(self, mean: Tensor, log_variance: Tensor, mask: Tensor) -> Tensor:
        """Where the product of the candidates' normal densities is highest, [lists, 1, dimension]."""
        # sum_i mu_i / sigma_i^2 over sum_i 1 / sigma_i^2 is a softmax over the candidates of -log sigma^2. A weighted
        # mean in the units of the base network is one in those of the observations.
        weights = torch.where(mask.unsqueeze(-1), -log_variance, float("-inf")).softmax(dim=1)
        return self.centre + self.spread * (weights * mean).sum(dim=1, keepdim=True)


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Documents, bias factors and queries as vectors of one space."""

    ranker: Ranker[VectorObjective | OffsetObjective]

    @classmethod
    def of(cls, ranker: Ranker) -> Embeddings | None:
        """The embeddings of a ranker by Vectorization; None for other methods."""
        return cls(ranker) if isinstance(ranker.objective, VectorObjective | OffsetObjective) else None

    def relevance(self, features: Floats) -> Floats:
        """r(x) of each candidate, [candidates, dimension]."""
        return self.ranker.outputs(features, self.ranker.objective.vectors_by)

    def observation(self) -> dict[str, Floats]:
        """o(t) of each bias factor by its name, [levels, dimension]."""
        return self.ranker.objective.observation.embeddings()

    def base_vectors(self, features: Floats, offsets: Integers) -> Floats:
        """The base vector of each query, [queries, dimension]."""
        ragged.check_offsets(offsets, len(features), what="candidates")
        mask = torch.from_numpy(ragged.mask(offsets, width=int(np.diff(offsets).max(initial=1))))
        r = torch.from_numpy(self.ranker.outputs(features, self.ranker.objective.ranks_with))
        with torch.no_grad():
            return self.ranker.objective.base_vectors(pad(r, mask), mask).numpy()

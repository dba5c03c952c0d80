"""Vectorization with trees: vectors by a network, then one forest that ranks, with the vectors as its offset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from ultr.losses import softmax_cross_entropy
from ultr.methods.factors import Factor
from ultr.methods.observation import Observation
from ultr.train.lists import Batch
from ultr.train.objective import ScalarObjective
from ultr.train.stage import RELEVANCE

VECTORS = ("vectors",)


class OffsetObjective(ScalarObjective):
    """f(x) of the forest, beside the vectors v(x) of a network and the observation embeddings o(t).

    Clicks are shared out by f(x) + v(x) . (o(t) - b) with b the mean of o(t) over what was shown: f(x) is what the
    logit is under the mean observation, so that it ranks by itself, and the offset is what bias adds or takes away.
    """

    clicks_with: ClassVar[tuple[str, ...]] = (*RELEVANCE, *VECTORS)
    vectors_by: ClassVar[tuple[str, ...]] = VECTORS
    """The relevance model whose outputs are v(x)."""
    centre: Tensor

    def __init__(self, factors: Sequence[Factor], dimension: int, *, combine: str) -> None:
        super().__init__()
        self.dimension = dimension
        self.observation = Observation(factors, dimension, combine=combine)
        self.register_buffer("centre", torch.zeros(dimension))

    def vector_loss(self, r: Tensor, batch: Batch) -> Tensor:
        """List-wise cross-entropy of the clicks by v(x) . o(t) alone, [lists]."""
        logits = batch.pad((r * self.observation(batch.factors)).sum(dim=-1))
        return softmax_cross_entropy(logits, batch.clicks, mask=batch.mask)

    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """f(x) + v(x) . (o(t) - b), [lists, width]."""
        offset = (r[:, 1:] * (self.observation(batch.factors) - self.centre)).sum(dim=-1)
        return batch.pad(r[:, 0] + offset)

    def score_on(self, r: Tensor, vector: Tensor) -> Tensor:
        """v(x) projected on one vector, [documents]."""
        return (r * vector).sum(dim=-1)

    def base_vectors(self, r: Tensor, mask: Tensor) -> Tensor:
        """B for every list, [lists, dimension]."""
        return self.centre.expand(len(mask), -1)

    @torch.no_grad()
    def set_centre(self, levels: Tensor, shares: Tensor) -> None:
        """Let b be the mean observation of the log."""
        self.centre.copy_(shares @ self.observation(levels))

"""Vectorization with trees: vectors by a network, then one forest that ranks, with the vectors as its offset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from ultr.losses import lambdarank_loss, list_log_softmax, softmax_cross_entropy
from ultr.methods.click_weights import ClickWeights
from ultr.methods.factors import Factor
from ultr.methods.observation import Observation
from ultr.train.lists import Batch
from ultr.train.objective import ScalarObjective
from ultr.train.stage import RELEVANCE

VECTORS = ("vectors",)
_MOST = 100.0
"""No click counts more than this, so that rarely seen positions do not outweigh all others."""


class OffsetObjective(ScalarObjective):
    """f(x) of the forest, beside the vectors v(x) of a network and the observation embeddings o(t).

    Clicks are shared out by f(x) + v(x) . (o(t) - b) with b the mean of o(t) over what was shown: f(x) is what the
    logit is under the mean observation, so that it ranks by itself, and the offset is what bias adds or takes away.
    """

    clicks_with = (*RELEVANCE, *VECTORS)
    vectors_by: ClassVar[tuple[str, ...]] = VECTORS
    """The relevance model whose outputs are v(x)."""
    centre: Tensor

    def __init__(
        self,
        factors: Sequence[Factor],
        dimension: int,
        *,
        combine: str,
        weight_power: float = 0.0,
        stopping: float | str = 0.0,
        smooth: bool = True,
        soft_targets: float = 0.0,
        predicts_clicks: bool = True,
    ) -> None:
        super().__init__()
        self.dimension, self.soft_targets, self.predicts_clicks = dimension, soft_targets, predicts_clicks
        self.observation = Observation(factors, dimension, combine=combine, smooth=smooth)
        self.click_weights = ClickWeights(len(factors[0].levels), weight_power, stopping=stopping)
        self.register_buffer("centre", torch.zeros(dimension))

    @property
    def ranks_by_click_model(self) -> bool:
        """True if the forest predicts clicks, with the network."""
        return self.predicts_clicks

    def vector_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """v(x) . o(t), [lists, width]: what the network makes of the clicks."""
        return batch.pad((r * self.observation(batch.factors)).sum(dim=-1))

    def offset(self, r: Tensor, batch: Batch) -> Tensor:
        """v(x) . (o(t) - b), [lists, width]."""
        return batch.pad((r[:, 1:] * (self.observation(batch.factors) - self.centre)).sum(dim=-1))

    def logits(self, r: Tensor, batch: Batch) -> Tensor:
        """f(x) + v(x) . (o(t) - b), [lists, width]."""
        return batch.pad(r[:, 0]) + self.offset(r, batch)

    def vector_loss(self, r: Tensor, batch: Batch) -> Tensor:
        """List-wise cross-entropy of the weighted clicks by v(x) . o(t) alone, [lists]."""
        return softmax_cross_entropy(self.vector_logits(r, batch), self.click_weights.weighted(batch), mask=batch.mask)

    def click_loss(self, r: Tensor, batch: Batch) -> Tensor:
        """List-wise cross-entropy of the weighted clicks, [lists]."""
        return softmax_cross_entropy(self.logits(r, batch), self.click_weights.weighted(batch), mask=batch.mask)

    def targets(self, r: Tensor, batch: Batch) -> Tensor:
        """The weighted clicks, a share of which is as the network predicts them, [lists, width]."""
        clicks = self.click_weights.weighted(batch).masked_fill(~batch.mask, 0.0)
        shares = list_log_softmax(self.vector_logits(r[:, 1:], batch), mask=batch.mask).exp()
        predicted = clicks.sum(dim=-1, keepdim=True) * shares
        return torch.lerp(clicks, predicted, self.soft_targets)

    def soft_loss(self, r: Tensor, batch: Batch) -> Tensor:
        """List-wise cross-entropy of the targets, [lists]."""
        return softmax_cross_entropy(self.logits(r, batch), self.targets(r, batch), mask=batch.mask)

    def lambdarank_loss(self, r: Tensor, batch: Batch) -> Tensor:
        """LambdaRank's loss of f(x) with debiased gains: a click counts exp(-offset), as under the mean observation."""
        gains = self.targets(r, batch) * (-self.offset(r, batch)).exp().clamp(max=_MOST)
        return lambdarank_loss(batch.pad(r[:, 0]), gains, mask=batch.mask)

    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """Logits of the clicks as they are, [lists, width]; those of the network where f(x) only ranks."""
        logits = self.logits(r, batch) if self.predicts_clicks else self.vector_logits(r[:, 1:], batch)
        return self.click_weights.click_logits(logits, batch)

    def neutral_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """Logits under the mean observation b, [lists, width]: f(x), or v(x) . b where f(x) only ranks."""
        return batch.pad(r[:, 0] if self.predicts_clicks else self.score_on(r[:, 1:], self.centre))

    def value_loss(self, value: Tensor, effect: Tensor, batch: Batch) -> Tensor:
        """The likelihood of values, or LambdaRank's loss with debiased ones for gains, as of clicks, [lists]."""
        if self.predicts_clicks:
            return super().value_loss(value, effect, batch)
        assert batch.values is not None
        return lambdarank_loss(value, batch.values * (-effect).exp().clamp(max=_MOST), mask=batch.mask)

    def score_on(self, r: Tensor, vector: Tensor) -> Tensor:
        """v(x) projected on one vector, [documents]."""
        return (r * vector).sum(dim=-1)

    def base_vectors(self, r: Tensor, mask: Tensor) -> Tensor:
        """The mean observation b for every list, [lists, dimension]."""
        return self.centre.expand(len(mask), -1)

    @torch.no_grad()
    def set_centre(self, levels: Tensor, shares: Tensor) -> None:
        """Let b be the mean observation of the log."""
        self.centre.copy_(shares @ self.observation(levels))

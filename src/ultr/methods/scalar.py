"""The network of every method that gives a document one score."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ultr.losses import softmax_cross_entropy
from ultr.methods.network import ClickNetwork
from ultr.nn import MLP
from ultr.train.lists import Batch


class ScalarNetwork(ClickNetwork):
    """f(x) in R, a relevance network with one output."""

    def __init__(self, features: int, hidden: Sequence[int], generator: torch.Generator) -> None:
        super().__init__()
        self.relevance = MLP(features, hidden, 1, normalise=True, generator=generator)

    def click_logits(self, batch: Batch) -> Tensor:
        """f(x) of each document, [lists, width]."""
        return batch.pad(self.relevance(batch.features).squeeze(-1))

    def loss(self, batch: Batch) -> Tensor:
        """List-wise softmax cross-entropy of the clicks, [lists]."""
        return softmax_cross_entropy(self.click_logits(batch), batch.clicks, mask=batch.mask)

    def embed(self, inputs: Tensor) -> Tensor:
        """f(x), [documents, 1]."""
        scores: Tensor = self.relevance(inputs)
        return scores

    def combine(self, values: Tensor, mask: Tensor) -> Tensor:
        """The list adds nothing."""
        return values.squeeze(-1)

    def pointwise(self, inputs: Tensor, mask: Tensor) -> MLP:
        """The relevance network itself."""
        return self.relevance

    def score(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """f(x), [documents]."""
        return self.embed(inputs).squeeze(-1)

"""What the networks of all methods share: their sizes, and how they predict clicks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor, nn

from ultr.train.lists import Batch, pad


@dataclass(frozen=True)
class Shape:
    """The sizes that a log gives a network."""

    features: int
    levels: tuple[int, ...]
    """The number of levels of each bias factor; empty where there are none."""


class ClickNetwork(nn.Module, ABC):
    """A network that predicts clicks and scores candidates.

    A score is made in two steps, so that it can be had in every form that lists come in, padded, flat or one document
    at a time: what a document is by itself, and what its list makes of that. By default a network knows of clicks only
    how those of a list are shared out.
    """

    @abstractmethod
    def embed(self, inputs: Tensor) -> Tensor:
        """What a score is made of, for each document by itself, [documents, values]."""

    @abstractmethod
    def combine(self, values: Tensor, mask: Tensor) -> Tensor:
        """Scores from what the documents of each list are, [lists, width, values] -> [lists, width]."""

    @abstractmethod
    def pointwise(self, inputs: Tensor, mask: Tensor) -> nn.Module:
        """A network [documents, features] -> [documents, 1] with what lists add to a score fixed at its mean here."""

    def score(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """The score of each document, [documents]."""
        return self.combine(pad(self.embed(inputs), mask), mask)[mask]

    @abstractmethod
    def click_logits(self, batch: Batch) -> Tensor:
        """Logits whose softmax over a list shares out its clicks, [lists, width]."""

    def click_shares(self, batch: Batch) -> Tensor:
        """The share of its list's clicks that each document gets, [lists, width]; 0 where there is no document."""
        return self.click_logits(batch).double().masked_fill(~batch.mask, float("-inf")).softmax(dim=-1)

    def click_probabilities(self, batch: Batch, *, clicks_per_impression: float) -> Tensor:
        """The probability of a click on each document, [lists, width]; 0 where there is no document.

        A list-wise loss fixes how the clicks of a list are shared out, not how many there are; their number an
        impression is that of the training log. A network that knows the probabilities themselves gives them instead.
        """
        return (self.click_shares(batch) * clicks_per_impression).clamp(max=1.0)


class PointwiseClickNetwork(ClickNetwork):
    """A network whose click logits are the logarithms of click probabilities, each document's own."""

    def click_probabilities(self, batch: Batch, *, clicks_per_impression: float) -> Tensor:
        """The probabilities that the network knows, [lists, width]; 0 where there is no document."""
        return self.click_logits(batch).double().exp().clamp(max=1.0).masked_fill(~batch.mask, 0.0)

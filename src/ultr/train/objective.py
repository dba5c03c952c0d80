"""What a method is: its bias parameters and pure functions of (r, batch)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

import torch
from torch import Tensor, nn

from ultr.losses import click_likelihood_loss, softmax_cross_entropy
from ultr.train.lists import Batch, pad
from ultr.train.stage import RELEVANCE


class Objective(nn.Module, ABC):
    """Bias parameters, and how they and the relevance r(x) of documents make clicks and scores.

    Scores are made in two steps, so that they can be had in every form that lists come in, padded, flat or one document
    at a time: r(x) for each document by itself, and what a list makes of it.
    """

    ranks_with: tuple[str, ...] = RELEVANCE
    """Relevance models whose outputs `combine` takes, side by side."""
    clicks_with: tuple[str, ...] = RELEVANCE
    """Relevance models whose outputs `click_logits` takes."""

    @abstractmethod
    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """Logits whose softmax over a list shares out its clicks, [lists, width]."""

    @abstractmethod
    def combine(self, r: Tensor, mask: Tensor) -> Tensor:
        """Scores of lists, [lists, width, outputs] -> [lists, width]."""

    @abstractmethod
    def direction(self, r: Tensor, mask: Tensor) -> Tensor:
        """The vector v [outputs of `relevance`] for which r(x) . v comes nearest to the scores of these lists."""

    @property
    def by_list(self) -> bool:
        """True if the scores of documents depend on their list."""
        return True

    @property
    def ranks_by_click_model(self) -> bool:
        """True if the model that ranks is one that predicts clicks."""
        return self.ranks_with[0] in self.clicks_with

    def directions(self, r: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """For each relevance model that ranks, the vector to project its outputs on; the sum comes nearest to the
        scores of these lists.
        """
        return {self.ranks_with[0]: self.direction(r, mask)}

    def score(self, r: Tensor, mask: Tensor) -> Tensor:
        """The score of each document, [documents, outputs] -> [documents]."""
        return self.combine(pad(r, mask), mask)[mask]

    def neutral_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """Logits of the clicks if all documents were seen alike, under the first level of each factor, [lists, width].

        The click logits less these are what the place of a document adds.
        """
        return self.click_logits(r, replace(batch, factors=torch.zeros_like(batch.factors)))

    def neutral_direction(self) -> Tensor:
        """The vector v [outputs of the first model that ranks] by which r(x) . v ranks documents seen alike."""
        return torch.ones(1)

    def value_loss(self, value: Tensor, effect: Tensor, batch: Batch) -> Tensor:
        """Loss of a model of the value, [lists]; its logits and the effect of the place on clicks, [lists, width].

        The list-wise cross-entropy is least where softmax(value + effect) shares out the values of every list.
        """
        assert batch.values is not None
        return softmax_cross_entropy(value + effect, batch.values, mask=batch.mask)

    def click_loss(self, r: Tensor, batch: Batch) -> Tensor:
        """List-wise softmax cross-entropy of the clicks, [lists]."""
        return softmax_cross_entropy(self.click_logits(r, batch), batch.clicks, mask=batch.mask)

    def click_shares(self, r: Tensor, batch: Batch) -> Tensor:
        """The share of its list's clicks that each document gets, [lists, width]; 0 where there is no document."""
        return self.click_logits(r, batch).double().masked_fill(~batch.mask, float("-inf")).softmax(dim=-1)

    def click_probabilities(self, r: Tensor, batch: Batch, *, clicks_per_impression: float) -> Tensor:
        """The probability of a click on each document, [lists, width]; 0 where there is no document.

        A list-wise loss fixes how the clicks of a list are shared out, not how many there are; their number per
        impression is that of the training log.
        """
        return (self.click_shares(r, batch) * clicks_per_impression).clamp(max=1.0)


class ScalarObjective(Objective):
    """An objective whose relevance is one number, by which documents are ranked, whatever their list."""

    @property
    def by_list(self) -> bool:
        """False: a document has its score by itself."""
        return False

    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """f(x) of each document, [lists, width]."""
        return batch.pad(r.squeeze(-1))

    def combine(self, r: Tensor, mask: Tensor) -> Tensor:
        """f(x): the list adds nothing."""
        return r.squeeze(-1)

    def direction(self, r: Tensor, mask: Tensor) -> Tensor:
        """f(x) itself."""
        return torch.ones(1)

    def score(self, r: Tensor, mask: Tensor) -> Tensor:
        """f(x), [documents]."""
        return r.squeeze(-1)


class PointwiseObjective(ScalarObjective):
    """An objective whose click logits are the logarithms of click probabilities, each document's own."""

    def click_probabilities(self, r: Tensor, batch: Batch, *, clicks_per_impression: float) -> Tensor:
        """exp(click logit), [lists, width]; 0 where there is no document."""
        return self.click_logits(r, batch).double().exp().clamp(max=1.0).masked_fill(~batch.mask, 0.0)

    def click_loss(self, r: Tensor, batch: Batch) -> Tensor:
        """Minus the log-likelihood of each list's clicks and skips, [lists]."""
        return click_likelihood_loss(self.click_logits(r, batch), batch.clicks, mask=batch.mask)

"""DLA: ranker and propensities learn from each other, each weighted by the other's inverse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ultr.arrays import Doubles
from ultr.losses import softmax_cross_entropy
from ultr.methods.estimator import Estimator
from ultr.methods.network import Shape
from ultr.methods.scalar import ScalarNetwork
from ultr.nn import Observation
from ultr.train.lists import Batch, TrainingLists
from ultr.train.stage import Stage


class DualNetwork(ScalarNetwork):
    """f(x), the logit of relevance, and h(t), the logit of observation."""

    def __init__(self, shape: Shape, hidden: Sequence[int], generator: torch.Generator) -> None:
        super().__init__(shape.features, hidden, generator)
        self.observation = Observation(shape.levels, 1, combine="sum")

    def logits(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """f(x) and h(t) of each document, each [lists, width]."""
        relevance = self.relevance(batch.features).squeeze(-1)
        return batch.pad(relevance), batch.pad(self.observation(batch.factors).squeeze(-1))

    def click_logits(self, batch: Batch) -> Tensor:
        """Clicks need both: f(x) + h(t)."""
        relevance, observation = self.logits(batch)
        return relevance + observation

    def click_loss(self, batch: Batch) -> Tensor:
        """Cross-entropy of the clicks under both, what held-out clicks are judged by, [lists]."""
        return softmax_cross_entropy(self.click_logits(batch), batch.clicks, mask=batch.mask)

    def dual_loss(self, batch: Batch) -> Tensor:
        """The inverse-propensity loss of the ranker and the inverse-relevance loss of the propensities, [lists]."""
        relevance, observation = self.logits(batch)
        by_propensity = batch.clicks * _first_over_each(observation)
        by_relevance = batch.clicks * _first_over_each(relevance)
        return softmax_cross_entropy(relevance, by_propensity, mask=batch.mask) + softmax_cross_entropy(
            observation, by_relevance, mask=batch.mask
        )


def _first_over_each(logits: Tensor) -> Tensor:
    """The probability of the first document of a list over that of each; only a weight, so without a gradient."""
    fixed = logits.detach()
    return (fixed[:, :1] - fixed).exp()


@dataclass(kw_only=True, eq=False)
class DLA(Estimator):
    """The dual learning algorithm: unbiased ranking and unbiased propensity estimation as one problem.

        L = - sum_i c_i theta_1 / theta_i log softmax_i( f(x_i) ) - sum_i c_i g_1 / g_i log softmax_i( h(t_i) )

    with theta = softmax(h) and g = softmax(f) within the list, 1 its first document. It assumes that the click
    probability is observation times relevance, two scalars.

    Ai, Bi, Luo, Guo, Croft: Unbiased Learning to Rank with Unbiased Propensity Estimation, SIGIR 2018.
    """

    name: ClassVar[str] = "dla"

    def build(self, shape: Shape, generator: torch.Generator) -> DualNetwork:
        """A relevance network and a logit for each level of each bias factor."""
        return DualNetwork(shape, self.hidden, generator)

    def stages(self, network: DualNetwork, lists: TrainingLists) -> Sequence[Stage]:
        """Both losses at once."""
        steps = self.first_stage_steps()
        return [Stage("dual", steps, network.dual_loss, (network,), network.score, held_out=network.click_loss)]

    def propensities(self) -> dict[str, Doubles]:
        """The learned propensities of each bias factor by its name, those of its first level set to 1, [levels]."""
        self.check_fitted()
        assert isinstance(self.network_, DualNetwork)
        tables = self.network_.observation.tables
        logits = {
            name: table.detach().double().squeeze(-1) for (name, _), table in zip(self.factors_, tables, strict=True)
        }
        return {name: (values - values[0]).exp().numpy() for name, values in logits.items()}

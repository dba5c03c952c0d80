"""The value of documents: what follows a click, learned with the bias of the clicks."""

from __future__ import annotations

import torch
from torch import Tensor

from ultr.train.lists import Batch
from ultr.train.objective import Objective, ScalarObjective
from ultr.train.stage import Models, Stage

VALUE = "value"
"""The name of the relevance model of the value, and of its stage."""


class ByValue(ScalarObjective):
    """Documents ranked by the model of their value."""

    ranks_with = (VALUE,)


class Valued(ByValue):
    """An objective of clicks whose documents are ranked by the model of their value."""

    def __init__(self, clicks: Objective) -> None:
        super().__init__()
        self.clicks, self.clicks_with = clicks, clicks.clicks_with

    def click_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """Those of the clicks, [lists, width]."""
        return self.clicks.click_logits(r, batch)

    def click_probabilities(self, r: Tensor, batch: Batch, *, clicks_per_impression: float) -> Tensor:
        """Those of the clicks, [lists, width]."""
        return self.clicks.click_probabilities(r, batch, clicks_per_impression=clicks_per_impression)

    def neutral_logits(self, r: Tensor, batch: Batch) -> Tensor:
        """Those of the clicks, [lists, width]."""
        return self.clicks.neutral_logits(r, batch)


def value_stage(objective: Objective, steps: int) -> Stage:
    """The stage that learns the value, after those that have learned from clicks; their parameters are fixed.

    With E[value | x, t] = P(click | x, t) E[value | click, x], the place of a document changes its value as it changes
    its clicks, by the effect

        e(x, t) = log P(click | x, t) - log P(click | x, neutral)

    which the click model knows. So the model of the value s(x) has the loss

        L = - sum_i v_i log softmax_i( s(x_i) + e(x_i, t_i) )

    which is least for s(x) = log E[value | x, neutral], up to a constant.
    """

    def begin(models: Models) -> None:
        # What brings no value yet is ranked by its clicks.
        clicks = models[objective.ranks_with[0]].project(objective.neutral_direction())
        models[VALUE].load_state_dict(clicks.state_dict())

    def loss(r: Tensor, batch: Batch) -> Tensor:
        of_clicks, value = r[:, :-1], batch.pad(r[:, -1])
        with torch.no_grad():
            effect = objective.click_logits(of_clicks, batch) - objective.neutral_logits(of_clicks, batch)
        return objective.value_loss(value, effect, batch)

    return Stage(
        VALUE,
        steps,
        loss,
        ByValue().score,
        uses=(*objective.clicks_with, VALUE),
        ranks_with=ByValue.ranks_with,
        moves=(VALUE,),
        begin=begin,
    )

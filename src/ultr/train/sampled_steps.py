"""Steps on a few lists each, drawn in proportion to their impressions: how networks learn."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn

from ultr.relevance.precision import PRECISIONS
from ultr.train.lists import Batch
from ultr.train.process_group import ALONE, ProcessGroup
from ultr.train.ranking_model import RankingModel
from ultr.train.sampler import ListSampler
from ultr.train.stage import Stage
from ultr.train.steps import Steps


@dataclass
class SampledSteps(Steps):
    """Steps on a batch of lists each."""

    def __post_init__(self) -> None:
        assert self.training.batch_size is not None
        self._sampler = ListSampler(
            self.weights, self.training.batch_size, seed=self.seed, purpose=f"lists {self.number}"
        )

    def __call__(self, step: int) -> float:
        """Take this step and give its mean loss."""
        drawn = self._sampler(step)
        share = self.group.share(len(drawn))
        batch = self.lists.batch(
            drawn,
            share=share,
            sessions=self.training.sessions,
            readers=self.stage.readers,
            noise=self.stage.noise,
            random=lambda purpose: self.random(purpose, step),
        )
        batch = batch.clicked() if self.stage.clicked_only else batch
        return train_step(
            self.model,
            self.stage,
            batch,
            self.optimizer,
            clip_norm=self.training.clip_norm,
            precision=self.training.precision,
            group=self.group,
            drawn=len(drawn),
        )


def train_step(
    model: RankingModel,
    stage: Stage,
    batch: Batch,
    optimizer: torch.optim.Optimizer,
    *,
    clip_norm: float,
    precision: str = "float32",
    group: ProcessGroup = ALONE,
    drawn: int | None = None,
) -> float:
    """Move the weights by one batch and give its mean loss; a `FloatingPointError` leaves them where they were.

    The batch is a share of the lists that all processes have `drawn`, by default all of them; the lists of the batch
    are summed, and divided by that number. Gradients, and the sums for a closed form, are summed over the processes.
    """
    parameters = [parameter for part in optimizer.param_groups for parameter in part["params"]]
    device = parameters[0].device if parameters else torch.device("cpu")
    batch = batch.to(device)
    with torch.autocast(device.type, PRECISIONS[precision], enabled=precision != "float32"):
        losses, sums = model.losses(stage, batch)
    loss = losses.sum() / (len(losses) if drawn is None else drawn)
    objective = loss if stage.penalty is None else loss + stage.penalty(model.by_name) / group.size
    optimizer.zero_grad()
    objective.backward()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        loss, objective = loss.detach(), objective.detach()
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        group.all_reduce([*gradients, loss, objective])
        if sums is not None:
            group.all_reduce([sums])
    norm = float(nn.utils.clip_grad_norm_(parameters, clip_norm))
    value = float(objective)
    if not math.isfinite(value):
        raise FloatingPointError(f"the loss is {value}")
    if not math.isfinite(norm):
        raise FloatingPointError(f"the gradient norm is {norm}")
    optimizer.step()
    if stage.update is not None:
        assert sums is not None, "a stage with an update needs a loss that gives sums"
        with torch.no_grad():
            stage.update(sums)
    return float(loss)

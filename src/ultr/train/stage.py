"""A stage of training: what is minimised, what may move, for how long."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from ultr.train.lists import Batch

ScoreFunction = Callable[[Tensor, Tensor], Tensor]
"""Network inputs [documents, features] and the mask of their lists -> scores [documents]."""


@dataclass(frozen=True)
class Stage:
    """A stage of training."""

    name: str
    steps: int
    loss: Callable[[Batch], Tensor]
    """The loss of each list, [lists]."""
    modules: tuple[nn.Module, ...]
    """What this stage trains; everything else is fixed."""
    score: ScoreFunction
    """How to rank with what this stage has learned so far, for validation on labels."""
    penalty: Callable[[], Tensor] | None = None
    """Added to the mean loss of a batch."""
    held_out: Callable[[Batch], Tensor] | None = None
    """What validation on held-out clicks measures, [lists]; by default the loss."""
    begin: Callable[[], None] | None = None
    """Called once, before the first step."""
    update: Callable[[Batch], None] | None = None
    """Called after each step with its batch and without gradients, for what is learned in closed form."""
    select: bool = True
    """Whether to stop early and end with the best weights that validation saw, instead of the last ones."""

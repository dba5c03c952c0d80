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
    loss: Callable[[Batch], Tensor | tuple[Tensor, Tensor]]
    """The loss of each list, [lists]; with `update` also one tensor of what it needs to know, without gradient and
    summed over the lists, so that the sums of several shares of a batch add up to its own."""
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
    update: Callable[[Tensor], None] | None = None
    """Called after each step with the sums that its loss gave before the weights moved, for what is learned in closed
    form."""
    select: bool = True
    """Whether to stop early and end with the best weights that validation saw, instead of the last ones."""

    def losses(self, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """The loss of each list, and the sums for `update` if there are any."""
        found = self.loss(batch)
        return found if isinstance(found, tuple) else (found, None)

    def held_out_losses(self, batch: Batch) -> Tensor:
        """What validation on held-out clicks measures, [lists]."""
        return self.losses(batch)[0] if self.held_out is None else self.held_out(batch)

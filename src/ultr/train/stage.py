"""A stage of training: a loss, the parts that move, and for how long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from ultr.arrays import Mask
from ultr.bias.readers_left import ReadersLeft
from ultr.relevance.recipe import Training
from ultr.relevance.relevance_model import RelevanceModel
from ultr.train.lists import Batch

RELEVANCE = ("relevance",)
"""The one relevance model that most methods have."""
ListLoss = Callable[[Tensor, Batch], Tensor]
"""Outputs r [documents, outputs] of a batch's documents, and the batch -> the loss of each list, [lists]."""
Models = Mapping[str, RelevanceModel]


@dataclass(frozen=True)
class Stage:
    """A stage of training.

    `loss` and `score` are functions of r, the outputs of one relevance model, or of several side by side.
    """

    name: str
    steps: int
    loss: Callable[[Tensor, Batch], Tensor | tuple[Tensor, Tensor]]
    """The loss of each list, [lists]. With `update` also one tensor that it needs, without a gradient and summed over
    the lists, so that the sums of several shares of a batch add up to those of the whole."""
    score: Callable[[Tensor, Tensor], Tensor]
    """Scores by what the stage has learned so far, for validation by labels: r and the mask -> [documents]."""
    uses: tuple[str, ...] = RELEVANCE
    """Relevance models whose outputs `loss` takes."""
    ranks_with: tuple[str, ...] = RELEVANCE
    """Relevance models whose outputs `score` takes."""
    moves: tuple[str, ...] = RELEVANCE
    """Relevance models that this stage trains; the others keep still."""
    bias: tuple[nn.Module, ...] = ()
    """Bias parameters that this stage trains; the others keep still."""
    part: Mask | None = None
    """[lists], True for the lists that this stage trains on; None: all."""
    clicked_only: bool = False
    """True: a list without a click adds nothing to `loss`, so that steps leave it out."""
    readers: ReadersLeft | None = None
    """The share of users left to see each document, which `loss` finds in `batch.left`."""
    noise: int = 0
    """Random numbers per document that `loss` finds in `batch.noise`.

    They depend on seed, stage and step alone, so that they repeat, resume and divide among processes."""
    slopes: bool = False
    """True: `loss` takes derivatives of r in the inputs of its documents, `batch.documents.preprocessed`."""
    held_out: ListLoss | None = None
    """The loss of validation by held-out clicks, without noise; by default `loss`."""
    penalty: Callable[[Models], Tensor] | None = None
    """Added to the mean loss of a batch."""
    begin: Callable[[Models], None] | None = None
    """Called once, before the first step."""
    update: Callable[[Tensor], None] | None = None
    """Called after each step with the sums that `loss` gave before the weights moved, for closed-form updates."""
    training: Training | None = None
    """The training of this stage; None: that of the estimator's relevance model."""
    select: bool = True
    """True: stop early and end with the best weights that validation saw; False: end with the last ones."""

    def losses(self, r: Tensor, batch: Batch) -> tuple[Tensor, Tensor | None]:
        """The loss of each list, and the sums for `update` if there are any."""
        found = self.loss(r, batch)
        return found if isinstance(found, tuple) else (found, None)

    def held_out_losses(self, r: Tensor, batch: Batch) -> Tensor:
        """The loss of each held-out list."""
        return self.losses(r, batch)[0] if self.held_out is None else self.held_out(r, batch)

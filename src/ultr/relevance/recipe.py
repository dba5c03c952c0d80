"""Recipes: optimiser, learning rate, batches, and what a step sees of a list."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn

from ultr.relevance.lookup import Lookup
from ultr.relevance.optimizers import AdaGrad, AdamW

FEWEST_DECAY_STEPS = 100
"""Lower bound of the time constant of weight decay in steps; with fewer, weights would follow single batches."""


@dataclass(frozen=True)
class Training:
    """All that decides how parameters are moved."""

    optimizer: str
    """`adam` or `adagrad`."""
    learning_rate: float
    steps: int
    """Steps of the first stage."""
    sessions: bool
    """True: one sampled impression of each list; False: its click rates over all impressions."""
    batch_size: int | None = 256
    """Lists per step, drawn in proportion to impressions; None: all lists in every step."""
    cosine: bool = False
    """True: the learning rate falls to 0 over a stage along half a cosine; False: it is constant."""
    beta2: float = 0.999
    """Adam's beta2."""
    weight_decay_epochs: float = math.inf
    """Decoupled weight decay of linear layers, as a time constant in epochs (passes over the documents).

    At the full learning rate, a weight without a gradient decays to 1/e in so many epochs. So what has been seen often
    enough to be learned by heart is forgotten, the sooner the fewer documents there are.
    """
    clip_norm: float = 5.0
    """Largest norm of the gradient of all parameters."""
    evaluate_every: int = 100
    """Steps between validations and checkpoints, unless the estimator is told otherwise."""
    precision: str = "float32"
    """One of `precision.PRECISIONS`; weights are kept in float32 whatever it is."""

    def build_optimizer(self, network: nn.Module, *, steps_per_epoch: float) -> torch.optim.Optimizer:
        """One optimiser for the whole run; parameters without a gradient keep still."""
        if self.optimizer == "adagrad":
            parameters = [{"params": list(network.parameters())}]
            return AdaGrad(parameters, lr=self.learning_rate, initial_accumulator_value=0.1, fused=True)
        # A step multiplies a weight by 1 - lr * decay, so that it is 1/e after 1 / (lr * decay) steps.
        constant = max(self.weight_decay_epochs * steps_per_epoch, FEWEST_DECAY_STEPS)
        weight_decay = 1 / (self.learning_rate * constant)
        layers = [module.weight for module in network.modules() if isinstance(module, nn.Linear)]
        # Those of a value that is seldom shown fade to 0, as it is for a value that never is.
        layers += [table.rows for table in network.modules() if isinstance(table, Lookup) and table.learned]
        others = [each for each in network.parameters() if not any(each is weight for weight in layers)]
        return AdamW(
            [{"params": layers, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}],
            lr=self.learning_rate,
            betas=(0.9, self.beta2),
            fused=True,
        )

    def rate(self, done: float) -> float:
        """The learning rate after this share of a stage."""
        return self.learning_rate * ((1 + math.cos(math.pi * done)) / 2 if self.cosine else 1.0)


RECIPES = {
    "fast": Training(
        optimizer="adam",
        learning_rate=0.01,
        steps=3_000,
        sessions=False,
        batch_size=64,
        cosine=True,
        beta2=0.99,
        weight_decay_epochs=6.0,
    ),
    "collapsed": Training(optimizer="adam", learning_rate=0.01, steps=3_000, sessions=False),
    "collapsed-adagrad": Training(optimizer="adagrad", learning_rate=0.05, steps=3_000, sessions=False),
    "paper": Training(optimizer="adagrad", learning_rate=0.05, steps=15_000, sessions=True),
}

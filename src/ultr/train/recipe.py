"""Recipes: how a network is fitted, whatever it learns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn

from ultr import checks
from ultr.train.optimizers import AdaGrad, AdamW

SOONEST = 100
"""The fewest steps in which a layer may fade to 1/e; in fewer, it would follow single batches."""


@dataclass(frozen=True)
class Recipe:
    """An optimiser with its settings, and what a step sees of a list."""

    optimizer: str
    learning_rate: float
    steps: int
    sessions: bool
    """True: one sampled impression of each list; False: its click rates over all impressions."""
    batch_size: int = 256
    """Lists a step."""
    decay: bool = False
    """Whether the learning rate falls to nothing over a stage, along half a cosine."""
    memory: float = 0.999
    """Of Adam: how much of the mean square of a gradient is kept from one step to the next."""
    passes: float = math.inf
    """Of Adam: in so many passes over the documents, at the full rate, a layer that learns nothing fades to 1/e.

    What has been seen often enough to be known by heart is thus forgotten, the sooner the fewer documents there are.
    Only the weights of linear layers fade.
    """
    clip_norm: float = 5.0

    def build_optimizer(
        self, network: nn.Module, learning_rate: float, *, steps_a_pass: float
    ) -> torch.optim.Optimizer:
        """One optimiser for the whole run; parameters without a gradient keep still."""
        if self.optimizer == "adagrad":
            return AdaGrad(network.parameters(), lr=learning_rate, initial_accumulator_value=0.1, fused=True)
        fading = 1 / (learning_rate * max(self.passes * steps_a_pass, SOONEST))
        layers = [module.weight for module in network.modules() if isinstance(module, nn.Linear)]
        others = [each for each in network.parameters() if not any(each is weight for weight in layers)]
        return AdamW(
            [{"params": layers, "weight_decay": fading}, {"params": others, "weight_decay": 0.0}],
            lr=learning_rate,
            betas=(0.9, self.memory),
            fused=True,
        )

    def rate(self, done: float) -> float:
        """What is left of the learning rate after this share of a stage."""
        return (1 + math.cos(math.pi * done)) / 2 if self.decay else 1.0


RECIPES = {
    "fast": Recipe(
        optimizer="adam",
        learning_rate=0.01,
        steps=3_000,
        sessions=False,
        batch_size=64,
        decay=True,
        memory=0.99,
        passes=6.0,
    ),
    "collapsed": Recipe(optimizer="adam", learning_rate=0.01, steps=3_000, sessions=False),
    "collapsed-adagrad": Recipe(optimizer="adagrad", learning_rate=0.05, steps=3_000, sessions=False),
    "paper": Recipe(optimizer="adagrad", learning_rate=0.05, steps=15_000, sessions=True),
}


def recipe(name: str) -> Recipe:
    """The recipe of this name."""
    return RECIPES[checks.one_of("recipe", name, RECIPES)]

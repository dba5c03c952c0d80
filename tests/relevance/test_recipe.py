from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from ultr.relevance.recipe import RECIPES, Training


def test_the_recipe_of_the_paper_is_adagrad_with_its_settings() -> None:
    paper, module = RECIPES["paper"], nn.Linear(1, 1, bias=False)
    nn.init.ones_(module.weight)
    optimizer = paper.build_optimizer(module, steps_per_epoch=1.0)
    module.weight.grad = torch.tensor([[2.0]])
    optimizer.step()
    assert module.weight.item() == pytest.approx(1 - 0.05 * 2 / (0.1 + 2**2) ** 0.5)
    assert (paper.clip_norm, paper.steps, paper.sessions) == (5.0, 15_000, True)


def test_layers_fade_to_one_over_e_in_the_epochs_of_the_recipe_and_nothing_else_does() -> None:
    def faded(recipe: Training, steps: int, steps_per_epoch: float) -> tuple[float, float, float]:
        module = nn.ModuleDict({"layer": nn.Linear(2, 2), "table": nn.Embedding(3, 2)})
        for weights in module.parameters():
            nn.init.ones_(weights)
        optimizer = replace(recipe, learning_rate=0.003).build_optimizer(module, steps_per_epoch=steps_per_epoch)
        for _ in range(steps):
            for weights in module.parameters():
                weights.grad = torch.zeros_like(weights)
            optimizer.step()
        layer, bias, table = (weights.mean().item() for weights in module.parameters())
        return layer, bias, table

    fast = RECIPES["fast"]
    assert faded(fast, 6 * 50, 50.0) == pytest.approx((math.exp(-1), 1.0, 1.0), rel=3e-3)
    # However few documents there are, not in fewer than a hundred steps.
    assert faded(fast, 100, 1.0) == pytest.approx((math.exp(-1), 1.0, 1.0), rel=1e-2)
    assert faded(RECIPES["collapsed"], 100, 1.0) == (1.0, 1.0, 1.0)

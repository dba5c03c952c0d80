from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn

from ultr.relevance.optimizers import AdaGrad, AdamW


@pytest.mark.parametrize(
    ("ours", "torchs", "options"),
    [
        (AdaGrad, torch.optim.Adagrad, {"lr": 0.05, "initial_accumulator_value": 0.1}),
        (AdamW, torch.optim.AdamW, {"lr": 0.01, "betas": (0.9, 0.99), "weight_decay": 0.3}),
    ],
)
def test_they_step_as_those_of_torch_do_also_after_being_restored(ours: Any, torchs: Any, options: Any) -> None:
    def train(kind: Any) -> tuple[list[torch.Tensor], Any]:
        network = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 1))
        for number, weights in enumerate(network.parameters()):
            nn.init.normal_(weights, generator=torch.Generator().manual_seed(number))
        optimizer = kind([{"params": list(network.parameters())}], fused=True, **options)
        for step in range(6):
            if step == 3:
                kept = optimizer.state_dict()
                optimizer = kind(network.parameters(), fused=True, lr=1.0)
                optimizer.load_state_dict(kept)
            optimizer.zero_grad()
            network(torch.randn(8, 4, generator=torch.Generator().manual_seed(step))).square().mean().backward()
            optimizer.step()
        return [weights.detach().clone() for weights in network.parameters()], optimizer.state_dict()

    torch.testing.assert_close(train(ours), train(torchs), rtol=0, atol=0)


def test_training_does_not_import_a_compiler() -> None:
    program = """
import sys
from ultr.datasets.letor_like import letor_like
from ultr.methods import LabelBaseline
from ultr.relevance import MLP
splits = letor_like(train_queries=30, validation_queries=10, test_queries=10)
for recipe in ("fast", "paper"):
    relevance = MLP(hidden=(4,), steps=3, recipe=recipe)
    LabelBaseline(relevance=relevance).fit(splits.train, validation=splits.validation)
print([name for name in ("torch._dynamo", "torch._inductor", "sympy") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

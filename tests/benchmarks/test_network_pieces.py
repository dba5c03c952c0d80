"""Pieces of a network that are exchanged: those that should make no difference make none."""

from __future__ import annotations

import pytest
import torch
from benchmarks.network_pieces import both_ways, variants

from ultr.relevance.mlp import Layers

EQUAL = ("normalisation folded", "in 2 parts", "in 4 parts", "in 8 parts")


def _gradients(name: str) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    layers = Layers(5, (8, 6), 2, normalise=True, generator=generator).double()
    inputs = torch.randn(16, 5, generator=generator, dtype=torch.float64)
    forward, parts = variants(layers)[name]
    both_ways(layers, forward, inputs, parts)()
    return [each.grad for each in layers.parameters() if each.grad is not None]


@pytest.mark.parametrize("name", EQUAL)
def test_other_ways_to_compute_the_same_have_the_same_gradients(name: str) -> None:
    torch.testing.assert_close(_gradients(name), _gradients("as it is"))


def test_other_activations_are_other_models() -> None:
    assert not torch.allclose(_gradients("SiLU")[0], _gradients("as it is")[0])

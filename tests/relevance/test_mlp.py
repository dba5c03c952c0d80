from __future__ import annotations

import numpy as np
import torch

from ultr.relevance.mlp import Layers


def test_it_is_linear_layers_with_elu_and_normalisation_between_them() -> None:
    network = Layers(5, (7, 4), 2, normalise=True, generator=torch.Generator().manual_seed(1)).double()
    inputs = np.random.default_rng(0).normal(size=(3, 5))
    values = inputs
    for number, layer in enumerate(network.linear):
        if number:
            values = np.where(values > 0, values, np.exp(values) - 1)
            centred = values - values.mean(axis=1, keepdims=True)
            values = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        assert isinstance(layer, torch.nn.Linear)
        values = values @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    np.testing.assert_allclose(network(torch.from_numpy(inputs)).detach().numpy(), values, rtol=1e-9)


def test_without_normalisation_large_activations_stay_large() -> None:
    plain = Layers(5, (7,), 1, normalise=False, generator=torch.Generator().manual_seed(1))
    normalised = Layers(5, (7,), 1, normalise=True, generator=torch.Generator().manual_seed(1))
    inputs = 1_000 * torch.randn(20, 5, generator=torch.Generator().manual_seed(2))
    assert plain(inputs).abs().max() > 50 * normalised(inputs).abs().max()


def test_the_same_generator_gives_the_same_weights() -> None:
    first = Layers(5, (7,), 1, normalise=True, generator=torch.Generator().manual_seed(3))
    second = Layers(5, (7,), 1, normalise=True, generator=torch.Generator().manual_seed(3))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))

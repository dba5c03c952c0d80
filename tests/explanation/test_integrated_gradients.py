"""Integrated gradients, against the integral of finite differences of a network computed by hand."""

from __future__ import annotations

import numpy as np
import torch

from ultr.arrays import Doubles, Floats
from ultr.data.scaling import FeatureScaling
from ultr.explanation.integrated_gradients import NetworkGradients
from ultr.relevance import Preprocessing
from ultr.relevance.mlp import Layers, Network
from ultr.scoring.explanation import ranked_lists

FEATURES = 3


def _documents(width: int = FEATURES) -> Floats:
    return np.random.default_rng(0).normal(size=(5, width)).astype(np.float32)


def _network(hidden: tuple[int, ...], width: int = FEATURES) -> Layers:
    return Layers(width, hidden, 1, normalise=True, generator=torch.Generator().manual_seed(0)).requires_grad_(False)


def _by_hand(scaled: Doubles, layers: Layers) -> Doubles:
    """The outputs of the layers: linear, ELU, layer normalisation, linear."""
    first, last = layers.linear[0], layers.last
    assert isinstance(first, torch.nn.Linear)
    hidden = scaled @ first.weight.double().numpy().T + first.bias.double().numpy()
    hidden = np.where(hidden > 0, hidden, np.expm1(np.minimum(hidden, 0)))
    centred = hidden - hidden.mean(axis=1, keepdims=True)
    hidden = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    outputs: Doubles = (hidden @ last.weight.double().numpy().T + last.bias.double().numpy())[:, 0]
    return outputs


def _integral(start: Doubles, end: Doubles, layers: Layers, *, points: int = 4_000, step: float = 1e-5) -> Doubles:
    """The midpoint rule of central differences on the line."""
    line = start + ((np.arange(points) + 0.5) / points)[:, None] * (end - start)
    slopes = [
        (_by_hand(line + step * unit, layers) - _by_hand(line - step * unit, layers)).mean() / (2 * step)
        for unit in np.eye(len(start))
    ]
    found: Doubles = (end - start) * np.array(slopes)
    return found


def test_they_are_the_integral_of_the_slopes_against_every_document_of_the_list() -> None:
    features, layers = _documents(), _network((6,))
    scaling = FeatureScaling.fit(features)
    gradients = NetworkGradients(Network(layers), Preprocessing(scaling))
    scaled = scaling.apply(features).astype(np.float64)
    with torch.no_grad():
        scores = layers(torch.from_numpy(scaled).float())[:, 0].numpy()
    (ranked,) = ranked_lists(scores, features, np.array([0, 5]), top=3)
    expected = [
        np.mean([_integral(scaled[other], scaled[row], layers) for other in range(5)], axis=0) for row in ranked.rows
    ]
    np.testing.assert_allclose(gradients.contributions(ranked), expected, rtol=0, atol=2 * ranked.allowed)
    assert np.abs(expected).max() > 20 * ranked.allowed


def test_a_linear_network_is_explained_by_its_weights() -> None:
    features, layers = _documents(), _network(())
    scaling = FeatureScaling.fit(features)
    scaled = scaling.apply(features)
    with torch.no_grad():
        scores = layers(torch.from_numpy(scaled))[:, 0].numpy()
    (ranked,) = ranked_lists(scores, features, np.array([0, 5]))
    found = NetworkGradients(Network(layers), Preprocessing(scaling)).contributions(ranked)
    weights = layers.last.weight.numpy()[0]
    np.testing.assert_allclose(found, (weights * (scaled - scaled.mean(axis=0)))[ranked.rows], rtol=0, atol=1e-6)


def test_the_normalisation_of_many_features_is_on_the_way() -> None:
    features, layers = _documents(20), _network((6,), 20)
    preprocessing = Preprocessing(FeatureScaling.fit(features))
    with torch.no_grad():
        scores = layers(preprocessing(torch.from_numpy(features)))[:, 0].numpy()
    (ranked,) = ranked_lists(scores, features, np.array([0, 5]))
    found = NetworkGradients(Network(layers), preprocessing).contributions(ranked)
    np.testing.assert_allclose(found.sum(axis=1), (scores - scores.mean())[ranked.rows], rtol=0, atol=ranked.allowed)

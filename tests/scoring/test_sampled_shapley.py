"""Shapley values by sampled permutations, against the definition and against what must hold of every sample."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from ultr.arrays import Doubles, Floats
from ultr.scoring import sampled_shapley as module
from ultr.scoring.sampled_shapley import sampled_shapley


def _score(features: Floats) -> Doubles:
    """A score with an interaction, that knows missing values."""
    a, b, c = np.nan_to_num(features.astype(np.float64), nan=3.0).T
    scores: Doubles = a * b + np.sin(c)
    return scores


def _documents() -> Floats:
    features = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    features[1, 2] = np.nan
    return features


def _by_definition(features: Floats, row: int) -> Doubles:
    """The mean change by each feature over all orders and all documents of the list."""
    changes = np.zeros(3)
    for other in features:
        for order in permutations(range(3)):
            mixed = other.copy()
            for column in order:
                before = _score(mixed[None])[0]
                mixed[column] = features[row, column]
                changes[column] += _score(mixed[None])[0] - before
    return changes / (6 * len(features))


def test_they_add_up_exactly_however_few_orders_are_drawn() -> None:
    features, scores = _documents(), _score(_documents())
    found, _ = sampled_shapley(_score, features, np.arange(5), random=np.random.default_rng(0))
    np.testing.assert_allclose(found.sum(axis=1), scores - scores.mean(), rtol=0, atol=1e-12)


def test_they_are_those_of_the_definition_within_their_standard_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEWEST", 1)
    features = _documents()
    expected = np.stack([_by_definition(features, row) for row in range(5)])
    draws = [sampled_shapley(_score, features, np.arange(5), random=np.random.default_rng(seed)) for seed in range(200)]
    found, errors = (np.stack(each) for each in zip(*draws, strict=True))
    off = found[..., :2] - expected[..., :2]
    assert np.abs(off.mean(axis=0)).max() < 4 * errors[..., :2].mean() / np.sqrt(200)
    # The standard errors are those that the draws have, on average over the documents.
    np.testing.assert_allclose(np.sqrt((errors[..., :2] ** 2).mean()), np.sqrt((off**2).mean()), rtol=0.1)


def test_a_feature_that_only_adds_has_its_value_from_any_order() -> None:
    features = _documents()
    found, errors = sampled_shapley(_score, features, np.array([4, 1]), random=np.random.default_rng(3))
    own = np.sin(np.nan_to_num(features[:, 2].astype(np.float64), nan=3.0))
    np.testing.assert_allclose(found[:, 2], (own - own.mean())[[4, 1]], rtol=0, atol=1e-12)
    assert errors[:, 2].max() < 1e-12


def test_parts_of_a_list_make_no_difference_to_what_it_adds_up_to(monkeypatch: pytest.MonkeyPatch) -> None:
    features = _documents()
    monkeypatch.setattr(module, "AT_ONCE", 1)
    found, _ = sampled_shapley(_score, features, np.arange(5), random=np.random.default_rng(0))
    np.testing.assert_allclose(found.sum(axis=1), _score(features) - _score(features).mean(), rtol=0, atol=1e-12)


def test_a_single_candidate_is_moved_by_nothing() -> None:
    found, errors = sampled_shapley(_score, _documents()[:1], np.array([0]), random=np.random.default_rng(0))
    assert not found.any()
    assert not errors.any()

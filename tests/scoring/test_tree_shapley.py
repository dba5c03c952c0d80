"""Shapley values of forests, against the definition: all subsets of features."""

from __future__ import annotations

from itertools import combinations
from math import factorial

import lightgbm
import numpy as np
import pytest

from ultr.arrays import Doubles, Floats
from ultr.relevance.forest import forest_of_lightgbm
from ultr.scoring import tree_shapley as module
from ultr.scoring.forest import LEAF, Forest
from ultr.scoring.tree_shapley import Boxes, tree_shapley

FEATURES = 5


def by_definition(forest: Forest, features: Floats, row: int) -> Doubles:
    """The sum over all sets S of other features of |S|! (d - |S| - 1)! / d! (v(S and j) - v(S))."""
    d = features.shape[1]

    def value(chosen: tuple[int, ...]) -> float:
        mixed = features.copy()
        mixed[:, list(chosen)] = features[row, list(chosen)]
        return float(forest.predict(mixed, 1)[:, 0].mean())

    found = np.zeros(d)
    for j in range(d):
        others = [each for each in range(d) if each != j]
        for size in range(d):
            weight = factorial(size) * factorial(d - size - 1) / factorial(d)
            for chosen in combinations(others, size):
                found[j] += weight * (value((*chosen, j)) - value(chosen))
    return found


def _documents(count: int = 12, *, seed: int = 0) -> Floats:
    """Documents with many ties, missing values and a categorical feature, the last."""
    random = np.random.default_rng(seed)
    features = random.integers(-3, 4, size=(count, FEATURES)).astype(np.float32) / np.float32(2)
    features[:, -1] = random.integers(0, 6, size=count)
    features[random.random(features.shape) < 0.15] = np.nan
    return features


def _grown(leaves: int) -> Forest:
    features = _documents(1_500, seed=1)
    filled = np.nan_to_num(features)
    target = filled[:, 0] * filled[:, 1] + np.isnan(features[:, 2]) * filled[:, 3] + np.isin(filled[:, 4], [1, 4])
    parameters = {
        "verbosity": -1,
        "num_leaves": leaves,
        "min_data_in_leaf": 5,
        "min_data_per_group": 5,
        "cat_smooth": 1,
    }
    data = lightgbm.Dataset(features, target, categorical_feature=[FEATURES - 1])
    dump = lightgbm.train(parameters, data, 6).dump_model()
    return forest_of_lightgbm(dump["tree_info"], 1, {FEATURES - 1: np.arange(6)})


@pytest.fixture(scope="module", params=[4, 25], ids=["small trees", "deep trees"])
def forest(request: pytest.FixtureRequest) -> Forest:
    return _grown(request.param)


@pytest.mark.parametrize("listed", [0, 2, 6], ids=["patterns of each leaf", "both", "all patterns"])
def test_they_are_those_of_the_definition(forest: Forest, listed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_LISTED", listed)
    features, rows = _documents(), np.array([3, 0, 7])
    found = tree_shapley(Boxes.of(forest), features, rows)
    expected = np.stack([by_definition(forest, features, row) for row in rows])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert np.abs(expected).max() > 0.1


def test_values_on_a_threshold_go_where_the_forest_sends_them(forest: Forest) -> None:
    thresholds = forest.thresholds[(forest.features != LEAF) & (np.abs(forest.thresholds) < 10)]
    near = np.concatenate([thresholds, np.nextafter(thresholds, np.float32(np.inf))])
    features = np.random.default_rng(2).choice(near, size=(9, FEATURES))
    expected = np.stack([by_definition(forest, features, row) for row in range(3)])
    np.testing.assert_allclose(tree_shapley(Boxes.of(forest), features, np.arange(3)), expected, rtol=0, atol=1e-12)


def test_they_add_up_to_the_score_less_the_mean_of_the_list(forest: Forest) -> None:
    features = _documents(40)
    scores = forest.predict(features, 1)[:, 0]
    found = tree_shapley(Boxes.of(forest), features, np.arange(40))
    np.testing.assert_allclose(found.sum(axis=1), scores - scores.mean(), rtol=0, atol=1e-12)


def test_leaves_are_looked_at_in_parts_without_a_difference(forest: Forest, monkeypatch: pytest.MonkeyPatch) -> None:
    features, rows = _documents(20), np.arange(20)
    whole = tree_shapley(Boxes.of(forest), features, rows)
    monkeypatch.setattr(module, "AT_ONCE", 100)
    np.testing.assert_allclose(tree_shapley(Boxes.of(forest), features, rows), whole, rtol=0, atol=1e-12)


def test_equal_documents_are_moved_by_nothing_and_unused_features_move_nothing() -> None:
    forest = _grown(4)
    features = np.repeat(_documents(1), 5, axis=0)
    assert not tree_shapley(Boxes.of(forest), features, np.arange(5)).any()
    wider = np.concatenate([_documents(9), _documents(9, seed=5)], axis=1)
    assert not tree_shapley(Boxes.of(forest), wider, np.arange(9))[:, FEATURES:].any()


def test_a_forest_without_splits_moves_nothing() -> None:
    for forest in (Forest.empty(), Forest.constant(3.0)):
        assert not tree_shapley(Boxes.of(forest), _documents(), np.arange(12)).any()

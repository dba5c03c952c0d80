"""Forests, against the predictions of LightGBM and XGBoost themselves."""

from __future__ import annotations

import json
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost

from ultr.arrays import Doubles, Floats
from ultr.relevance.forest import at_most, forest_of_lightgbm, forest_of_xgboost
from ultr.scoring.forest import LEAF, Forest

FEATURES = 4


def _rows(*, missing: bool) -> tuple[Floats, Floats]:
    """Few rows with many ties, and a target."""
    random = np.random.default_rng(0)
    features = random.integers(-3, 4, size=(400, FEATURES)).astype(np.float32) / np.float32(3)
    if missing:
        features[random.random(features.shape) < 0.2] = np.nan
    return features, np.nan_to_num(features[:, 0]) * np.nan_to_num(features[:, 1]) + np.isnan(features[:, 2])


@pytest.fixture(scope="module", params=["complete", "missing"])
def grown(request: pytest.FixtureRequest) -> tuple[Any, Forest, Floats]:
    """LightGBM's model of few rows with many ties, the same as a forest, and the rows."""
    features, target = _rows(missing=request.param == "missing")
    parameters = {"verbosity": -1, "num_leaves": 9, "min_data_in_leaf": 5, "learning_rate": 0.5}
    model = lightgbm.train(parameters, lightgbm.Dataset(features, target), 20)
    return model, forest_of_lightgbm(model.dump_model()["tree_info"], 1), features


def _hard(forest: Forest, features: Floats) -> Floats:
    """The rows; values equal to thresholds and beside them; both zeros; very large ones; all missing."""
    largest = np.finfo(np.float32).max
    thresholds = forest.thresholds[(forest.features != LEAF) & (forest.thresholds < largest)]
    near = np.concatenate([thresholds, *(np.nextafter(thresholds, np.float32(end)) for end in (-np.inf, np.inf))])
    special = np.array([0.0, -0.0, 1e30, -1e30, 1e-40, largest, np.nan], dtype=np.float32)
    random = np.random.default_rng(1)
    drawn = random.choice(np.concatenate([near, special]), size=(2_000, FEATURES))
    return np.concatenate([features, drawn, np.full((1, FEATURES), np.nan, dtype=np.float32)])


def test_it_predicts_as_lightgbm_does(grown: tuple[Any, Forest, Floats]) -> None:
    model, forest, features = grown
    rows = _hard(forest, features)
    expected: Doubles = model.predict(rows, raw_score=True)
    np.testing.assert_allclose(forest.predict(rows, 1)[:, 0], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_it_predicts_as_xgboost_does(*, missing: bool) -> None:
    features, target = _rows(missing=missing)
    parameters = {"max_leaves": 9, "max_depth": 0, "grow_policy": "lossguide", "tree_method": "hist", "nthread": 1}
    model = xgboost.train(parameters, xgboost.DMatrix(features, target), 20)
    learner = json.loads(model.save_raw("json"))["learner"]
    forest = forest_of_xgboost(learner["gradient_booster"]["model"]["trees"])
    np.testing.assert_array_equal(Forest.of_matrix(forest.as_matrix()).as_matrix(), forest.as_matrix())
    rows = _hard(forest, features)
    leaves = forest.leaves(rows)
    np.testing.assert_array_equal(leaves - forest.roots, model.predict(xgboost.DMatrix(rows), pred_leaf=True))
    # XGBoost adds float32 numbers one after the other, to its base score.
    sums = np.full(len(rows), json.loads(learner["learner_model_param"]["base_score"]), dtype=np.float32)
    for tree in range(len(forest)):
        sums += forest.values[leaves[:, tree]].astype(np.float32)
    np.testing.assert_array_equal(sums, model.inplace_predict(rows, predict_type="margin"))


@pytest.fixture(scope="module")
def by_category() -> tuple[Any, Forest]:
    """LightGBM's model of two categorical features, with missing and rare codes, and a number; the same as a forest."""
    random = np.random.default_rng(0)
    codes = random.integers(0, 25, size=(4_000, 2))
    rare = random.random(codes.shape) < 0.002
    features = np.where(rare, codes + 30, codes).astype(np.float32)
    features[random.random(codes.shape) < 0.1] = np.nan
    effects = random.normal(size=(2, 25))
    number = random.normal(size=len(codes)).astype(np.float32)
    target = effects[0][codes[:, 0]] * (1 + (number > 0)) + effects[1][codes[:, 1]] + np.isnan(features[:, 0])
    data = lightgbm.Dataset(np.column_stack([features, number]), target, categorical_feature=[0, 1])
    parameters = {"verbosity": -1, "num_leaves": 9, "min_data_per_group": 10, "max_cat_threshold": 6}
    model = lightgbm.train(parameters, data, 30)
    known = {feature: np.arange(60) for feature in (0, 1)}
    return model, forest_of_lightgbm(model.dump_model()["tree_info"], 1, known)


def test_sets_of_categories_are_followed_as_lightgbm_follows_them(by_category: tuple[Any, Forest]) -> None:
    """Codes, codes that it has not seen or not told apart, negative ones, missing ones, all of them with each other."""
    model, forest = by_category
    dump = model.dump_model()["tree_info"]
    assert "||" in str(dump), "there are sets"
    assert "'threshold': '0||" in str(dump), "also with the first code"
    values = np.array([*range(-2, 62), 1_000, 2**24 - 1, -(2**24), np.nan], dtype=np.float32)
    rows = np.array([(a, b, c) for a in values for b in values for c in (-1.0, 1.0)], dtype=np.float32)
    expected: Doubles = model.predict(rows, raw_score=True)
    np.testing.assert_allclose(forest.predict(rows, 1)[:, 0], expected, rtol=1e-12, atol=1e-12)


def test_sets_of_one_feature_cut_it_once(by_category: tuple[Any, Forest]) -> None:
    """Below a threshold of a categorical feature, only thresholds that still cut its interval follow."""
    _, forest = by_category

    def follow(node: int, spans: dict[int, tuple[float, float]]) -> None:
        feature, threshold = int(forest.features[node]), float(forest.thresholds[node])
        if feature == LEAF:
            return
        low, high = spans.get(feature, (-np.inf, np.inf))
        assert low < threshold < high
        follow(int(forest.left[node]), spans | {feature: (low, threshold)})
        follow(int(forest.right[node]), spans | {feature: (threshold, high)})

    for root in forest.roots:
        follow(int(root), {})


def test_trees_are_added_one_by_one(grown: tuple[Any, Forest, Floats]) -> None:
    _, forest, features = grown
    first, rest = forest.some(slice(0, 7)), forest.some(slice(7, None))
    assert (len(first), len(rest)) == (7, 13)
    start = first.predict(features, 1)
    np.testing.assert_array_equal(rest.predict(features, 1, start=start), forest.predict(features, 1))
    np.testing.assert_array_equal(first.add(rest).as_matrix(), forest.as_matrix())
    np.testing.assert_array_equal(Forest.empty().add(forest).predict(features, 1), forest.predict(features, 1))
    assert Forest.empty().predict(features, 2).tolist() == np.zeros((len(features), 2)).tolist()


def test_a_projected_forest_is_the_dot_product(grown: tuple[Any, Forest, Floats]) -> None:
    _, forest, features = grown
    two = Forest(**vars(forest) | {"outputs": np.arange(len(forest)) % 2})
    vector = np.array([2.0, -0.5])
    found = two.project(vector).predict(features, 1)[:, 0]
    np.testing.assert_allclose(found, two.predict(features, 2) @ vector, rtol=1e-12)


def test_a_matrix_holds_all_of_it(grown: tuple[Any, Forest, Floats]) -> None:
    _, forest, _ = grown
    again = Forest.of_matrix(forest.as_matrix())
    for name, value in vars(forest).items():
        np.testing.assert_array_equal(getattr(again, name), value, err_msg=name)
        assert getattr(again, name).dtype == value.dtype, name
    assert len(Forest.of_matrix(Forest.empty().as_matrix())) == 0


@pytest.mark.parametrize(("row", "column", "value"), [(0, 5, 0), (0, 5, 10_000), (0, 6, -1), (-1, 5, 0), (3, 0, 5)])
def test_a_matrix_that_is_no_forest_is_refused(
    grown: tuple[Any, Forest, Floats], row: int, column: int, value: float
) -> None:
    matrix = grown[1].as_matrix()
    matrix[row, column] = value
    with pytest.raises(ValueError, match="do not make trees"):
        Forest.of_matrix(matrix)


def test_numbers_that_are_none_are_refused(grown: tuple[Any, Forest, Floats]) -> None:
    matrix = grown[1].as_matrix()
    matrix[-1, 7] = np.nan
    with pytest.raises(ValueError, match="not all numbers"):
        Forest.of_matrix(matrix)


def test_thresholds_are_rounded_down() -> None:
    for threshold in (0.1, -0.1, 1 / 3, 1e30, 1e-40, 0.5):
        found = at_most(threshold)
        assert float(found) <= threshold < float(np.nextafter(found, np.float32(np.inf)))

"""Trees as a relevance model: growing, resuming, missing values."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.scaling import FeatureScaling
from ultr.errors import DataError, MissingExtraError, ModelFileError, OptionError, UltrWarning
from ultr.evaluation import evaluate
from ultr.exporting import export
from ultr.exporting.engines.targets import TARGETS
from ultr.exporting.forest_file import export_forest
from ultr.methods import ClickBaseline, LabelBaseline, Vectorization, load
from ultr.relevance import MLP, Trees
from ultr.relevance.inputs import Inputs, all_documents
from ultr.relevance.preprocessing import InputLayout, Preprocessing
from ultr.relevance.trees import BoostedTrees
from ultr.scoring import Scorer
from ultr.scoring.forest import LEAF
from ultr.testing.methods import small_lists, small_log

NAMES = ("brand", *(str(number) for number in range(63)))
FEW = Trees(rounds=5, fewest_documents=10)


def _forest(fitted: ClickBaseline | LabelBaseline) -> BoostedTrees:
    model = fitted.ranker_.model.by_name["relevance"]
    assert isinstance(model, BoostedTrees)
    return model


def test_a_leaf_is_a_newton_step() -> None:
    """One tree of two leaves on labels: - rate sum g / (sum h + shrinkage), with the exact derivatives of a list."""
    lists = small_lists().train
    fitted = LabelBaseline(relevance=Trees(rounds=1, leaves=2, learning_rate=1.0, shrinkage=0.0)).fit(lists)
    forest = _forest(fitted).forest
    goes_left = forest.leaves(lists.features)[:, 0] == forest.left[0]
    gains = (2.0**lists.labels - 1) / 2.0**lists.max_label
    lengths = np.diff(lists.offsets)
    total, share = np.add.reduceat(gains, lists.offsets[:-1]), np.repeat(1 / lengths, lengths)
    gradient = np.repeat(total, lengths) * share - gains
    curvature = np.repeat(total, lengths) * share * (1 - share)
    for leaf, rows in ((forest.left[0], goes_left), (forest.right[0], ~goes_left)):
        # The curvature is estimated with random signs, so it is near, not the same.
        assert forest.values[leaf] == pytest.approx(-gradient[rows].sum() / curvature[rows].sum(), rel=0.2)


def test_missing_values_are_learned_from() -> None:
    """A feature that is missing where documents are relevant."""
    lists = small_lists().train
    hidden = np.where(lists.labels >= 3, np.float32("nan"), np.float32(1))
    features = np.concatenate([hidden[:, None], np.ones((len(hidden), 1), dtype=np.float32)], axis=1)
    told = replace(lists, features=features, feature_names=("hidden", "constant"))
    trees = LabelBaseline(relevance=Trees(rounds=20)).fit(told)
    missing, known = trees.score(np.array([[np.nan, 1], [1, 1]], dtype=np.float32))
    assert missing > known
    share = f"{np.isnan(hidden).mean():.1%}"
    with pytest.warns(UltrWarning, match=rf"missing values in 1 of 2 features: hidden \({share}\); networks take the"):
        network = LabelBaseline(relevance=MLP(hidden=(4,), steps=50)).fit(told)
    missing, known = network.score(np.array([[np.nan, 1], [1, 1]], dtype=np.float32))
    assert missing > known


def test_to_a_network_that_hardly_saw_any_a_missing_value_is_the_typical_one() -> None:
    lists = small_lists().train
    features = np.array(lists.features)
    features[: len(features) // 120, 0] = np.nan
    with pytest.warns(UltrWarning, match=r"missing values in 1 of 64 features: .* \(0\.8%\)"):
        network = LabelBaseline(relevance=MLP(hidden=(4,), steps=5)).fit(replace(lists, features=features))
    filled = features[:20].copy()
    assert np.isnan(features[0, 0])
    filled[np.isnan(filled)] = np.nanmedian(features[:, 0])
    np.testing.assert_array_equal(network.score(features[:20]), network.score(filled))


@cache
def _shops(*, queries: int = 400, seed: int = 0) -> JudgedLists:
    """Documents whose relevance is decided by unordered codes, those of the brand far apart, and a little by an age."""
    random = np.random.default_rng(seed)
    world = np.random.default_rng(7)
    brands, effects = world.permutation(2**24)[:60], world.normal(size=(3, 60)) * [[2], [1], [1]]
    count = 10 * queries
    numbers = random.integers(0, 60, size=(count, 3))
    age = random.normal(size=count)
    relevance = sum(effect[numbers[:, column]] for column, effect in enumerate(effects)) + 0.3 * age
    features = np.column_stack([brands[numbers[:, 0]], numbers[:, 1:], age]).astype(np.float32)
    features[random.random(count) < 0.05, 0] = np.nan
    return JudgedLists.of(
        features=features,
        labels=np.clip(relevance - 1, 0, 4).astype(np.int64),
        offsets=np.arange(0, count + 1, 10),
        feature_names=["brand", "shop", "place", "age"],
    )


CATEGORICAL = Trees(rounds=30, fewest_documents=20, categorical=("brand", "shop", "place"))


def test_unordered_categories_are_learned_better_as_categories() -> None:
    train, test = _shops(), _shops(seed=1)
    as_numbers, as_codes = (
        evaluate(LabelBaseline(relevance=replace(CATEGORICAL, categorical=names)).fit(train), test, ["nDCG@1"]).mean(
            "nDCG@1"
        )
        for names in ((), CATEGORICAL.categorical)
    )
    assert as_codes > as_numbers + 0.05


def test_trees_of_categories_are_those_of_lightgbm_on_what_they_grow_on() -> None:
    """The table is LightGBM's own sum of leaves, from its bins; codes may be large, rare or missing."""
    lists = _shops()
    features = lists.features.copy()
    features[:30, 0] = np.arange(100, 130)
    inputs = Inputs(features, Preprocessing(FeatureScaling.fit(features)), names=lists.feature_names)
    model = CATEGORICAL.build(InputLayout(4), 2, generator=torch.Generator()).requires_grad_()
    model.begin(all_documents(inputs))
    target = torch.from_numpy(np.stack([lists.labels, features[:, 3]], axis=1)).float()
    for _ in range(20):
        assert model.table is not None
        model.step(model.table.detach() - target, torch.ones_like(target))
    assert model.table is not None
    np.testing.assert_allclose(model.forest.predict(features, 2), model.table.detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_round_in_which_no_split_gains_anything_loses_no_later_one(outputs: int) -> None:
    features = (np.arange(60) % 2).astype(np.float32).reshape(-1, 1)
    scaling = FeatureScaling.fit(features)
    model = BoostedTrees(Trees(fewest_documents=5), outputs).requires_grad_()
    model.begin(all_documents(Inputs(features, Preprocessing(scaling, {}), names=("x",))))
    even = torch.ones(60, outputs)
    for gain in (1.0, 0.0, 0.0, 1.0, 0.0, -1.0):
        # Where both values of the feature have the same gradient, nothing is gained by telling them apart.
        gradient = torch.from_numpy(features) * gain * even
        model.step(gradient - gradient.mean(), even)
        assert model.table is not None
        np.testing.assert_allclose(model.forest.predict(features, outputs), model.table.detach(), rtol=1e-5, atol=1e-6)
    assert len(model.forest) >= 3 * outputs


def test_a_path_has_few_categorical_features_so_that_trees_stay_small() -> None:
    forest = _forest(LabelBaseline(relevance=replace(CATEGORICAL, leaves=15)).fit(_shops())).forest

    def follow(node: int, above: frozenset[int]) -> None:
        feature = int(forest.features[node])
        if feature != LEAF:
            seen = above | ({feature} & {0, 1, 2})
            assert len(seen) <= 2
            follow(int(forest.left[node]), seen)
            follow(int(forest.right[node]), seen)

    for root in forest.roots:
        follow(int(root), frozenset())
    assert set(forest.features) >= {0, 1, 2}


@pytest.mark.usefixtures("_operators_read_once")
def test_a_ranker_of_categories_is_saved_and_exported(tmp_path: Path) -> None:
    fitted = LabelBaseline(relevance=replace(CATEGORICAL, rounds=6)).fit(_shops(queries=100))
    features = _shops(queries=30, seed=2).features.copy()
    features[:20, 0] = [-1, 0, 1, 5, 2**24 - 1] * 4
    features[20:40, 1] = np.nan
    fitted.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.options["relevance"]["categorical"] == ["brand", "shop", "place"]
    np.testing.assert_array_equal(again.score(features), fitted.score(features))
    export(again, tmp_path / "model.onnx")
    found = Scorer.load(tmp_path / "model.onnx").score(features)
    np.testing.assert_allclose(found, fitted.score(features), rtol=1e-5, atol=1e-6)
    for target in TARGETS:
        assert export_forest(again, tmp_path / target, to=target).documents > 500


@pytest.mark.parametrize(
    ("value", "written"), [(0.5, "0.5"), (-1.0, "-1"), (2.0**24, "1.67772e\\+07"), (np.inf, "inf")], ids=str
)
def test_what_is_no_category_code_is_refused(value: float, written: str) -> None:
    lists = _shops(queries=20)
    features = lists.features.copy()
    features[12, 1] = value
    with pytest.raises(
        DataError, match=rf"feature 'shop' is categorical, .* to 16,777,215, got {written} for document 12"
    ):
        LabelBaseline(relevance=CATEGORICAL).fit(replace(lists, features=features))


def test_a_category_that_is_no_feature_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        OptionError, match="the training data has no column 'brnd', did you mean 'brand'; it has: brand"
    ):
        Vectorization(relevance=Trees(categorical=("brnd",))).fit(replace(small_log(), feature_names=NAMES))


def test_trees_are_refused_another_device() -> None:
    for device in ("cuda", "meta", "mps:0"):
        with pytest.raises(OptionError, match=f"trees train on the CPU only, got device '{device}'; leave it out"):
            ClickBaseline(relevance=FEW, device=device).check()
    ClickBaseline(relevance=FEW, device="cpu:0").check()


def test_a_forest_is_as_large_as_it_is_asked_for() -> None:
    fitted = ClickBaseline(relevance=replace(FEW, leaves=4)).fit(small_log())
    forest = _forest(fitted).forest
    assert len(forest) == 5
    assert all(3 <= len(tree.features) <= 7 for tree in (forest.some(slice(n, n + 1)) for n in range(5)))


def test_early_stopping_keeps_the_best_rounds(small_log: ClickLog) -> None:
    fitted = ClickBaseline(relevance=Trees(rounds=300, learning_rate=0.5), patience=2, evaluate_every=5).fit(
        small_log, validation=small_lists().validation
    )
    values = [record.value for record in fitted.history_]
    best = int(np.argmax(values))
    assert len(values) == best + 3
    assert len(_forest(fitted).forest) == 5 * (best + 1)


@pytest.mark.usefixtures("_operators_read_once")
def test_an_exported_forest_scores_the_same_with_values_missing(tmp_path: Path) -> None:
    fitted = ClickBaseline(relevance=FEW).fit(small_log())
    features = small_lists().test.features.copy()
    features[::3, ::5] = np.nan
    for pointwise in (False, True):
        export(fitted, tmp_path / f"{pointwise}.onnx", pointwise=pointwise)
        found = Scorer.load(tmp_path / f"{pointwise}.onnx").score(features)
        np.testing.assert_allclose(found, fitted.score(features), rtol=1e-5, atol=1e-6)


def test_a_damaged_forest_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = ClickBaseline(relevance=FEW).fit(small_log())
    monkeypatch.setattr(BoostedTrees, "get_extra_state", lambda _: torch.zeros(3, 8, dtype=torch.float64))
    fitted.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="do not fit"):
        load(tmp_path / "model")


def test_without_lightgbm_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[trees\]'"):
        ClickBaseline(relevance=FEW).fit(small_log())


def test_the_joint_schedule_has_no_base_network_to_train() -> None:
    with pytest.raises(OptionError, match="schedule is about a base network, which trees do without"):
        Vectorization(relevance=FEW, schedule="joint").check()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "rounds must be an integer of at least 1"),
        ({"leaves": 1}, "leaves must be an integer of at least 2"),
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0"),
        ({"fewest_documents": 0}, "fewest_documents must be an integer of at least 1"),
        ({"shrinkage": -1.0}, "shrinkage must be a number of at least 0"),
        ({"bins": 1}, "bins must be an integer of at least 2"),
        ({"categorical": "brand"}, "categorical must be a tuple of names of features, got 'brand'"),
        ({"categorical": (1,)}, r"categorical must be a tuple of names of features, got \(1,\)"),
        ({"categorical": ("brand", "brand")}, "categorical names a feature twice: brand, brand"),
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        ClickBaseline(relevance=Trees(**options)).check()


@pytest.mark.parametrize("relevance", [Trees(rounds=20), MLP(hidden=(8,), steps=100)])
def test_a_code_that_no_value_has_counts_as_other_also_in_a_file(relevance: Trees | MLP, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    brand = random.integers(0, 3, 1_000)
    log = ClickLog.of(
        features=np.stack([brand, random.random(1_000)], axis=1),
        documents=np.arange(1_000),
        offsets=np.arange(0, 1_001, 10),
        clicks=random.random(1_000) < np.array([0.6, 0.3, 0.05])[brand],
        feature_names=("brand", "price"),
        categories={"brand": ("nike", "puma", "other")},
    )
    ranker = ClickBaseline(relevance=relevance).fit(log).ranker_
    rows = np.array([[code, 0.5] for code in (2, -1, 3, 7, 0, np.nan)], dtype=np.float32)
    export(ranker, tmp_path / "model.onnx")
    for scores in (ranker.score(rows), Scorer.load(tmp_path / "model.onnx").score(rows)):
        assert scores[1:4] == pytest.approx(scores[[0] * 3])
        assert abs(scores[4] - scores[0]) > 0.1
        assert abs(scores[5] - scores[0]) > 0.1

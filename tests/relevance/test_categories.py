"""Categorical and missing features on their way into networks and trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from ultr.arrays import Doubles, Floats
from ultr.data.click_log import ClickLog
from ultr.data.scaling import FeatureScaling
from ultr.methods import ClickBaseline, LightGBMRanker
from ultr.methods.ranker import Ranker
from ultr.relevance import MLP, InputLayout, Inputs, Preprocessing, Trees
from ultr.relevance.inputs import all_documents
from ultr.relevance.lookup import DIMENSION, MOST_ONE_HOT, Lookup
from ultr.relevance.mlp import Layers
from ultr.relevance.trees import BoostedTrees

BRANDS, SHOPS = ("nike", "puma", "other"), tuple(f"shop {number}" for number in range(MOST_ONE_HOT + 1))
COLUMNS = {0: BRANDS, 19: SHOPS}


def _features(rows: int = 200, *, missing: float = 0.3) -> Floats:
    """Brands, 18 numbers of which the third is missing at times, and shops; brands are missing, too."""
    random = np.random.default_rng(0)
    features = random.normal(size=(rows, 20)).astype(np.float32)
    features[:, 0] = random.integers(len(BRANDS), size=rows)
    features[:, 19] = random.integers(len(SHOPS), size=rows)
    features[random.random(rows) < missing, 3] = np.nan
    features[random.random(rows) < missing, 0] = np.nan
    return features


def _preprocessing(features: Floats) -> Preprocessing:
    return Preprocessing(FeatureScaling.fit(features, categorical=COLUMNS), COLUMNS)


def _by_hand(features: Floats, layers: Layers) -> Doubles:
    """The outputs of a network by the definition: scaled and normalised numbers, indicator, one-hot, learned rows."""
    numbers = features[:, 1:19].astype(np.float64)
    low, high, median = (function(numbers, axis=0) for function in (np.nanmin, np.nanmax, np.nanmedian))
    scaled = 2 * (np.where(np.isnan(numbers), median, numbers) - low) / (high - low) - 1
    centred = scaled - scaled.mean(axis=1, keepdims=True)
    normalised = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    indicator = np.isnan(numbers[:, [2]]).astype(float)
    one_hot = (features[:, [0]] == np.arange(len(BRANDS))).astype(float)
    rows = layers.state_dict()["tables.1.rows"].numpy()[1:]
    values = np.hstack([normalised, indicator, one_hot, rows[features[:, 19].astype(int)]])
    for number, layer in enumerate(layers.linear):
        values = np.where(values > 0, values, np.expm1(values)) if number else values
        assert isinstance(layer, torch.nn.Linear)
        values = values @ layer.weight.detach().double().numpy().T + layer.bias.detach().double().numpy()
    return values


def _random_layers(layout: InputLayout) -> Layers:
    layers = Layers(layout, (6,), 2, normalise=False, generator=torch.Generator().manual_seed(0))
    for parameter in layers.parameters():
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(1))
    return layers


def test_a_network_has_one_hots_learned_rows_and_indicators_beside_its_numbers() -> None:
    features = _features()
    preprocessing = _preprocessing(features)
    assert preprocessing.layout == InputLayout(18 + 1, (len(BRANDS), len(SHOPS)))
    layers = _random_layers(preprocessing.layout)
    wanted = _by_hand(features, layers)
    for prepared in (preprocessing.prepare(features), preprocessing(torch.from_numpy(features))):
        np.testing.assert_allclose(layers(prepared).detach().numpy(), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("values", "learned"), [(MOST_ONE_HOT, False), (MOST_ONE_HOT + 1, True)])
def test_many_values_have_learned_rows_and_few_are_one_hot(values: int, *, learned: bool) -> None:
    table = Lookup(values)
    assert bool(list(table.parameters())) is learned
    assert table.width == (DIMENSION if learned else values)


@pytest.mark.parametrize(("of_1000", "has_one"), [(9, False), (10, True), (990, True), (991, False)])
def test_a_feature_has_an_indicator_if_enough_miss_it_and_enough_have_it(of_1000: int, *, has_one: bool) -> None:
    features = np.random.default_rng(0).normal(size=(1000, 2)).astype(np.float32)
    features[:of_1000, 1] = np.nan
    preprocessing = Preprocessing(FeatureScaling.fit(features))
    assert preprocessing.layout.numbers == 2 + has_one
    prepared = preprocessing.prepare(features)
    if has_one:
        np.testing.assert_array_equal(prepared[:, 2].numpy(), np.isnan(features[:, 1]))
    np.testing.assert_array_equal(preprocessing(torch.from_numpy(features)).numpy(), prepared.numpy())


@pytest.mark.parametrize(
    ("values", "place"), [(("nike", "other"), 2), (("other", "nike"), 1), (("nike", "puma"), 0)], ids=str
)
def test_a_code_that_was_never_seen_is_other_or_else_missing(values: Sequence[str], place: int) -> None:
    features = np.array([[0.0], [1.0]], dtype=np.float32)
    preprocessing = Preprocessing(FeatureScaling.fit(features, categorical=[0]), {0: values})
    some = np.array([[0], [1], [2], [-1], [1e6], [np.nan]], dtype=np.float32)
    assert preprocessing.prepare(some)[:, 0].tolist() == [1, 2, place, place, place, 0]


def test_codes_are_no_numbers_of_the_normalisation() -> None:
    features = _features()
    preprocessing, others = _preprocessing(features), features.copy()
    others[:, 0], others[:, 19] = 2, 7
    first, second = (preprocessing.prepare(each)[:, :19] for each in (features, others))
    assert torch.equal(first, second)


def test_the_typical_code_is_the_most_frequent_one() -> None:
    features = np.array([[0, 0], [4, 4], [4, 5], [9, 6], [np.nan, 7]], dtype=np.float32)
    assert FeatureScaling.fit(features, categorical=[0]).typical.tolist() == [4, 5]
    nothing = np.full((2, 1), np.nan, dtype=np.float32)
    assert FeatureScaling.fit(nothing, categorical=[0]).typical.tolist() == [0]


def _log(*, pages: int = 400, values: int = 12, absent: int = 0) -> ClickLog:
    """Clicks that depend on a brand whose code says nothing by its order; the last `absent` brands are never shown."""
    random = np.random.default_rng(0)
    brand = random.integers(values - absent, size=6 * pages)
    good = random.permutation(values) % 2 == 0
    features = np.column_stack([brand, random.normal(size=6 * pages)]).astype(np.float32)
    log = ClickLog.of(
        features=features,
        documents=np.arange(6 * pages),
        offsets=np.arange(pages + 1) * 6,
        clicks=random.random(6 * pages) < np.where(good[brand], 0.6, 0.1),
        feature_names=["brand", "age"],
    )
    return replace(log, categories={"brand": tuple(f"brand {number}" for number in range(values))})


def _spread(ranker: Ranker, log: ClickLog) -> float:
    """How much better clicked documents score than others, in deviations."""
    scores = ranker.score(log.features)[log.documents]
    return float((scores[log.clicks > 0].mean() - scores[log.clicks == 0].mean()) / scores.std())


@pytest.mark.parametrize("values", [12, 60])
def test_networks_learn_what_a_category_means_whatever_its_code(values: int) -> None:
    log = _log(values=values)
    network = MLP(hidden=(8,), steps=150, batch_size=64)
    as_numbers, as_categories = (
        _spread(ClickBaseline(relevance=network).fit(each).ranker_, log) for each in (replace(log, categories={}), log)
    )
    assert as_categories > as_numbers + 0.3


@pytest.mark.parametrize("values", [12, 60])
def test_a_value_that_training_does_not_show_counts_as_a_missing_one(values: int) -> None:
    ranker = ClickBaseline(relevance=MLP(hidden=(8,), steps=20)).fit(_log(values=values, absent=1)).ranker_
    never, missing = ranker.score(np.array([[values - 1, 0.5], [np.nan, 0.5]], dtype=np.float32))
    assert never == missing


def test_trees_take_the_categories_of_a_log_as_categories() -> None:
    log, trees = _log(), Trees(rounds=5, fewest_documents=20)
    by_log = ClickBaseline(relevance=trees).fit(log).ranker_
    by_name = ClickBaseline(relevance=replace(trees, categorical=("brand",))).fit(replace(log, categories={})).ranker_
    as_numbers = ClickBaseline(relevance=trees).fit(replace(log, categories={})).ranker_
    np.testing.assert_array_equal(by_log.score(log.features), by_name.score(log.features))
    assert (by_log.score(log.features) != as_numbers.score(log.features)).any()


def test_lightgbm_itself_knows_them_too() -> None:
    """A forest of one split of one set tells the good brands from the others, whatever their codes."""
    log = _log(values=4)
    stumps = Trees(rounds=1, leaves=2, fewest_documents=20, shrinkage=0.0)
    ranker = LightGBMRanker(relevance=stumps, sessions=400).fit(log).ranker_
    model = ranker.model.by_name["relevance"]
    assert isinstance(model, BoostedTrees)
    codes = np.array([[code, 0] for code in range(4)], dtype=np.float32)
    rates = [log.clicks[log.features[log.documents, 0] == code].mean() for code in range(4)]
    np.testing.assert_array_equal(ranker.score(codes) > ranker.score(codes).mean(), np.array(rates) > 0.35)


def test_a_projected_network_keeps_its_tables() -> None:
    features = _features()
    preprocessing = _preprocessing(features)
    network = MLP(hidden=(6,)).build(preprocessing.layout, 3, generator=torch.Generator().manual_seed(0))
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(1))
    vector, documents = torch.tensor([1.0, -2.0, 0.5]), all_documents(Inputs(features, preprocessing))
    torch.testing.assert_close(network.project(vector)(documents)[:, 0], network(documents) @ vector)

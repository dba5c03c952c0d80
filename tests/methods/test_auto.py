"""The default method: halves that know nothing of each other, scores by the formula, and one forest of four."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import torch

from ultr.arrays import Mask
from ultr.clicks.registry import click_model
from ultr.data.click_log import ClickLog
from ultr.data.signal import Signal
from ultr.datasets.letor_like import letor_like
from ultr.datasets.splits import Splits
from ultr.evaluation.judged import evaluate
from ultr.exporting.forest_file import forest_of
from ultr.methods import Auto, ClickBaseline
from ultr.methods.auto import FITS, half_of_queries
from ultr.methods.combined import mean_products
from ultr.methods.shrinkage import Shrinkage
from ultr.relevance import MLP, Inputs, Preprocessing, Trees
from ultr.relevance.inputs import Documents
from ultr.simulation.log import simulate
from ultr.train.lists import TrainingLists

NETWORK = MLP(hidden=(8,), steps=60)


@lru_cache(maxsize=1)
def _data() -> Splits:
    return letor_like(train_queries=80, validation_queries=10, test_queries=30)


@lru_cache(maxsize=1)
def _log() -> ClickLog:
    return simulate(_data().train, click_model("trust"), impressions=40_000, svm_share=0.1, rankings=2, noise=0.5)


def _first_half(log: ClickLog) -> Mask:
    first = half_of_queries(_lists(log), seed=0)
    assert first is not None
    return first


def _lists(log: ClickLog) -> TrainingLists:
    from ultr.data.scaling import FeatureScaling

    inputs = Inputs(log.features, Preprocessing(FeatureScaling.fit(log.features)), names=log.feature_names)
    return TrainingLists.of_log(log, inputs)


def test_halves_have_no_query_in_common_and_as_many_queries() -> None:
    log = _log()
    first = _first_half(log)
    inside, outside = set(log.queries[first]), set(log.queries[~first])
    assert not inside & outside
    assert abs(len(inside) - len(outside)) <= 1


def test_the_lists_of_a_single_query_are_halved_themselves() -> None:
    log = _log().select(np.arange(6))
    assert _first_half(replace(log, queries=np.zeros(6, dtype=np.int64))).sum() == 3


@pytest.mark.parametrize("relevance", [NETWORK, Trees(rounds=4)], ids=["network", "trees"])
def test_a_half_learns_nothing_from_the_clicks_of_the_other(relevance: MLP | Trees) -> None:
    log = _log()
    first = np.repeat(_first_half(log), log.lengths)
    changed = replace(
        log, clicks=np.where(first, log.clicks, log.clicks[::-1].clip(max=np.repeat(log.impressions, log.lengths)))
    )
    auto = Auto(relevance=relevance, weight_power=0.0, vector_hidden=(8,), vector_steps=20)
    one, other = (auto.fit(each).ranker_.model.state_dict() for each in (log, changed))
    same = {name: torch.equal(one[name], other[name]) for name in one if "relevance" in name or "vectors" in name}
    assert all(equal for name, equal in same.items() if name.startswith("models.first_"))
    assert not all(equal for name, equal in same.items() if name.startswith("models.second_"))


def test_scores_are_the_weighted_sum_of_the_fits() -> None:
    data = _data()
    ranker = Auto(relevance=NETWORK).fit(_log()).ranker_
    objective, test = ranker.objective, data.test
    names = [["raw_relevance"]] + [[f"{prefix}relevance", f"{prefix}base"] for prefix in FITS if prefix != "raw_"]
    total = np.zeros(test.documents)
    for fit, own, weight in zip(objective.fits, names, objective.weights.tolist(), strict=True):
        r = torch.from_numpy(ranker.outputs(test.features, own))
        for start, stop in zip(test.offsets[:-1], test.offsets[1:], strict=True):
            mask = torch.ones(1, stop - start, dtype=torch.bool)
            total[start:stop] += weight * fit.combine(r[None, start:stop], mask)[0].numpy()  # type: ignore[operator]
    np.testing.assert_allclose(ranker.score(test.features, test.offsets), total, atol=1e-5)


def test_clicks_are_shared_out_by_the_vectors_of_the_debiased_fit() -> None:
    log, ranker = _log(), Auto(relevance=NETWORK, weight_power=0.0).fit(_log()).ranker_
    r = ranker.outputs(log.features)[log.documents]
    o = ranker.objective.fits[1].observation.embeddings()["position"]  # type: ignore[operator, union-attr]
    weights = np.exp((r * o[log.position.values]).sum(axis=1))
    shares = weights / np.repeat(np.add.reduceat(weights, log.offsets[:-1]), log.lengths)
    np.testing.assert_allclose(ranker.click_shares(log), shares, rtol=1e-4)


def test_clicks_that_follow_the_position_alone_leave_the_order_of_raw_clicks() -> None:
    log = _log()
    rates = np.array([0.6, 0.4, 0.3, 0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.05])[log.position.values]
    clicks = np.random.default_rng(5).binomial(np.repeat(log.impressions, log.lengths), rates)
    noise = replace(log, clicks=clicks)
    found = Auto(relevance=NETWORK).fit(noise)
    kept = found.ranker_.choices["kept"]
    assert kept == 0
    raw, test = ClickBaseline(relevance=NETWORK).fit(noise), _data().test
    by_raw, scores = (each.score(test.features, test.offsets) for each in (raw, found))
    np.testing.assert_array_equal(scores, by_raw)


def test_most_of_the_correction_is_kept_where_clicks_are_plenty() -> None:
    data = letor_like(train_queries=300, validation_queries=1, test_queries=200, features=16)
    log = simulate(data.train, click_model("trust"), impressions=300_000, svm_share=0.02)
    network = MLP(hidden=(8,), steps=150)
    auto, raw = (method(relevance=network).fit(log) for method in (Auto, ClickBaseline))
    assert auto.ranker_.choices["kept"] > 0.5
    assert evaluate(auto, data.test).mean("nDCG@10") > evaluate(raw, data.test).mean("nDCG@10")


def test_the_forest_for_engines_is_the_sum_of_all_trees_with_their_weights() -> None:
    data = _data()
    ranker = Auto(relevance=Trees(rounds=6), vector_hidden=(8,), vector_steps=20).fit(_log()).ranker_
    forest = forest_of(ranker)
    assert forest is not None
    assert len(forest) == 4 * 6
    expected = ranker.score(data.test.features, data.test.offsets)
    np.testing.assert_allclose(forest.predict(data.test.features, 1)[:, 0], expected, atol=1e-5)


@pytest.mark.parametrize("relevance", [NETWORK, Trees(rounds=8)], ids=["network", "trees"])
def test_one_number_tells_how_much_is_kept(relevance: MLP | Trees) -> None:
    ranker = Auto(relevance=relevance, vector_hidden=(8,), vector_steps=40).fit(_log()).ranker_
    agreement, kept = ranker.choices["agreement"], ranker.choices["kept"]
    assert agreement > 0
    assert kept == pytest.approx((2 * agreement / (1 + agreement)) ** 2)


@pytest.mark.parametrize("relevance", [NETWORK, Trees(rounds=2)], ids=["network", "trees"])
def test_with_fewer_than_four_queries_nothing_is_kept(relevance: MLP | Trees) -> None:
    log = _log()
    few, enough = (log.select(np.isin(log.queries, np.unique(log.queries)[:count])) for count in (3, 4))
    auto = Auto(relevance=relevance, vector_hidden=(8,), vector_steps=5)
    assert auto.fit(few).ranker_.objective.weights.tolist() == [1, 0, 0, 0]
    assert auto.fit(enough).ranker_.choices["agreement"] != 0
    single = log.select(np.arange(1))
    assert auto.fit(single).ranker_.choices["kept"] == 0


def test_with_a_value_every_fit_learns_it_and_values_are_what_is_shrunken() -> None:
    """The mean products are those of the scores by value; with clicks as the value they hardly change."""
    log = replace(_log(), signals=(Signal("purchase", _log().clicks // 2),))
    auto = Auto(relevance=NETWORK, value={"purchase": 1.0}).fit(log)
    model, lists = auto.ranker_.model, _lists(log)
    assert auto.ranker_.objective.ranks_with == tuple(f"{prefix}value" for prefix in FITS)
    expected = Shrinkage.of(mean_products(model, lists))
    np.testing.assert_allclose(auto.ranker_.objective.weights, expected.weights, rtol=1e-6)
    assert auto.ranker_.choices["kept"] == expected.kept
    documents = Documents(Inputs(log.features, auto.ranker_.preprocessing), torch.arange(5))
    values = torch.cat([model.by_name[f"{prefix}value"](documents) for prefix in FITS], dim=1)
    np.testing.assert_allclose(auto.score(log.features[:5]), values @ torch.tensor(expected.weights), rtol=1e-4)

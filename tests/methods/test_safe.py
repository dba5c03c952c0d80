"""Rankers that stay near the order of their log, in worlds where it is known what is better."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from ultr.arrays import Doubles
from ultr.clicks.registry import click_model
from ultr.data.bias_factor import position_factor
from ultr.data.click_log import ClickLog
from ultr.data.signal import Signal
from ultr.datasets.letor_like import letor_like
from ultr.errors import DataError, OptionError
from ultr.exporting import export
from ultr.exporting.forest_file import export_forest, forest_of
from ultr.methods import DLA, ClickBaseline, InversePropensity, LightGBMRanker, load
from ultr.methods.ranker import Ranker
from ultr.methods.safe import SAFE, Gains, _events, allowed, evidence_share, in_words, make_safe
from ultr.metrics import kendall_tau
from ultr.relevance import MLP, Trees
from ultr.scoring import Scorer
from ultr.simulation.log import simulate
from ultr.train.bounded import LOGGED
from ultr.train.lists import TrainingLists

NETWORK = MLP(hidden=(16,), steps=150)
DOCUMENTS = 6
THETA = 1 / np.arange(1, DOCUMENTS + 1)


def shown(queries: int, impressions: int, *, good_is_last: bool, seed: int = 0) -> ClickLog:
    """Lists in the order of their only feature, clicked with propensities 1 / position; the best is last or first."""
    random = np.random.default_rng(seed)
    logged = np.sort(random.random((queries, DOCUMENTS)), axis=1)[:, ::-1]
    relevance = 1 - logged if good_is_last else logged
    rates = THETA * (0.1 + 0.8 * relevance)
    return ClickLog.of(
        features=logged.reshape(-1, 1),
        documents=np.arange(queries * DOCUMENTS),
        offsets=np.arange(0, queries * DOCUMENTS + 1, DOCUMENTS),
        clicks=random.binomial(impressions, rates).ravel(),
        impressions=np.full(queries, impressions),
    )


@cache
def fitted(*, good_is_last: bool) -> tuple[Ranker, ClickLog, ClickLog]:
    """A ranker that has the order of the log turned around, whether that is good or not."""
    kept, held_out = shown(150, 100, good_is_last=good_is_last).split(1 / 3)
    taught = shown(150, 1_000, good_is_last=True)
    return InversePropensity(relevance=NETWORK, propensities=tuple(THETA)).fit(taught).ranker_, kept, held_out


@cache
def within_two() -> Ranker:
    ranker, kept, held_out = fitted(good_is_last=True)
    return make_safe(ranker, kept, held_out, largest=2.0, propensities=THETA.tolist())


def orders(ranker: Ranker, log: ClickLog) -> Doubles:
    return ranker.score(log.features[log.documents], log.offsets).astype(np.float64)


def agreement(ranker: Ranker, log: ClickLog) -> float:
    """Kendall's tau with the order as shown, from 1 for the same to -1 for the opposite."""
    place = -np.tile(np.arange(DOCUMENTS, dtype=np.float64), log.lists)
    return float(kendall_tau(orders(ranker, log), place, log.offsets).mean())


def test_clicks_that_speak_for_another_order_free_the_ranker(tmp_path: Path) -> None:
    ranker, kept, held_out = fitted(good_is_last=True)
    safe = make_safe(ranker, kept, held_out, propensities=THETA.tolist())
    assert safe.choices[SAFE]["factor"] is None
    assert agreement(safe, held_out) == pytest.approx(agreement(ranker, held_out))
    assert agreement(safe, held_out) < -0.9
    safe.save(tmp_path / "safe")
    assert np.array_equal(orders(load(tmp_path / "safe"), held_out), orders(safe, held_out))


def test_clicks_on_pages_longer_than_any_of_the_log_are_refused() -> None:
    ranker, kept, held_out = fitted(good_is_last=True)
    deeper = replace(held_out, factors=(position_factor(held_out.positions + 1),))
    with pytest.raises(DataError, match="the held-out log shows more than 6 positions"):
        make_safe(ranker, kept, deeper, propensities=THETA.tolist())


def test_clicks_that_speak_against_it_keep_the_logged_order() -> None:
    ranker, kept, held_out = fitted(good_is_last=False)
    safe = make_safe(ranker, kept, held_out, propensities=THETA.tolist())
    choice = safe.choices[SAFE]
    assert choice["factor"] == 1
    assert agreement(ranker, held_out) < -0.9
    assert agreement(safe, held_out) > 0.9
    assert choice["agreement"] > 0.9
    assert "do not speak for any change, so the ranker keeps the logged order" in in_words(choice)[0]


@pytest.mark.parametrize(("impressions", "factor"), [(1, 1.0), (3, None)])
def test_few_clicks_are_no_evidence_however_they_agree(impressions: int, factor: float | None) -> None:
    # All of 50 lists have their clicks on the last document, which the ranker wants first: 50 clicks, or 150.
    ranker, kept, held_out = fitted(good_is_last=True)
    clicks = np.tile([0] * (DOCUMENTS - 1) + [impressions], held_out.lists)
    few = replace(held_out, impressions=np.full(held_out.lists, impressions), clicks=clicks)
    assert make_safe(ranker, kept, few, propensities=THETA.tolist()).choices[SAFE]["factor"] == factor


def test_the_widest_bound_is_taken_that_gains_and_is_not_beaten() -> None:
    shown, unsure = np.ones(40), np.resize([0.3, -0.28], 40)
    sure = np.resize([0.21, 0.19], 40)

    def farthest(*gains: Doubles) -> int:
        return Gains(shown, np.stack([shown, *(shown + gain for gain in gains)])).farthest()

    assert farthest(unsure) == 0
    assert farthest(sure, unsure) == 1
    assert farthest(sure, sure) == 2
    assert farthest(sure, sure / 2) == 1
    assert farthest(sure, sure + 0.1 * unsure) == 2


@pytest.mark.parametrize("largest", [1.5, 3.0])
def test_no_evidence_leads_past_the_largest_factor(largest: float) -> None:
    ranker, kept, held_out = fitted(good_is_last=True)
    safe = make_safe(ranker, kept, held_out, largest=largest, propensities=THETA.tolist())
    assert safe.choices[SAFE]["factor"] == largest
    moved = orders(safe, held_out)
    safe.model.factor.fill_(1.0)
    moved /= orders(safe, held_out)
    assert 1 < moved.max() <= largest + 1e-6
    assert moved.min() >= 1 / largest - 1e-6


def test_gains_are_discounted_debiased_clicks_by_hand() -> None:
    ranker, _, _ = fitted(good_is_last=True)
    log = ClickLog.of(
        features=[[0.9], [0.1]],
        documents=[0, 1],
        offsets=[0, 2],
        clicks=[4, 3],
        impressions=[10],
    )
    lists = TrainingLists.of_log(log, ranker.inputs(log.features))
    found = Gains.of(within_two().model, lists, log, np.array([1.0, 0.5]), (1.0, np.inf))
    kept, turned = 4 / 1 + 3 / 0.5 / np.log2(3), 4 / 1 / np.log2(3) + 3 / 0.5
    assert found.shown == pytest.approx([kept])
    assert found.bounded[:, 0] == pytest.approx([kept, turned])


def test_documents_that_tie_are_not_credited_with_the_order_that_was_shown() -> None:
    """All features are the same, and only the first document of each list is ever clicked."""
    lists, ranker = 2_000, within_two()
    log = ClickLog.of(
        features=np.full((2 * lists, 1), 0.5),
        documents=np.arange(2 * lists),
        offsets=np.arange(0, 2 * lists + 1, 2),
        clicks=np.tile([1, 0], lists),
    )
    held_out = TrainingLists.of_log(log, ranker.inputs(log.features))
    found = Gains.of(ranker.model, held_out, log, np.array([1.0, 0.5]), (1.0, np.inf))
    # Half of the clicked documents stand first, the others second: four standard errors are .017.
    assert found.bounded.sum(axis=1) / lists == pytest.approx([(1 + 1 / np.log2(3)) / 2] * 2, abs=0.017)
    assert found.shown.sum() == lists


def test_a_safe_ranker_is_saved_loaded_and_exported_with_its_bound(tmp_path: Path) -> None:
    ranker, kept, held_out = fitted(good_is_last=True)
    safe = within_two()
    safe.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(orders(again, held_out), orders(safe, held_out))
    assert again.choices == safe.choices
    assert again.model.factor == 2
    for form in ("lists", "flat"):
        export(safe, tmp_path / f"{form}.onnx", form=form)
        scorer = Scorer.load(tmp_path / f"{form}.onnx")
        found = scorer.score(held_out.features[held_out.documents], held_out.offsets)
        np.testing.assert_array_equal(found, orders(safe, held_out))
    with pytest.raises(OptionError, match="orders whole lists"):
        export(safe, tmp_path / "one.onnx", pointwise=True)
    np.testing.assert_array_equal(safe.click_shares(kept), ranker.click_shares(kept))


def test_documents_with_equal_scores_have_the_same_places_in_the_exported_file(tmp_path: Path) -> None:
    safe, held_out = within_two(), fitted(good_is_last=True)[2]
    export(safe, tmp_path / "model.onnx")
    features = np.repeat(held_out.features[:4], 5, axis=0)
    offsets = np.array([0, 20])
    np.testing.assert_array_equal(
        Scorer.load(tmp_path / "model.onnx").score(features, offsets), safe.score(features, offsets)
    )


def test_any_ranker_can_be_made_safe_and_a_bounded_forest_is_no_plain_one() -> None:
    kept, held_out = shown(150, 100, good_is_last=True).split(1 / 3)
    forest = LightGBMRanker(relevance=Trees(rounds=10, leaves=4, fewest_documents=1), sessions=500).fit(kept).ranker_
    safe = make_safe(forest, kept, held_out, largest=2.0, relevance=Trees(rounds=20, leaves=4, fewest_documents=1))
    assert forest_of(forest) is not None
    assert forest_of(safe) is None
    with pytest.raises(OptionError, match=r"keeps within a bound of the logged order;.*without --safe"):
        export_forest(safe, "never.json", to="solr")
    # It learns no propensities, which is said.
    assert "Propensities are not known" in in_words(safe.choices[SAFE])[2]


def test_what_chose_the_factor_is_recorded_and_the_ranker_given_stays_as_it_was() -> None:
    ranker, kept, held_out = fitted(good_is_last=True)
    before = orders(ranker, held_out)
    safe = within_two()
    assert safe.provenance is not None
    assert [each.fingerprint for each in safe.provenance.validation] == [held_out.fingerprint()]
    assert kept.fingerprint() in [each.fingerprint for each in safe.provenance.data]
    assert LOGGED not in ranker.model.by_name
    np.testing.assert_array_equal(orders(ranker, held_out), before)
    assert not any(parameter.requires_grad for parameter in safe.model.parameters())


def test_few_queries_hold_out_more_of_them() -> None:
    assert evidence_share(shown(100, 1, good_is_last=True)) == pytest.approx(1 / 3)
    assert evidence_share(shown(2_000, 1, good_is_last=True)) == pytest.approx(0.25)
    assert evidence_share(shown(6_000, 1, good_is_last=True)) == pytest.approx(0.1)


def test_what_cannot_be_made_safe_is_refused() -> None:
    ranker, kept, held_out = fitted(good_is_last=True)
    with pytest.raises(OptionError, match=r"safe must be a factor of at least 1, or auto, got 0\.5"):
        allowed(0.5)
    with pytest.raises(DataError, match="held-out log has no click"):
        make_safe(ranker, kept, ClickLog.of(features=[[0.0]], documents=[0], offsets=[0, 1], clicks=[0]))
    with pytest.raises(OptionError, match="safe already"):
        make_safe(within_two(), kept, held_out)
    with pytest.raises(DataError, match="other features"):
        make_safe(ranker, ClickLog.of(features=[[0.0, 1.0]], documents=[0], offsets=[0, 1], clicks=[1]), held_out)


def test_a_noisy_ranker_of_a_small_log_is_held_back() -> None:
    """A ranker by chance would lose much; the logged order, learned from positions, loses little."""
    torch.manual_seed(0)
    world = letor_like(train_queries=150, validation_queries=1, test_queries=1)
    scores = world.train.labels + np.random.default_rng(0).normal(size=world.train.documents)
    log = simulate(world.train, click_model("position-based"), scores=scores, impressions=3_000, seed=1)
    kept, held_out = log.split(1 / 3)
    chance = DLA(relevance=MLP(hidden=(8,), steps=1, learning_rate=1e-9)).fit(kept).ranker_
    choice = make_safe(chance, kept, held_out, relevance=NETWORK).choices[SAFE]
    assert choice["factor"] == 1
    assert choice["tried"][-1]["gain"] < 0


def test_a_ranker_by_value_is_judged_by_value() -> None:
    """Clicks are on what was shown first, purchases on what was shown last."""
    ranker, kept, held_out = fitted(good_is_last=True)
    logged = shown(150, 100, good_is_last=False)
    bought = np.minimum(logged.clicks, (logged.position.values == DOCUMENTS - 1) * 3)
    log = replace(logged, signals=(Signal("buy", bought),))
    kept, held_out = log.split(1 / 3)
    by_clicks = make_safe(ranker, kept, held_out, propensities=THETA.tolist())
    assert by_clicks.choices[SAFE]["factor"] == 1
    by_value = replace(ranker, options={**ranker.options, "value": {"buy": 2.0}})
    found = make_safe(by_value, kept, held_out, propensities=THETA.tolist()).choices[SAFE]
    assert found["factor"] is None
    assert found["clicks"] == held_out.signal("buy").sum()
    assert "% of 2 buy (+" in in_words(found)[0]
    with pytest.raises(DataError, match="held-out log has no 2 buy, so"):
        make_safe(by_value, kept, replace(held_out, signals=(Signal("buy", 0 * held_out.clicks),)))


def test_events_of_different_weight_count_as_fewer_of_one() -> None:
    log = ClickLog.of(
        features=[[0.0]], documents=[0], offsets=[0, 1], clicks=[1_000], impressions=[2_000], signals={"buy": [10]}
    )
    assert _events(log, {"click": 1.0}) == _events(log, {"click": 5.0, "buy": 0.0}) == 1_000
    assert _events(log, {"click": 1.0, "buy": 100.0}) == pytest.approx(2_000**2 / 101_000)


def test_one_held_out_query_has_no_interval() -> None:
    ranker, kept, _ = fitted(good_is_last=True)
    choice = make_safe(ranker, kept, shown(1, 1_000, good_is_last=True), propensities=THETA.tolist()).choices[SAFE]
    assert choice["factor"] == 1
    assert in_words(choice)[0].endswith("% (one query, so there is no interval).")


def test_features_that_an_option_calls_categorical_stay_so() -> None:
    log = shown(60, 100, good_is_last=True)
    kept, held_out = replace(log, features=np.floor(10 * log.features)).split(1 / 3)
    trees = Trees(rounds=5, leaves=4, fewest_documents=1, categorical=(kept.feature_names[0],))
    assert SAFE in make_safe(ClickBaseline(relevance=trees).fit(kept).ranker_, kept, held_out, largest=2.0).choices

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ultr.arrays import Doubles
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.provenance import Provenance
from ultr.datasets.splits import Splits
from ultr.errors import DataError, OptionError
from ultr.evaluation import click_fit
from ultr.methods import ClickBaseline, LabelBaseline, Vectorization
from ultr.metrics import list_log_likelihood
from ultr.relevance import MLP


class Uniform:
    """Every document of a list is as likely as the others, and half of the impressions click."""

    provenance = Provenance()

    def click_shares(self, log: ClickLog) -> Doubles:
        return 1 / np.repeat(log.lengths, log.lengths)

    def click_probabilities(self, log: ClickLog) -> Doubles:
        return np.full(len(log.clicks), 0.5)


def test_a_coin_has_perplexity_two_at_every_position(small_log: ClickLog) -> None:
    fit = click_fit(Uniform(), small_log)
    assert fit.perplexity == pytest.approx(2)
    np.testing.assert_allclose(fit.perplexity_by_position, 2)
    assert fit.list_log_likelihood == pytest.approx(-np.log(10))


def test_the_fit_is_that_of_the_measures_however_many_lists_are_taken_at_once(
    small_log: ClickLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Noise(Uniform):
        def click_probabilities(self, log: ClickLog) -> Doubles:
            return np.random.default_rng(0).random(len(log.clicks))

    monkeypatch.setattr(ragged, "SPAN", 100)
    fit, probabilities = click_fit(Noise(), small_log), Noise().click_probabilities(small_log)
    clicks, often = small_log.clicks, np.repeat(small_log.impressions, small_log.lengths)
    skips = often - clicks
    bits = clicks * np.log2(probabilities) + skips * np.log2(1 - probabilities)
    assert fit.log_likelihood == pytest.approx(np.log(2) * bits.sum() / often.sum())
    assert fit.perplexity == pytest.approx(2 ** (-bits.sum() / often.sum()))
    assert fit.list_log_likelihood == pytest.approx(
        list_log_likelihood(np.log(Noise().click_shares(small_log)), clicks)
    )
    here = [small_log.positions == position for position in range(1, 11)]
    expected = [2 ** (-bits[rows].sum() / often[rows].sum()) for rows in here]
    np.testing.assert_allclose(fit.perplexity_by_position, expected)


def test_a_log_without_a_click_is_one_data_error(small_log: ClickLog) -> None:
    with pytest.raises(DataError, match="no click to predict"):
        click_fit(Uniform(), replace(small_log, clicks=np.zeros_like(small_log.clicks)))


def test_a_model_that_knows_positions_predicts_clicks_better(small_log: ClickLog) -> None:
    train, held_out = small_log.split(0.3)
    blind = click_fit(ClickBaseline(relevance=MLP(hidden=(16,), steps=150)).fit(train), held_out)
    seeing = click_fit(Vectorization(relevance=MLP(hidden=(16,), steps=150)).fit(train), held_out)
    assert seeing.list_log_likelihood > blind.list_log_likelihood
    assert 1 < seeing.perplexity < 2


def test_predicted_probabilities_add_up_to_the_clicks_of_an_impression(small_log: ClickLog) -> None:
    ranker = Vectorization(relevance=MLP(hidden=(16,), steps=50)).fit(small_log).ranker_
    totals = np.bincount(ragged.list_numbers(small_log.offsets), ranker.click_shares(small_log))
    np.testing.assert_allclose(totals, 1, rtol=1e-9)
    expected = np.minimum(ranker.click_shares(small_log) * ranker.clicks_per_impression, 1)
    np.testing.assert_allclose(ranker.click_probabilities(small_log), expected)
    assert ranker.clicks_per_impression == pytest.approx(small_log.clicks.sum() / small_log.impressions.sum(), rel=1e-5)


def test_a_ranker_trained_on_labels_does_not_predict_clicks(small: Splits, small_log: ClickLog) -> None:
    ranker = LabelBaseline(relevance=MLP(hidden=(16,), steps=5)).fit(small.train)
    with pytest.raises(OptionError, match="a ranker by the method label does not model clicks"):
        click_fit(ranker, small_log)


def test_a_log_with_other_features_is_refused(small_log: ClickLog) -> None:
    ranker = ClickBaseline(relevance=MLP(hidden=(16,), steps=5)).fit(small_log)
    fewer = replace(small_log, features=small_log.features[:, :9], feature_names=small_log.feature_names[:9])
    with pytest.raises(DataError, match="the log has other features than the one that the ranker was trained on"):
        click_fit(ranker, fewer)

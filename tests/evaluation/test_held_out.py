from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ultr.arrays import Doubles
from ultr.data import ragged
from ultr.data.bias_factor import position_factor
from ultr.data.click_log import ClickLog
from ultr.data.provenance import Provenance
from ultr.datasets.splits import Splits
from ultr.errors import DataError, OptionError
from ultr.evaluation import QueryLikelihoods, click_fit
from ultr.methods import ClickBaseline, LabelBaseline, Vectorization
from ultr.metrics import bootstrap_ratio
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
    in_lists = np.average(np.log(Noise().click_shares(small_log)), weights=clicks)
    assert fit.list_log_likelihood == pytest.approx(in_lists)
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


class Known(Uniform):
    """Predicts what it was told, document by document."""

    def __init__(self, *chances: float) -> None:
        self.chances = np.array(chances)

    def click_shares(self, log: ClickLog) -> Doubles:
        chances = self.chances[log.documents]
        shares: Doubles = chances / np.repeat(np.add.reduceat(chances, log.offsets[:-1]), log.lengths)
        return shares

    def click_probabilities(self, log: ClickLog) -> Doubles:
        return self.chances[log.documents]


def three_documents() -> ClickLog:
    """0 and 1 ten times, 0 alone once, and 2 once at the fourth position; nothing is at the third or fifth."""
    log = ClickLog.of(
        features=np.zeros((3, 1)),
        documents=[0, 1, 0, 2],
        offsets=[0, 2, 3, 4],
        clicks=[4, 1, 1, 0],
        positions=[1, 2, 1, 4],
        impressions=[10, 1, 1],
        queries=["a", "a", "b"],
    )
    return replace(log, factors=(position_factor(log.positions, count=5),))


@pytest.mark.parametrize("span", [2**18, 1])
def test_the_fit_of_three_documents_by_hand(span: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ragged, "SPAN", span)
    fit = click_fit(Known(0.4, 0.2, 0.1), three_documents())
    first = 5 * np.log(0.4) + 6 * np.log(0.6)
    second, fourth = np.log(0.2) + 9 * np.log(0.8), np.log(0.9)
    mean = (first + second + fourth) / 22
    assert fit.log_likelihood == pytest.approx(mean)
    assert fit.perplexity == pytest.approx(np.exp(-mean))
    by_position = np.exp([-first / 11, -second / 10, np.nan, -fourth])
    assert fit.perplexity_by_position.tolist() == pytest.approx(by_position.tolist(), nan_ok=True)
    # Of a list of two, 0.4 / 0.6 and 0.2 / 0.6; a document alone has all of the clicks.
    assert fit.list_log_likelihood == pytest.approx((4 * np.log(2 / 3) + np.log(1 / 3) + 0) / 6)


def test_the_likelihoods_of_two_queries_by_hand() -> None:
    log = three_documents()
    ours, theirs = QueryLikelihoods.of(Known(0.4, 0.2, 0.1), log), QueryLikelihoods.of(Known(0.5, 0.5, 0.5), log)
    of_a = 5 * np.log(0.4) + 6 * np.log(0.6) + np.log(0.2) + 9 * np.log(0.8)
    assert ours.totals.tolist() == pytest.approx([of_a, np.log(0.9)])
    assert (ours.shown.tolist(), ours.clicks.tolist()) == ([21, 1], [6, 0])
    assert ours.list_totals.tolist() == pytest.approx([4 * np.log(2 / 3) + np.log(1 / 3), 0])
    lead = np.array([of_a, np.log(0.9)]) - np.array([21, 1]) * np.log(0.5)
    assert ours.against(theirs) == bootstrap_ratio(ours.totals - theirs.totals, ours.shown)
    assert ours.against(theirs).mean == pytest.approx(lead.sum() / 22)
    in_lists = ours.list_totals - theirs.list_totals
    assert ours.against_in_lists(theirs) == bootstrap_ratio(in_lists, ours.clicks)
    assert ours.against_in_lists(theirs).mean == pytest.approx(in_lists.sum() / 6)


def test_lists_without_a_document_and_logs_without_a_list_say_nothing() -> None:
    log = ClickLog.of(
        features=np.zeros((2, 1)), documents=[0, 1], offsets=[0, 0, 2], clicks=[1, 0], impressions=[3, 2], queries="ab"
    )
    coin = np.log(0.5)
    found = QueryLikelihoods.of(Uniform(), log)
    assert found.totals.tolist() == pytest.approx([0.0, 4 * coin])
    assert click_fit(Uniform(), log).log_likelihood == pytest.approx(coin)
    assert QueryLikelihoods.of(Uniform(), log.select(np.array([], dtype=np.int64))).totals.shape == (0,)


def test_shares_and_probabilities_may_come_at_once() -> None:
    class AtOnce(Uniform):
        def predict_clicks(self, log: ClickLog) -> tuple[Doubles, Doubles]:
            return self.click_shares(log), np.full(len(log.clicks), 0.25)

    log = three_documents()
    expected = (6 * np.log(0.25) + 16 * np.log(0.75)) / 22
    assert click_fit(AtOnce(), log).log_likelihood == pytest.approx(expected)

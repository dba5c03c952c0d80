"""Methods find the bias that clicks were made with, and rank as if they had learned from labels."""

from __future__ import annotations

from functools import cache

import numpy as np

from ultr.clicks.model import EXAMINATION
from ultr.clicks.registry import click_model
from ultr.clicks.trust_bias import TrustBias
from ultr.data.click_log import ClickLog
from ultr.datasets.letor_like import letor_like
from ultr.datasets.splits import Splits
from ultr.evaluation import evaluate
from ultr.methods import DLA, Affine, ClickBaseline, InversePropensity, LabelBaseline, RegressionEM
from ultr.methods.estimator import Estimator
from ultr.relevance import MLP
from ultr.simulation.log import simulate

TRUE = np.array(EXAMINATION) / EXAMINATION[0]


@cache
def _splits() -> Splits:
    return letor_like(train_queries=1_000, validation_queries=150, test_queries=500)


@cache
def _log(clicks: str) -> ClickLog:
    """So many impressions that click rates are all but their expectation; swaps tell positions from documents."""
    return simulate(_splits().train, click_model(clicks), impressions=10**9, svm_share=0.05, rankings=10, noise=0.5)


def _quality(ranker: Estimator) -> float:
    return evaluate(ranker, _splits().test).mean("nDCG@10")


@cache
def _labelled() -> float:
    """What labels give; more steps, a smaller rate or the recipe of the paper give a little less."""
    learned = LabelBaseline(relevance=MLP(hidden=(32,), steps=800))
    return _quality(learned.fit(_splits().train, validation=_splits().validation))


def test_dual_learning_finds_the_examination_curve_and_the_ranking_of_position_based_clicks() -> None:
    log = _log("position-based")
    ranker = DLA(relevance=MLP(hidden=(32,), steps=800)).fit(log, validation=_splits().validation)
    np.testing.assert_allclose(ranker.propensities()["position"], TRUE, atol=0.02)
    assert _quality(ranker) > _labelled() - 0.02


def test_regression_em_finds_the_examination_curve_and_the_ranking_of_position_based_clicks() -> None:
    ranker = RegressionEM(relevance=MLP(hidden=(32,), steps=1_500)).fit(_log("position-based"))
    np.testing.assert_allclose(ranker.propensities(), TRUE, atol=0.04)
    assert _quality(ranker) > _labelled() - 0.025


def test_inverse_propensity_finds_the_examination_curve_and_the_ranking_of_position_based_clicks() -> None:
    log = _log("position-based")
    ranker = InversePropensity(relevance=MLP(hidden=(32,), steps=800)).fit(log, validation=_splits().validation)
    np.testing.assert_allclose(ranker.ranker_.objective.propensities.numpy(), TRUE, atol=0.002)
    assert _quality(ranker) > _labelled() - 0.025


def test_affine_finds_the_correction_and_the_ranking_of_trust_bias_clicks() -> None:
    model = click_model("trust")
    assert isinstance(model, TrustBias)
    relevance = MLP(hidden=(32,), steps=1_000, learning_rate=0.003)
    ranker = Affine(relevance=relevance).fit(_log("trust"), validation=_splits().validation)
    alpha, beta = ranker.correction()
    theta, plus, minus = (np.array(v) for v in (model.examination, model.relevant_taken, model.irrelevant_taken))
    true = theta * (plus - minus)
    np.testing.assert_allclose(beta, theta * minus, atol=0.02)
    # No document is surely relevant by its features, so clicks fix alpha only up to a factor.
    np.testing.assert_allclose(alpha / alpha[0], true / true[0], rtol=0.1)
    assert _quality(ranker) > _labelled() - 0.02
    clicked = ClickBaseline(relevance=relevance).fit(_log("trust"), validation=_splits().validation)
    assert _quality(ranker) > _quality(clicked) + 0.01

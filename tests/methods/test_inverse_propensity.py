from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.bias.explored_world import THETA, Context, adjacent, expected_log
from tests.relevance.documents import inputs_of

from ultr.clicks.model import EXAMINATION
from ultr.clicks.registry import click_model
from ultr.data.click_log import ClickLog
from ultr.datasets.letor_like import letor_like
from ultr.errors import OptionError
from ultr.methods import InversePropensity
from ultr.methods.factors import factors_of
from ultr.relevance import MLP
from ultr.simulation.log import simulate

TINY = MLP(hidden=(8,), steps=5)
TRUE = np.array(EXAMINATION) / EXAMINATION[0]


def _propensities(ranker: InversePropensity) -> Any:
    return ranker.ranker_.objective.propensities.numpy()


def test_clicks_are_divided_by_the_propensity_of_their_position(small_log: ClickLog) -> None:
    method = InversePropensity(relevance=TINY)
    model = method.build(64, factors_of(small_log), seed=0)
    model.objective.propensities.copy_(torch.from_numpy(TRUE))
    batch = method.training_lists(small_log, inputs_of(small_log.features)).batch(np.arange(2))
    r = model.outputs(batch.documents, ["relevance"])
    expected = []
    for number in range(2):
        f = r[number * 10 : number * 10 + 10].detach().double().numpy()[:, 0]
        share = np.exp(f) / np.exp(f).sum()
        expected.append(-(batch.clicks[number].double().numpy() / TRUE * np.log(share)).sum())
    np.testing.assert_allclose(model.objective.weighted_loss(r, batch).detach().numpy(), expected, rtol=1e-4)


def test_given_propensities_are_used_in_units_of_the_first_and_not_below_the_smallest(small_log: ClickLog) -> None:
    given = (0.8, 0.6, 0.4, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.001)
    ranker = InversePropensity(propensities=given, smallest=0.05, relevance=TINY).fit(small_log)
    np.testing.assert_allclose(_propensities(ranker), np.maximum(np.array(given) / 0.8, 0.05), rtol=1e-6)


def test_too_few_propensities_are_refused(small_log: ClickLog) -> None:
    with pytest.raises(OptionError, match="the log shows 10 positions, but 2 propensities are given"):
        InversePropensity(propensities=(1.0, 0.5), relevance=TINY).fit(small_log)


def test_the_click_rates_of_a_randomised_log_are_its_propensities() -> None:
    train = letor_like(train_queries=300, validation_queries=1, test_queries=1).train
    log = simulate(train, click_model("position-based"), impressions=10**8, svm_share=0.1, rankings=200, noise=1e6)
    ranker = InversePropensity(estimator="click-rate", relevance=TINY).fit(log)
    np.testing.assert_allclose(_propensities(ranker), TRUE, atol=0.02)


def test_propensities_come_from_exploration_where_the_ranking_is_confounded_with_relevance() -> None:
    morning = Context({"x": 0.8, "y": 0.4, "z": 0.1}, adjacent(3, 0.1))
    evening = Context({"x": 0.1, "y": 0.2, "z": 0.4}, adjacent(3, 0.2), query="r")
    log = expected_log([morning, evening])
    for estimator in ("all-pairs", "adjacent-chain"):
        ranker = InversePropensity(estimator=estimator, relevance=TINY).fit(log)
        np.testing.assert_allclose(_propensities(ranker), THETA, rtol=1e-5)
    plain = InversePropensity(relevance=TINY).fit(replace(log, placements=None))
    assert np.abs(_propensities(plain) / THETA - 1).max() > 0.3

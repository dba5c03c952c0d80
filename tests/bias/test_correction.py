"""What debiasing has to offer: nothing without bias or without evidence, much where a weak ranker was trusted."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ultr.bias import correction as module
from ultr.bias.correction import correction
from ultr.clicks.registry import click_model
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.datasets.letor_like import letor_like
from ultr.errors import DataError
from ultr.simulation.log import simulate


def _log(
    *, share_of_truth: float, clicks: str = "position-based", queries: int = 200, impressions: int = 200_000
) -> ClickLog:
    """A log whose old ranker went by relevance to this share, and else by the first feature."""
    judged = letor_like(train_queries=queries, validation_queries=1, test_queries=1, features=16).train
    scores = share_of_truth * judged.labels + (1 - share_of_truth) * judged.features[:, 0].astype(np.float64)
    return simulate(judged, click_model(clicks), scores=scores, impressions=impressions)


def test_coefficients_are_where_the_penalised_likelihood_is_highest() -> None:
    random = np.random.default_rng(0)
    offsets = ragged.from_lengths(np.array([3, 2, 4, 3]))
    features, clicks = random.normal(size=(12, 2)), random.integers(0, 9, 12).astype(float)
    levels = np.eye(4)[:, 1:][ragged.ranks(offsets)]

    def value(coefficients: np.ndarray) -> float:
        logits = np.hstack([features, levels]) @ coefficients
        lists = pairwise(offsets)
        likelihood = sum(clicks[a:b] @ (logits[a:b] - np.log(np.exp(logits[a:b]).sum())) for a, b in lists)
        return float(
            likelihood - 0.5 * (2 * coefficients[:2] @ coefficients[:2] + 0.01 * coefficients[2:] @ coefficients[2:])
        )

    from scipy.optimize import minimize

    best = minimize(lambda coefficients: -value(coefficients), np.zeros(5), tol=1e-10).x
    np.testing.assert_allclose(module._fit(features, offsets, clicks, levels), best[:2], atol=1e-3)


def test_behind_a_weak_ranker_whose_places_were_trusted_there_is_much_to_gain() -> None:
    found = correction(_log(share_of_truth=0.0))
    assert found.new > 0.3
    assert found.reliable > 0.6


def test_behind_a_ranker_that_knows_the_truth_there_is_little_to_gain() -> None:
    assert correction(_log(share_of_truth=1.0)).new < 0.1


def test_random_rankings_leave_nothing_to_correct() -> None:
    log = _log(share_of_truth=0.0)
    random = np.random.default_rng(1)
    judged = letor_like(train_queries=200, validation_queries=1, test_queries=1, features=16).train
    shuffled = simulate(
        judged, click_model("position-based"), scores=random.normal(size=judged.documents), impressions=200_000
    )
    assert correction(shuffled).new < 0.1 < correction(log).new


def test_clicks_that_say_nothing_are_not_reliable() -> None:
    log = _log(share_of_truth=0.0)
    random = np.random.default_rng(2)
    rate = np.array([0.5, 0.3, 0.2, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05, 0.05])[log.position.values]
    impressions = np.repeat(log.impressions, log.lengths)
    found = correction(replace(log, clicks=random.binomial(impressions, rate)))
    assert found.new < 0.15


def test_the_unit_of_a_feature_and_a_constant_one_change_nothing() -> None:
    log = _log(share_of_truth=0.0, queries=50)
    features = np.array(log.features) * np.float32(1_000) + np.float32(7)
    found, other = correction(log), correction(replace(log, features=features))
    assert other.new == pytest.approx(found.new, abs=1e-3)


def test_large_logs_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    log = _log(share_of_truth=0.0)
    whole = correction(log)
    monkeypatch.setattr("ultr.bias.linear_inputs.MOST_VALUES", 100 * 10 * 16)
    part = correction(log)
    assert part.clicks < whole.clicks
    assert part.new == pytest.approx(whole.new, abs=0.3)


def test_what_cannot_be_halved_is_refused() -> None:
    log = _log(share_of_truth=0.0, queries=4)
    with pytest.raises(DataError, match="3 queries cannot be halved"):
        correction(log.select(log.queries < np.unique(log.queries)[3]))
    with pytest.raises(DataError, match="no features"):
        correction(replace(log, features=log.features[:, :0], feature_names=()))


def test_by_one_feature_linear_rankers_do_not_tell() -> None:
    log = _log(share_of_truth=0.0, queries=50)
    with pytest.raises(DataError, match="by one feature a linear ranker orders documents in one way"):
        correction(replace(log, features=log.features[:, :1], feature_names=log.feature_names[:1]))

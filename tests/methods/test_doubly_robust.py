from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.methods.exact_logs import agreement, exact_log, placed
from tests.relevance.documents import blank_documents, inputs_of

from ultr.arrays import Doubles
from ultr.data.click_log import ClickLog
from ultr.errors import OptionError
from ultr.methods import DoublyRobust
from ultr.methods.doubly_robust import RobustObjective, corrected_estimate, mean_exposure
from ultr.relevance import MLP
from ultr.train.lists import Batch, TrainingLists

G = np.random.default_rng(1).permutation(np.linspace(0.05, 0.95, 20))
ALPHA, BETA = np.array([0.7, 0.5, 0.4, 0.3, 0.2, 0.1]), np.array([0.25, 0.15, 0.1, 0.05, 0.02, 0.01])
SHOWN = placed(G, shown=6, lists=200, temperature=1.0)


def _estimates(mu: Doubles, alpha: Doubles, beta: Doubles) -> Doubles:
    """The mean estimate of each document over its impressions, from clicks by ALPHA and BETA."""
    log = exact_log(SHOWN, ALPHA * G[SHOWN] + BETA)
    exposure = mean_exposure(TrainingLists.of_log(log, inputs_of(log.features)), alpha)
    clicks, of_document, places = (ALPHA * G[SHOWN] + BETA).ravel(), SHOWN.ravel(), np.tile(np.arange(6), len(SHOWN))
    arguments = mu[of_document], clicks, alpha[places], beta[places], exposure[of_document]
    estimates = corrected_estimate(*(torch.from_numpy(each) for each in arguments)).numpy()
    means: Doubles = np.bincount(of_document, estimates) / np.bincount(of_document)
    return means


def test_the_estimate_is_right_where_the_bias_is_whatever_the_regression() -> None:
    wrong = np.random.default_rng(2).uniform(size=20)
    np.testing.assert_allclose(_estimates(wrong, ALPHA, BETA), G, atol=1e-9)


def test_the_estimate_is_right_where_the_regression_is_whatever_the_exposure() -> None:
    log = exact_log(SHOWN, ALPHA * G[SHOWN] + BETA)
    exposure = mean_exposure(TrainingLists.of_log(log, inputs_of(log.features)), ALPHA)
    flat = torch.full((1200,), 0.3, dtype=torch.float64)
    places, clicks = np.tile(np.arange(6), len(SHOWN)), (ALPHA * G[SHOWN] + BETA).ravel()
    mu, *others = (torch.from_numpy(each) for each in (G[SHOWN].ravel(), clicks, ALPHA[places], BETA[places]))
    found = corrected_estimate(mu, others[0], others[1], others[2], flat)
    np.testing.assert_allclose(found.numpy(), G[SHOWN].ravel(), atol=1e-9)
    # What a document is exposed to is the mean of its places.
    own = ALPHA[places][SHOWN.ravel() == 3]
    assert exposure[3] == pytest.approx(own.mean())


def test_wrong_bias_and_wrong_regression_are_wrong() -> None:
    wrong = np.random.default_rng(2).uniform(size=20)
    assert np.abs(_estimates(wrong, np.full(6, 0.4), BETA) - G).max() > 0.1


def test_the_loss_is_that_of_the_estimates() -> None:
    objective = RobustObjective(3).double()
    objective.relevant_rates.copy_(torch.tensor([0.9, 0.5, 0.3]))
    objective.other_rates.copy_(torch.tensor([0.4, 0.1, 0.25]))
    batch = Batch(
        documents=blank_documents(5),
        factors=torch.tensor([[0], [1], [2], [0], [1]]),
        clicks=torch.tensor([[0.9, 0.2, 0.1], [0.5, 0.4, 0.0]], dtype=torch.float64),
        mask=torch.tensor([[True, True, True], [True, True, False]]),
    )
    r = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    f, mu = r.detach().numpy()[:, 0], 1 / (1 + np.exp(-r.detach().numpy()[:, 1]))
    clicks, alpha = np.array([0.9, 0.2, 0.1, 0.5, 0.4]), np.array([0.5, 0.4, 0.05, 0.5, 0.4])
    beta = np.array([0.4, 0.1, 0.25, 0.4, 0.1])
    for given, exposure in (
        (None, np.array([0.5, 0.4, 0.2, 0.5, 0.4])),
        (torch.tensor([0.3, 0.1, 0.6, 0.2, 0.3]), np.array([0.3, 0.2, 0.6, 0.2, 0.3])),
    ):
        estimates = mu + (clicks - beta - alpha * mu) / exposure
        expected = [
            -(estimates[part] * (f[part] - np.log(np.exp(f[part]).sum()))).sum() for part in (slice(3), slice(3, 5))
        ]
        loss = objective.robust_loss(r, batch, 0.2, given)
        np.testing.assert_allclose(loss.detach().numpy(), expected, rtol=1e-5)
    # The judge is no part of what is learned here.
    assert torch.autograd.grad(loss.sum(), r)[0][:, 1].abs().max() == 0


def _fitted(log: ClickLog, *, steps: int = 300, **options: Any) -> DoublyRobust:
    relevance = MLP(hidden=(16,), recipe="collapsed", steps=steps, learning_rate=0.03, batch_size=200)
    return DoublyRobust(relevance=relevance, **options).fit(log)


def test_with_given_propensities_it_finds_the_relevance_of_position_based_clicks() -> None:
    log = exact_log(SHOWN, ALPHA * G[SHOWN])
    ranker = _fitted(log, propensities=tuple(ALPHA.tolist()))
    assert agreement(ranker, G) > 0.95
    # Scores are logarithms of relevance, up to a constant.
    found = np.exp(ranker.score(np.eye(20, dtype=np.float32)).astype(np.float64))
    np.testing.assert_allclose(found / found.sum(), G / G.sum(), atol=0.012)
    np.testing.assert_allclose(ranker.correction()[0], ALPHA / 0.7, rtol=1e-6)
    np.testing.assert_allclose(ranker.click_probabilities(log), (ALPHA * G[SHOWN]).ravel(), atol=0.03)


def test_swaps_tell_the_propensities() -> None:
    ranker = _fitted(exact_log(SHOWN, ALPHA * G[SHOWN]), estimator="all-pairs", steps=3)
    np.testing.assert_allclose(ranker.correction()[0], ALPHA / 0.7, atol=1e-4)
    assert ranker.correction()[1].tolist() == [0] * 6


def test_by_em_it_finds_the_order_of_trust_bias_clicks() -> None:
    ranker = _fitted(exact_log(SHOWN, ALPHA * G[SHOWN] + BETA))
    assert agreement(ranker, G) > 0.95
    assert (ranker.correction()[1] > 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": "guess"}, "estimator must be one of em, pivot"),
        ({"propensities": (1.0, 0.0)}, "each of the propensities must be a number above 0"),
        ({"propensities": np.array([1.0, 0.5])}, "must be a tuple of numbers, one for each position, got array"),
        ({"propensities": 0.5}, "must be a tuple of numbers, one for each position, got 0.5"),
        ({"smallest": 0.0}, "smallest must be a share"),
        ({"em_rate": 2.0}, "em_rate must be a share"),
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        DoublyRobust(**options).check()


def test_too_few_propensities_are_refused(small_log: ClickLog) -> None:
    with pytest.raises(OptionError, match="the log shows 10 positions, but 2 propensities are given"):
        DoublyRobust(propensities=(1.0, 0.5), relevance=MLP(hidden=(8,), steps=5)).fit(small_log)

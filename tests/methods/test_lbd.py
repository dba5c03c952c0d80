from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.methods.exact_logs import agreement, exact_log, placed
from tests.relevance.documents import inputs_of
from torch import Tensor

from ultr.arrays import Doubles
from ultr.data.click_log import ClickLog
from ultr.errors import OptionError
from ultr.methods import LBD, TwoTower
from ultr.methods.estimator import Estimator
from ultr.methods.factors import Factor
from ultr.methods.lbd import DecoupledObjective
from ultr.relevance import MLP, Documents, Trees
from ultr.train.lists import Batch

DOCUMENTS, SHOWN = 80, 6
X = np.random.default_rng(3).uniform(-1, 1, (DOCUMENTS, 3))
F = 1.5 * X[:, 0] - X[:, 1]


def _log() -> ClickLog:
    """Exact clicks by f(x) + o(x, t): who has much of the third feature is seen at the top, and stands there."""
    shown = placed(1 / (1 + np.exp(-2 * X[:, 2])), shown=SHOWN, lists=300, temperature=1.0)
    observed = np.linspace(0.0, -1.5, SHOWN) + np.linspace(1.5, -1.5, SHOWN) * X[shown, 2]
    rates = np.exp(F[shown] + observed)
    return exact_log(shown, rates / rates.sum(axis=1, keepdims=True), X)


def _slopes(ranker: Estimator) -> Doubles:
    """The linear part of the scores in each feature."""
    scores = ranker.score(X.astype(np.float32)).astype(np.float64)
    return np.linalg.lstsq(np.column_stack([X, np.ones(DOCUMENTS)]), scores, rcond=None)[0][:3].astype(np.float64)


def test_it_tells_relevance_from_observation_that_depends_on_the_document() -> None:
    log, relevance = _log(), MLP(hidden=(32,), recipe="collapsed", steps=500, learning_rate=0.01, batch_size=128)
    ranker = LBD(penalty=0.004, relevance=relevance).fit(log)
    np.testing.assert_allclose(_slopes(ranker), [1.5, -1.0, 0.0], atol=0.12)
    assert agreement(ranker, F, X) > 0.9
    impressions = np.repeat(log.impressions, log.lengths)
    assert np.abs(ranker.click_shares(log) - log.clicks / impressions).mean() < 0.01
    # What has to be explained without observation takes it in.
    assert _slopes(LBD(penalty=0.004, dropout=0.1, relevance=relevance).fit(log))[2] > 0.25
    # One curve for all documents takes being seen for relevance.
    assert _slopes(TwoTower(link="softmax", relevance=relevance).fit(log))[2] > 0.25


@pytest.fixture
def batch() -> Batch:
    features = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    return Batch(
        documents=Documents(inputs_of(features), torch.arange(5)),
        factors=torch.tensor([[0], [1], [2], [0], [1]]),
        clicks=torch.tensor([[0.9, 0.2, 0.1], [0.5, 0.4, 0.0]]),
        mask=torch.tensor([[True, True, True], [True, True, False]]),
    )


VECTORS = torch.tensor([[0.3, -0.2, 0.5], [-0.4, 0.1, -0.3], [-1.0, 0.7, 0.2]])
"""v(t) and b(t) of three positions."""
WEIGHTS = torch.randn(3, 3, generator=torch.Generator().manual_seed(1))
"""A linear network for f and the two of u."""


@pytest.fixture
def objective() -> DecoupledObjective:
    built = DecoupledObjective([Factor("position", ("1", "2", "3"), 0)], 2, dropout=0.3)
    with torch.no_grad():
        built.observation.tables[0].copy_(VECTORS)
    return built


def _outputs(batch: Batch) -> Tensor:
    return batch.documents.preprocessed.requires_grad_() @ WEIGHTS


def test_the_loss_is_that_of_the_clicks_and_of_the_steepness_of_observation(
    objective: DecoupledObjective, batch: Batch
) -> None:
    r = _outputs(batch)
    f, u = r.detach().numpy()[:, 0], r.detach().numpy()[:, 1:]
    v, b = VECTORS.numpy()[[0, 1, 2, 0, 1], :2], VECTORS.numpy()[[0, 1, 2, 0, 1], 2]
    logits, clicks = f + (v * u).sum(axis=1) + b, np.array([0.9, 0.2, 0.1, 0.5, 0.4])
    steep = ((v @ WEIGHTS.numpy()[:, 1:].T) ** 2).sum(axis=1)
    expected = []
    for part in (slice(3), slice(3, 5)):
        shares = np.exp(logits[part]) / np.exp(logits[part]).sum()
        expected.append(-(clicks[part] * np.log(shares)).sum() + 0.7 * steep[part].mean())
    np.testing.assert_allclose(objective.loss(r, batch, 0.7).detach().numpy(), expected, rtol=1e-5)


def test_the_penalty_flattens_observation_and_leaves_relevance_alone(
    objective: DecoupledObjective, batch: Batch
) -> None:
    weights = WEIGHTS.clone().requires_grad_()
    r = batch.documents.preprocessed.requires_grad_() @ weights
    (slope,) = torch.autograd.grad(objective.steepness(r, batch).sum(), weights)
    assert slope[:, 0].abs().max() == 0
    assert slope[:, 1:].abs().max() > 0.01


def test_observation_is_dropped_where_the_noise_is_low(objective: DecoupledObjective, batch: Batch) -> None:
    r = _outputs(batch)
    dropped = Batch(**{**vars(batch), "noise": torch.tensor([[0.9], [0.1], [0.5], [0.3], [0.0]])})
    kept = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0]) / 0.7
    expected = r[:, 0] + kept * objective.observed(r, batch)
    torch.testing.assert_close(objective.click_logits(r, dropped)[batch.mask], expected)


def test_it_ranks_by_the_first_output_alone(objective: DecoupledObjective, batch: Batch) -> None:
    r = _outputs(batch).detach()
    assert objective.score(r, batch.mask).equal(r[:, 0])
    assert (r @ objective.direction(r, batch.mask)).equal(r[:, 0])
    assert objective.neutral_logits(r, batch)[batch.mask].equal(r[:, 0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        ({"penalty": -0.1}, "penalty must be a number of at least 0"),
        ({"dimension": 0}, "dimension must be an integer of at least 1"),
        ({"relevance": Trees()}, r"the relevance model of LBD is always MLP\(...\), got Trees"),
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        LBD(**options).check()

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from tests.relevance.documents import blank_documents
from torch import Tensor

from ultr.arrays import Doubles
from ultr.data.click_log import ClickLog
from ultr.errors import SeenDataWarning
from ultr.evaluation import click_fit
from ultr.methods import RegressionEM
from ultr.methods.ranker import Ranker
from ultr.methods.regression_em import RegressionObjective
from ultr.relevance import MLP, Trees
from ultr.relevance.mlp import Network
from ultr.train.lists import Batch


def _posterior(theta: float, g: float, click: int) -> tuple[float, float]:
    """P(examined | click) and P(relevant | click), by counting over all four cases."""
    total = examined = relevant = 0.0
    for e, r in product((0, 1), (0, 1)):
        if e * r != click:
            continue
        chance = (theta if e else 1 - theta) * (g if r else 1 - g)
        total += chance
        examined += chance * e
        relevant += chance * r
    return examined / total, relevant / total


@pytest.fixture
def objective() -> RegressionObjective:
    built = RegressionObjective(3, 0.5).double()
    built.theta.copy_(torch.tensor([0.9, 0.5, 0.2]))
    return built


@pytest.fixture
def batch() -> Batch:
    return Batch(
        documents=blank_documents(5),
        factors=torch.tensor([[0], [1], [2], [0], [1]]),
        clicks=torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=torch.float64),
        mask=torch.tensor([[True, True, True], [True, True, False]]),
    )


@pytest.fixture
def r() -> Tensor:
    return torch.randn(5, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _relevances(r: Tensor) -> Doubles:
    values: Doubles = r.squeeze(-1).sigmoid().numpy()
    return values


def _set(ranker: Ranker[RegressionObjective], logit: float, theta: list[float]) -> None:
    """Let every document have this logit of relevance, and the positions these propensities."""
    network = ranker.model.by_name["relevance"]
    assert isinstance(network, Network)
    network.reset_outputs()
    network.layers.last.bias.fill_(logit)
    ranker.objective.theta.copy_(torch.tensor(theta))


def test_relevance_is_regressed_on_its_probability_given_the_click(
    objective: RegressionObjective, r: Tensor, batch: Batch
) -> None:
    g = _relevances(r)
    theta, clicks = [0.9, 0.5, 0.2, 0.9, 0.5], [1, 0, 0, 0, 1]
    targets = np.array([_posterior(t, r, c)[1] for t, r, c in zip(theta, g, clicks, strict=True)])
    losses = -(targets * np.log(g) + (1 - targets) * np.log(1 - g))
    expected = [losses[:3].sum(), losses[3:].sum()]
    np.testing.assert_allclose(objective.expect(r, batch)[0].numpy(), expected, rtol=1e-6)


def test_propensities_move_to_the_mean_probability_of_examination(
    objective: RegressionObjective, r: Tensor, batch: Batch
) -> None:
    g = _relevances(r)
    theta, clicks = [0.9, 0.5, 0.2, 0.9, 0.5], [1, 0, 0, 0, 1]
    examined = [_posterior(t, r, c)[0] for t, r, c in zip(theta, g, clicks, strict=True)]
    means = np.array([(examined[0] + examined[3]) / 2, (examined[1] + examined[4]) / 2, examined[2]])
    with torch.no_grad():
        objective.maximise(objective.expect(r, batch)[1], 0.25)
    np.testing.assert_allclose(objective.theta.numpy(), 0.75 * np.array([0.9, 0.5, 0.2]) + 0.25 * means, rtol=1e-5)


def test_held_out_clicks_are_judged_by_the_likelihood_of_clicks_and_skips(
    objective: RegressionObjective, r: Tensor, batch: Batch
) -> None:
    chance = np.array([0.9, 0.5, 0.2, 0.9, 0.5]) * _relevances(r)
    clicks = np.array([1, 0, 0, 0, 1])
    losses = -(clicks * np.log(chance) + (1 - clicks) * np.log(1 - chance))
    expected = [losses[:3].sum(), losses[3:].sum()]
    np.testing.assert_allclose(objective.click_loss(r, batch).numpy(), expected, rtol=1e-4)


def test_its_click_probability_is_propensity_times_relevance(small_log: ClickLog) -> None:
    ranker = RegressionEM(relevance=MLP(hidden=(8,), steps=3)).fit(small_log)
    # g(x) = sigmoid(-1) for every document, whatever its features.
    _set(ranker.ranker_, -1.0, [0.8, 0.4, *[0.2] * 8])
    chances = ranker.click_probabilities(small_log)
    g = 1 / (1 + np.e)
    for position, theta in ((1, 0.8), (2, 0.4), (3, 0.2), (10, 0.2)):
        np.testing.assert_allclose(chances[small_log.positions == position], theta * g, rtol=1e-6)
    relevance = ranker.attractiveness(small_log.features)[small_log.documents]
    np.testing.assert_allclose(chances, ranker.propensities()[small_log.positions - 1] * relevance, rtol=1e-6)
    # Ten documents: 0.8 + 0.4 + 8 * 0.2 = 2.8 propensities share out the clicks.
    np.testing.assert_allclose(ranker.click_shares(small_log)[:3], [0.8 / 2.8, 0.4 / 2.8, 0.2 / 2.8], rtol=1e-6)


def test_the_likelihood_of_its_clicks_and_skips_by_hand(small_log: ClickLog) -> None:
    ranker = RegressionEM(relevance=MLP(hidden=(8,), steps=3)).fit(small_log)
    _set(ranker.ranker_, 0.0, [1.0, 0.5, *[0.1] * 8])
    one = small_log.select(np.array([0]))
    one = replace(one, impressions=np.array([4]), clicks=np.array([2, 1, *[0] * 8]))
    # Click probabilities 1/2, 1/4 and eight times 1/20; four impressions with two clicks and one click.
    expected = 4 * np.log(0.5) + np.log(0.25) + 3 * np.log(0.75) + 32 * np.log(0.95)
    with pytest.warns(SeenDataWarning):
        fit = click_fit(ranker, one)
    assert fit.log_likelihood == pytest.approx(expected / 40)
    assert fit.list_log_likelihood == pytest.approx((2 * np.log(1 / 2.3) + np.log(0.5 / 2.3)) / 3)


@pytest.mark.parametrize("relevance", [MLP(hidden=(16,), steps=600), Trees(rounds=60)])
def test_propensities_below_the_end_of_short_pages_are_those_of_the_long_ones(relevance: MLP | Trees) -> None:
    random = np.random.default_rng(0)
    sizes = np.where(np.arange(3_000) % 4 == 0, 6, 3)
    position = np.concatenate([np.arange(1, size + 1) for size in sizes])
    features = random.random((len(position), 2))
    clicks = random.random(len(position)) < position**-0.5 * (0.1 + 0.8 * features[:, 0])
    found = RegressionEM(relevance=relevance).fit(features, clicks.astype(np.int64), group=sizes)
    assert found.propensities() == pytest.approx(np.arange(1, 7) ** -0.5, abs=0.05)

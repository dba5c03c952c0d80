from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.relevance.documents import blank_documents
from torch import Tensor

from ultr.data.click_log import ClickLog
from ultr.errors import SeenDataWarning
from ultr.evaluation import click_fit
from ultr.methods import Affine
from ultr.methods.affine import AffineObjective
from ultr.relevance import MLP
from ultr.relevance.mlp import Network
from ultr.train.lists import Batch

RELEVANT, OTHER = np.array([0.9, 0.5, 0.3]), np.array([0.4, 0.1, 0.05])
POSITIONS, CLICKS = np.array([0, 1, 2, 0, 1]), np.array([1, 0, 0, 0, 1])


@pytest.fixture
def objective() -> AffineObjective:
    built = AffineObjective(3).double()
    built.relevant_rates.copy_(torch.from_numpy(RELEVANT))
    built.other_rates.copy_(torch.from_numpy(OTHER))
    return built


@pytest.fixture
def batch() -> Batch:
    return Batch(
        documents=blank_documents(5),
        factors=torch.from_numpy(POSITIONS)[:, None],
        clicks=torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=torch.float64),
        mask=torch.tensor([[True, True, True], [True, True, False]]),
    )


@pytest.fixture
def r() -> Tensor:
    """The outputs of judge or ranker."""
    return torch.randn(5, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _posteriors(r: Tensor) -> tuple[Any, Any]:
    """g(x), and P(relevant | click or skip) by Bayes' rule."""
    g = r.squeeze(-1).sigmoid().numpy()
    likelihoods = [np.where(CLICKS == 1, rates[POSITIONS], 1 - rates[POSITIONS]) for rates in (RELEVANT, OTHER)]
    return g, g * likelihoods[0] / (g * likelihoods[0] + (1 - g) * likelihoods[1])


def test_the_judge_is_regressed_on_the_probability_of_relevance_given_the_click(
    objective: AffineObjective, r: Tensor, batch: Batch
) -> None:
    g, targets = _posteriors(r)
    losses = -(targets * np.log(g) + (1 - targets) * np.log(1 - g))
    expected = [losses[:3].sum(), losses[3:].sum()]
    np.testing.assert_allclose(objective.expect(r, batch)[0].numpy(), expected, rtol=1e-6)


def test_click_rates_move_to_those_of_probably_relevant_and_other_documents(
    objective: AffineObjective, r: Tensor, batch: Batch
) -> None:
    _, posterior = _posteriors(r)
    with torch.no_grad():
        objective.maximise(objective.expect(r, batch)[1], 0.25)
    for rates, before, weights in (
        (objective.relevant_rates, RELEVANT, posterior),
        (objective.other_rates, OTHER, 1 - posterior),
    ):
        means = np.bincount(POSITIONS, weights * CLICKS) / np.bincount(POSITIONS, weights)
        np.testing.assert_allclose(rates.numpy(), 0.75 * before + 0.25 * means, rtol=1e-5)


def test_the_ranker_learns_from_corrected_clicks(objective: AffineObjective, r: Tensor, batch: Batch) -> None:
    f = r.squeeze(-1).numpy()
    corrected = (CLICKS - OTHER[POSITIONS]) / (RELEVANT - OTHER)[POSITIONS]
    expected = [
        -(corrected[part] * (f[part] - np.log(np.exp(f[part]).sum()))).sum() for part in (slice(0, 3), slice(3, 5))
    ]
    np.testing.assert_allclose(objective.corrected_loss(r, batch, 0.01).numpy(), expected, rtol=1e-6)


def test_positions_with_an_alpha_below_the_smallest_are_left_out(
    objective: AffineObjective, r: Tensor, batch: Batch
) -> None:
    f = r.squeeze(-1).numpy()[:2]
    corrected = ((CLICKS - OTHER[POSITIONS]) / (RELEVANT - OTHER)[POSITIONS])[:2]
    without_third = objective.corrected_loss(r, batch, 0.3).numpy()
    assert without_third[0] == pytest.approx(-(corrected * (f - np.log(np.exp(f).sum()))).sum())
    assert objective.corrected_loss(r, batch, 0.6).tolist() == [0.0, 0.0]


def test_relevant_documents_are_never_thought_to_be_clicked_less(
    objective: AffineObjective, r: Tensor, batch: Batch
) -> None:
    reversed_ = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64), torch.tensor([0.6, 0.1, 0.05], dtype=torch.float64)
    objective.relevant_rates.copy_(reversed_[0])
    objective.other_rates.copy_(reversed_[1])
    with torch.no_grad():
        objective.maximise(objective.expect(r, batch)[1], 0.01)
    assert objective.relevant_rates[0] == objective.other_rates[0]
    assert 0.2 < float(objective.other_rates[0]) < 0.6
    assert (objective.relevant_rates[1:] > objective.other_rates[1:]).all()


def test_the_rates_start_at_those_of_their_position(objective: AffineObjective) -> None:
    objective.start_rates(torch.tensor([0.9, 0.1, 0.0], dtype=torch.float64))
    np.testing.assert_allclose(objective.relevant_rates.numpy(), [0.95, 0.2, 0.0])
    np.testing.assert_allclose(objective.other_rates.numpy(), [0.72, 0.08, 0.0])


def test_its_click_probability_is_the_mean_rate_of_relevant_and_other_documents(small_log: ClickLog) -> None:
    ranker = Affine(relevance=MLP(hidden=(8,), steps=3)).fit(small_log).ranker_
    # The judge finds a document relevant with chance 1/4; what the ranker thinks of it does not matter.
    judge = ranker.model.by_name["judge"]
    assert isinstance(judge, Network)
    judge.reset_outputs()
    judge.layers.last.bias.fill_(-np.log(3))
    ranker.objective.relevant_rates.copy_(torch.tensor([0.9, 0.5, *[0.2] * 8]))
    ranker.objective.other_rates.copy_(torch.tensor([0.5, 0.1, *[0.0] * 8]))
    chances = ranker.click_probabilities(small_log)
    # 0.9 / 4 + 0.5 * 3 / 4 and so on; an impression has 0.6 + 0.2 + 8 * 0.05 = 1.2 clicks.
    for position, chance in ((1, 0.6), (2, 0.2), (3, 0.05), (10, 0.05)):
        np.testing.assert_allclose(chances[small_log.positions == position], chance, rtol=1e-4)
    np.testing.assert_allclose(ranker.click_shares(small_log)[:3], [0.5, 1 / 6, 1 / 24], rtol=1e-4)
    one = small_log.select(np.array([0]))
    one = replace(one, impressions=np.array([5]), clicks=np.array([3, 1, *[0] * 8]))
    expected = 3 * np.log(0.6) + 2 * np.log(0.4) + np.log(0.2) + 4 * np.log(0.8) + 40 * np.log(0.95)
    with pytest.warns(SeenDataWarning):
        fit = click_fit(ranker, one)
    assert fit.log_likelihood == pytest.approx(expected / 50, rel=1e-4)

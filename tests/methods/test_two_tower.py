from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.methods.exact_logs import exact_log, placed
from tests.relevance.documents import blank_documents
from torch import Tensor

from ultr.arrays import Doubles
from ultr.data.bias_factor import BiasFactor
from ultr.data.click_log import ClickLog
from ultr.errors import OptionError
from ultr.methods import TwoTower
from ultr.methods.factors import Factor
from ultr.methods.observation import drop
from ultr.methods.two_tower import TowersObjective, reverse
from ultr.metrics import kendall_tau
from ultr.relevance import MLP
from ultr.train.lists import Batch

DOCUMENTS, SHOWN, LISTS, IMPRESSIONS = 20, 6, 200, 1_000_000
RELEVANCE = np.random.default_rng(1).permutation(np.linspace(-2.0, 1.0, DOCUMENTS))
EFFECTS = np.array([0.0, -0.4, -0.9, -1.1, -1.6, -2.5])
DEVICES = np.array([0.0, 0.7])


def _rates(logits: Doubles, link: str) -> Doubles:
    if link == "sigmoid":
        return 1 / (1 + np.exp(-logits))
    rates: Doubles = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return rates


def _log(link: str) -> ClickLog:
    """The expected clicks of f(x) + h(position) + h(device) on documents that the network can know one by one."""
    random = np.random.default_rng(0)
    shown = np.stack([random.permutation(DOCUMENTS)[:SHOWN] for _ in range(LISTS)])
    device = np.arange(LISTS) % 2
    # A device adds to all logits of a list, which a softmax does not see.
    logits = RELEVANCE[shown] + EFFECTS + DEVICES[device][:, None]
    log = ClickLog.of(
        features=np.eye(DOCUMENTS),
        documents=shown.ravel(),
        offsets=np.arange(LISTS + 1) * SHOWN,
        clicks=np.rint(IMPRESSIONS * _rates(logits, link)).astype(np.int64).ravel(),
        impressions=np.full(LISTS, IMPRESSIONS),
    )
    values = np.repeat(device, SHOWN).astype(np.int32)
    return replace(log, factors=(*log.factors, BiasFactor("device", values, ("phone", "desktop"))))


def _fitted(link: str, log: ClickLog) -> TwoTower:
    # One list holds every document at most once, so that each can be learned by heart.
    relevance = MLP(hidden=(32,), recipe="collapsed", steps=1_000, learning_rate=0.01)
    return TwoTower(relevance=relevance, link=link).fit(log)


def _order(ranker: TwoTower) -> float:
    """Kendall's tau of the scores with the true relevance."""
    scores = ranker.score(np.eye(DOCUMENTS, dtype=np.float32))
    return float(kendall_tau(RELEVANCE, scores, np.array([0, DOCUMENTS]))[0])


def test_with_the_sigmoid_it_recovers_position_device_and_relevance_from_its_own_clicks() -> None:
    log = _log("sigmoid")
    ranker = _fitted("sigmoid", log)
    effects = ranker.effects()
    np.testing.assert_allclose(effects["position"], EFFECTS, atol=0.05)
    np.testing.assert_allclose(effects["device"], DEVICES, atol=0.05)
    assert _order(ranker) > 0.95
    impressions = np.repeat(log.impressions, log.lengths)
    np.testing.assert_allclose(ranker.click_probabilities(log), log.clicks / impressions, atol=0.01)


@pytest.mark.filterwarnings("ignore:TwoTower leaves out")
def test_with_the_softmax_it_recovers_position_and_relevance_from_its_own_clicks() -> None:
    log = _log("softmax")
    ranker = _fitted("softmax", log)
    assert list(ranker.effects()) == ["position"]
    np.testing.assert_allclose(ranker.effects()["position"], EFFECTS, atol=0.05)
    assert _order(ranker) > 0.95
    np.testing.assert_allclose(ranker.click_shares(log), log.clicks / IMPRESSIONS, atol=0.01)


def test_dropping_keeps_the_mean_and_gives_nothing_or_the_enlarged_bias() -> None:
    noise = torch.rand(200_000, generator=torch.Generator().manual_seed(0))
    bias = torch.full_like(noise, -1.5)
    dropped = drop(bias, noise, 0.3)
    assert dropped.double().mean().item() == pytest.approx(-1.5, abs=0.01)
    np.testing.assert_allclose(np.unique(dropped.numpy()), [-1.5 / 0.7, 0.0], rtol=1e-6)
    assert (dropped == 0).double().mean().item() == pytest.approx(0.3, abs=0.005)
    assert drop(bias, noise, 0.0).equal(bias)


def _placed(temperature: float) -> ClickLog:
    """Expected clicks of examination times relevance, which no sum of logits is, placed by relevance and chance."""
    g = 0.05 + 0.9 * (RELEVANCE + 2) / 3
    shown = placed(g, shown=SHOWN, lists=150, temperature=temperature)
    return exact_log(shown, g[shown] * np.array([1.0, 0.8, 0.6, 0.45, 0.35, 0.25]))


def test_weights_bring_back_the_effects_of_random_placement_where_the_model_is_wrong() -> None:
    relevance = MLP(hidden=(16,), recipe="collapsed", steps=250, learning_rate=0.03, batch_size=150)

    def effects(temperature: float, largest_weight: float | None = None) -> Doubles:
        fitted = TwoTower(relevance=relevance, largest_weight=largest_weight).fit(_placed(temperature))
        return fitted.effects()["position"].astype(np.float64)

    at_random = effects(1e9)
    lost = np.abs(effects(1.0) - at_random).mean()
    assert lost > 0.08
    assert np.abs(effects(1.0, 100.0) - at_random).mean() < 0.6 * lost


def test_a_reversed_gradient_leaves_values_and_turns_the_slope() -> None:
    values = torch.tensor([0.5, -2.0], dtype=torch.float64, requires_grad=True)
    found = reverse(values, 0.3)
    assert found.tolist() == pytest.approx([0.5, -2.0])
    assert torch.autograd.grad(found.square().sum(), values)[0].tolist() == pytest.approx([-0.3 * 1.0, 0.3 * 4.0])


@pytest.mark.parametrize("link", ["sigmoid", "softmax"])
def test_the_adversary_predicts_clicks_from_the_bias_and_the_bias_moves_against_it(
    r: Tensor, batch: Batch, link: str
) -> None:
    plain, reversed_ = _objective(link), _objective(link, reversal=0.3)
    assert reversed_.adversary is not None
    weights = torch.tensor([1.7, -0.4], dtype=torch.float64)
    with torch.no_grad():
        reversed_.adversary.values.copy_(weights)
    logits = torch.from_numpy(1.7 * BIAS - 0.4)
    if link == "sigmoid":
        chances = logits.sigmoid()
        losses = -(batch.clicks[batch.mask] * chances.log() + (1 - batch.clicks[batch.mask]) * (1 - chances).log())
        alone = batch.pad(losses).sum(dim=-1)
    else:
        alone = torch.stack(
            [
                -(batch.clicks[row, : len(part)] * part.log_softmax(0)).sum()
                for row, part in enumerate(logits.split([3, 2]))
            ]
        )
    loss = plain.loss(r, batch)
    torch.testing.assert_close(reversed_.loss(r, batch), loss + alone)
    torch.testing.assert_close(reversed_.likelihood_loss(r, batch), loss)
    # Of the tower: the gradient of the likelihood less 0.3 times that of the adversary.
    table = reversed_.tower.tables[0].requires_grad_()

    def slope(objective: TowersObjective, scale: float) -> Tensor:
        objective.reversal = scale
        found: Tensor = torch.autograd.grad(objective.loss(r, batch).sum(), table)[0]
        return found

    at_zero, at_one, at_other = slope(reversed_, 0.0), slope(reversed_, -1.0), slope(reversed_, 0.3)
    torch.testing.assert_close(at_other, at_zero - 0.3 * (at_one - at_zero))
    assert (at_one - at_zero).abs().max() > 0.01


@pytest.fixture
def batch() -> Batch:
    return Batch(
        documents=blank_documents(5),
        factors=torch.tensor([[0, 1], [1, 1], [2, 1], [0, 0], [1, 0]]),
        clicks=torch.tensor([[0.9, 0.2, 0.1], [0.5, 0.4, 0.0]], dtype=torch.float64),
        mask=torch.tensor([[True, True, True], [True, True, False]]),
    )


def _objective(link: str, dropout: float = 0.0, reversal: float = 0.0) -> TowersObjective:
    factors = [Factor("position", ("1", "2", "3"), 0), Factor("device", ("phone", "desktop"), 1, by_page=True)]
    objective = TowersObjective(factors, link=link, dropout=dropout, reversal=reversal).double()
    with torch.no_grad():
        objective.tower.tables[0].copy_(torch.tensor([[0.3], [-0.4], [-1.0]]))
        objective.tower.tables[1].copy_(torch.tensor([[0.1], [0.6]]))
    return objective.requires_grad_(False)


BIAS = np.array([0.3 + 0.6, -0.4 + 0.6, -1.0 + 0.6, 0.3 + 0.1, -0.4 + 0.1])


@pytest.fixture
def r() -> Tensor:
    return torch.randn(5, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("noise", [None, [0.9, 0.1, 0.5, 0.3, 0.0]])
def test_the_loss_is_minus_the_likelihood_of_both_towers(r: Tensor, batch: Batch, noise: list[float] | None) -> None:
    kept = np.ones(5) if noise is None else (np.array(noise) >= 0.3) / 0.7
    drawn = None if noise is None else torch.tensor(noise, dtype=torch.float64)[:, None]
    logits = r.squeeze(-1).numpy() + kept * BIAS
    clicks = np.array([0.9, 0.2, 0.1, 0.5, 0.4])
    chances = 1 / (1 + np.exp(-logits))
    losses = -(clicks * np.log(chances) + (1 - clicks) * np.log(1 - chances))
    found = _objective("sigmoid", 0.3).loss(r, replace(batch, noise=drawn))
    np.testing.assert_allclose(found.numpy(), [losses[:3].sum(), losses[3:].sum()], rtol=1e-6)
    shares = [np.exp(logits[part]) / np.exp(logits[part]).sum() for part in (slice(0, 3), slice(3, 5))]
    expected = [-(clicks[:3] * np.log(shares[0])).sum(), -(clicks[3:] * np.log(shares[1])).sum()]
    found = _objective("softmax", 0.3).loss(r, replace(batch, noise=drawn))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
    weights = np.array([1.0, 0.2, 3.0, 0.0, 2.0])
    found = _objective("sigmoid", 0.3).loss(r, replace(batch, noise=drawn), torch.from_numpy(weights))
    np.testing.assert_allclose(found.numpy(), [(weights * losses)[:3].sum(), (weights * losses)[3:].sum()], rtol=1e-6)


def test_a_document_is_clicked_with_the_probability_of_both_towers(r: Tensor, batch: Batch) -> None:
    objective, logits = _objective("sigmoid"), r.squeeze(-1).numpy() + BIAS
    chances = objective.click_probabilities(r, batch, clicks_per_impression=9.0)
    np.testing.assert_allclose(chances[batch.mask].numpy(), 1 / (1 + np.exp(-logits)), rtol=1e-6)
    np.testing.assert_allclose(objective.click_logits(r, batch)[batch.mask].exp().numpy(), chances[batch.mask])
    # The bias is no part of the score.
    assert objective.score(r, batch.mask).equal(r.squeeze(-1))


def test_effects_are_relative_to_the_first_level() -> None:
    effects = _objective("sigmoid").effects()
    np.testing.assert_allclose(effects["position"], [0.0, -0.7, -1.3], atol=1e-6)
    np.testing.assert_allclose(effects["device"], [0.0, 0.5], atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        ({"dropout": -0.1}, "dropout"),
        ({"dropout": float("nan")}, "dropout"),
        ({"link": "logit"}, "link must be one of sigmoid, softmax"),
        ({"reversal": -1.0}, "reversal must be a number of at least 0, got -1.0"),
        ({"largest_weight": 0.5}, "largest_weight must be at least 1, got 0.5"),
        ({"largest_weight": 9.0, "link": "softmax"}, "largest_weight needs link='sigmoid'"),
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        TwoTower(**options).check()


def test_unfitted_it_has_no_effects() -> None:
    with pytest.raises(OptionError, match="not fitted yet"):
        TwoTower().effects()

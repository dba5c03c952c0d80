"""Weights of clicks by position, and the targets that a forest learns with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.relevance.documents import inputs_of

from ultr.bias.below_clicks import FEWEST_LEFT
from ultr.bias.position_weights import click_weights
from ultr.bias.stopping import Stopping
from ultr.clicks.examination_chain import Cascade
from ultr.clicks.registry import click_model
from ultr.data.click_log import ClickLog
from ultr.datasets.letor_like import letor_like
from ultr.errors import OptionError
from ultr.losses import lambdarank_loss, softmax_cross_entropy
from ultr.methods import Auto, Vectorization, load
from ultr.methods.click_weights import ClickWeights, stopping_in
from ultr.methods.factors import factors_of
from ultr.methods.vector_offset import OffsetObjective
from ultr.relevance import MLP
from ultr.simulation.log import simulate
from ultr.testing.methods import small_log
from ultr.train.lists import Batch, TrainingLists

SHOWN, CLICKED = np.array([200.0, 100.0, 50.0, 10.0]), np.array([100.0, 20.0, 2.0, 0.0])


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_weights_are_powers_of_the_click_rate_and_keep_the_weight_of_all_clicks(power: float) -> None:
    weights = click_weights(SHOWN, CLICKED, power)
    assert weights @ CLICKED == pytest.approx(CLICKED.sum())
    rates = CLICKED[:3] / SHOWN[:3]
    np.testing.assert_allclose(weights[:3] / weights[0], (rates / rates[0]) ** -power)
    assert np.isfinite(weights).all(), "a position without a click has no rate to divide by"


def _one_query(clicks: np.ndarray, impressions: np.ndarray) -> ClickLog:
    """Two documents in both orders, with these clicks."""
    return ClickLog.of(
        features=np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32),
        documents=np.array([0, 1, 1, 0]),
        offsets=np.array([0, 2, 4]),
        queries=np.array([0, 0]),
        clicks=clicks,
        impressions=impressions,
    )


def test_a_ranker_of_weighted_clicks_still_predicts_the_clicks_as_they_are() -> None:
    """Vectors fit two lists of two documents exactly, so that the predicted shares are those of the log."""
    clicks = np.array([600, 100, 300, 200])
    log = _one_query(clicks, np.array([1_000, 1_000]))
    relevance = MLP(hidden=(8,), recipe="collapsed", steps=600, batch_size=2)
    fitted = Vectorization(dimension=2, weight_power=1.0, relevance=relevance, base_steps=1).fit(log)
    np.testing.assert_allclose(fitted.click_shares(log), clicks / np.repeat([700, 500], 2), atol=0.01)
    objective = fitted.ranker_.objective
    expected = click_weights(np.array([2_000.0, 2_000.0]), np.array([900.0, 300.0]), 1.0)
    np.testing.assert_allclose(objective.click_weights.weights.numpy(), expected, rtol=1e-6)


def test_weights_are_saved_and_a_model_without_them_has_none(tmp_path: object) -> None:
    log = small_log()
    short = Vectorization(relevance=MLP(hidden=(4,), steps=3), base_hidden=(4,), base_steps=1)
    for power in (0.0, 0.5):
        fitted = replace(short, weight_power=power).fit(log)
        fitted.save(f"{tmp_path}/{power}")
        again = load(f"{tmp_path}/{power}")
        np.testing.assert_array_equal(again.click_shares(log), fitted.click_shares(log))
        assert any("click_weights" in name for name in again.model.state_dict()) == (power > 0)


def _offset_batch() -> tuple[OffsetObjective, Batch, torch.Tensor]:
    log = small_log()
    objective = OffsetObjective(factors_of(log), 2, combine="product", weight_power=0.5)
    lists = TrainingLists.of_log(log, inputs_of(log.features))
    objective.click_weights.set(lists)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        objective.observation.tables[0].uniform_(0.5, 1.5, generator=generator)
        objective.centre.fill_(0.9)
    batch = lists.batch(np.arange(7))
    return objective, batch, torch.randn(len(batch.factors), 3, generator=generator)


def test_soft_targets_go_from_the_clicks_to_what_the_network_predicts() -> None:
    objective, batch, r = _offset_batch()
    hard = objective.click_loss(r, batch)
    assert objective.soft_targets == 0
    torch.testing.assert_close(objective.soft_loss(r, batch), hard)
    predicted = objective.vector_logits(r[:, 1:], batch).masked_fill(~batch.mask, float("-inf")).softmax(dim=-1)
    total = objective.click_weights.weighted(batch).sum(dim=-1, keepdim=True)
    soft = softmax_cross_entropy(objective.logits(r, batch), total * predicted, mask=batch.mask)
    for share in (1.0, 0.25):
        objective.soft_targets = share
        torch.testing.assert_close(objective.soft_loss(r, batch), (1 - share) * hard + share * soft)


def test_a_forest_that_is_the_network_has_the_least_loss_on_its_predictions() -> None:
    """f(x) = v(x) . b makes f + v . (o - b) = v . o."""
    objective, batch, r = _offset_batch()
    objective.soft_targets = 1.0
    same = torch.cat([r[:, 1:] @ objective.centre[:, None], r[:, 1:]], dim=1)
    least = objective.soft_loss(same, batch)
    assert (objective.soft_loss(r, batch) > least).all()


def test_gains_are_clicks_as_under_the_mean_observation() -> None:
    """A click that was made exp(offset) times as likely by its position counts exp(-offset)."""
    objective, batch, r = _offset_batch()
    offset = objective.offset(r, batch)
    gains = objective.click_weights.weighted(batch) * (-offset).exp()
    expected = lambdarank_loss(batch.pad(r[:, 0]), gains, mask=batch.mask)
    torch.testing.assert_close(objective.lambdarank_loss(r, batch), expected)
    steep = torch.cat([r[:, :1], 50 * r[:, 1:]], dim=1)
    assert torch.isfinite(objective.lambdarank_loss(steep, batch)).all(), "no click outweighs all others"


def test_a_forest_that_only_ranks_leaves_the_clicks_to_the_network() -> None:
    objective, batch, r = _offset_batch()
    moved = torch.cat([r[:, :1] + 1 - 2 * batch.clicks[batch.mask][:, None], r[:, 1:]], dim=1)
    together = objective.click_shares(r, batch), objective.click_shares(moved, batch)
    assert not torch.allclose(*together)
    objective.predicts_clicks = False
    torch.testing.assert_close(objective.click_shares(r, batch), objective.click_shares(moved, batch))


def _cascade(labels: np.ndarray) -> tuple[ClickLog, np.ndarray]:
    """A log with the exact clicks of the cascade model, and the attraction of each shown document."""
    rates = Cascade().probabilities(labels, max_label=4)
    lists, width = labels.shape
    log = ClickLog.of(
        features=np.random.default_rng(0).normal(size=(labels.size, 2)),
        documents=np.arange(labels.size),
        offsets=np.arange(lists + 1) * width,
        clicks=np.rint(rates.ravel() * 10**8),
        impressions=np.full(lists, 10**8),
    )
    return log, Cascade().chain(4).click[:, 0][labels]


def _weighted(log: ClickLog, *, power: float, stopping: float) -> tuple[ClickWeights, Batch]:
    weights = ClickWeights(len(log.position.levels), power, stopping=stopping)
    lists = TrainingLists.of_log(log, inputs_of(log.features))
    weights.set(lists, stopping=stopping)
    return weights, lists.batch(np.arange(lists.lists), readers=weights.readers)


def test_clicks_of_users_who_all_stop_are_shared_out_by_attraction() -> None:
    """In the cascade model, clicks over the users who are still there are the attraction, at any position."""
    log, attraction = _cascade(np.random.default_rng(0).integers(0, 4, size=(20, 4)))
    weights, batch = _weighted(log, power=0.0, stopping=1.0)
    found = weights.weighted(batch)
    torch.testing.assert_close(found / found[0, 0] * attraction[0, 0], torch.tensor(attraction).float())
    assert float(found.sum()) == pytest.approx(float(batch.clicks.sum()), rel=1e-5), "the weight of all clicks is kept"
    plain, _ = _weighted(log, power=0.0, stopping=0.0)
    torch.testing.assert_close(plain.weighted(batch), batch.clicks)


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_predictions_know_the_mean_weight_of_a_position_and_no_click(power: float) -> None:
    log, _ = _cascade(np.random.default_rng(1).integers(0, 4, size=(20, 4)))
    weights, batch = _weighted(log, power=power, stopping=0.6)
    by_position = weights.weighted(batch).sum(dim=0) / batch.clicks.sum(dim=0)
    torch.testing.assert_close(weights.weights, by_position.float(), rtol=1e-4, atol=1e-4)
    logits = torch.zeros_like(batch.clicks)
    unclicked = replace(batch, clicks=torch.zeros_like(batch.clicks), left=None)
    torch.testing.assert_close(weights.click_logits(logits, batch), weights.click_logits(logits, unclicked))


def test_no_click_counts_more_than_the_fewest_users_allow() -> None:
    """One list of 1,000 users, of whom 999 clicked on the first document."""
    clicks = np.array([999, 1, 500, 500])
    log = replace(_one_query(clicks, np.array([1_000, 1_000])), queries=np.array([0, 0]))
    weights, batch = _weighted(log, power=0.0, stopping=1.0)
    found = weights.weighted(batch) / batch.clicks
    assert float(found[0, 1] / found[0, 0]) == pytest.approx(1 / FEWEST_LEFT, rel=1e-4)
    assert float(found[1, 1] / found[1, 0]) == pytest.approx(2.0, rel=1e-4)


def test_weights_that_are_set_again_know_nothing_of_the_first_time() -> None:
    """As after a warm start, whose model has the weights of an earlier log."""
    log, _ = _cascade(np.random.default_rng(0).integers(0, 4, size=(20, 4)))
    weights, batch = _weighted(log, power=0.0, stopping=0.9)
    weights.set(TrainingLists.of_log(log, inputs_of(log.features)))
    torch.testing.assert_close(weights.weighted(batch), batch.clicks)
    torch.testing.assert_close(weights.weights, torch.ones(4))


def test_users_who_stop_are_found_in_the_log_and_in_no_other() -> None:
    judged = letor_like(train_queries=150, validation_queries=1, test_queries=1).train
    short = Vectorization(relevance=MLP(hidden=(4,), steps=3), base_hidden=(4,), base_steps=1, stopping="auto")
    for clicks, share in (("cascade", 1.0), ("trust", 0.0)):
        log = simulate(judged, click_model(clicks), impressions=100_000)
        for method in (short, Auto(relevance=short.relevance)):
            ranker = method.fit(log).ranker_
            assert ranker.choices["stopping"] == share
        lists = TrainingLists.of_log(log, inputs_of(log.features))
        assert stopping_in(lists, 0.25) == 0.25


def test_all_bias_factors_tell_who_stops_in_training_as_in_the_doctor() -> None:
    """Users of phones hardly look below the first document."""
    random = np.random.default_rng(0)
    lists, width = 300, 10
    features = random.normal(size=(lists, width, 2))
    features = np.take_along_axis(features, np.argsort(-features[..., :1], axis=1), axis=1)
    phone = np.arange(lists) % 2 == 0
    examination = np.where(phone[:, None], np.arange(1, width + 1) ** -2.0, 0.5)
    seen = examination * np.exp(0.5 * features @ np.array([1.0, -0.5]) - 1).clip(max=0.9)
    rates = seen * np.cumprod(np.hstack([np.ones((lists, 1)), 1 - 0.5 * seen[:, :-1]]), axis=1)
    log = ClickLog.of(
        features=features.reshape(lists * width, 2),
        documents=np.arange(lists * width),
        offsets=np.arange(lists + 1) * width,
        clicks=np.round(rates * 10**6).astype(np.int64).ravel(),
        impressions=np.full(lists, 10**6),
        device=np.repeat(np.where(phone, "phone", "desk"), width),
    )
    whole = TrainingLists.of_log(log, inputs_of(log.features))
    found = Stopping.of(log)
    assert found is not None
    assert stopping_in(whole, "auto") == found.known > 0.3
    by_position = Stopping.of(replace(log, factors=log.factors[:1]))
    assert by_position is not None
    assert by_position.known != found.known


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("soft_targets", 1.1),
        ("soft_targets", -0.1),
        ("weight_power", -1.0),
        ("loss", "mse"),
        ("stopping", 1.1),
        ("stopping", -0.1),
        ("stopping", "often"),
        ("stopping", True),
    ],
)
def test_options_out_of_range_are_refused(option: str, value: object) -> None:
    with pytest.raises(OptionError, match=option):
        Vectorization(**{option: value}).check()  # type: ignore[arg-type]


def test_one_click_tells_the_rate_of_a_position_and_none_does_not() -> None:
    weights = click_weights(np.array([100.0, 100.0, 100.0]), np.array([50.0, 1.0, 0.0]), 1.0)
    np.testing.assert_allclose(weights / weights[0], [1, 50, 0.5])

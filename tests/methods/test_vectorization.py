from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ultr.clicks.registry import click_model
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.scaling import FeatureScaling
from ultr.datasets.letor_like import letor_like
from ultr.datasets.splits import Splits
from ultr.errors import OptionError
from ultr.methods import ClickBaseline, Vectorization
from ultr.methods.network import Shape
from ultr.metrics.ranking import ndcg
from ultr.simulation.log import simulate
from ultr.train.inputs import Inputs
from ultr.train.lists import TrainingLists

TINY: dict[str, Any] = {"hidden": (16,), "base_hidden": (8,), "steps": 40, "evaluate_every": 10}


def _network(dimension: int = 3) -> Any:
    method = Vectorization(dimension=dimension, hidden=(8,), base_hidden=(6,))
    return method.build(Shape(5, (10,)), torch.Generator().manual_seed(0)).double()


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_the_score_is_the_projection_on_the_closed_form_base_vector(dimension: int) -> None:
    network = _network(dimension)
    inputs = torch.randn(7, 5, dtype=torch.float64)
    offsets = np.array([0, 3, 7])
    mask = torch.from_numpy(ragged.mask(offsets, width=4))
    with torch.no_grad():
        network.centre.uniform_(-1, 1)
        network.spread.uniform_(0.1, 2)
    output = network.base(inputs).detach().numpy()
    centre, spread = network.centre.numpy(), network.spread.numpy()
    mean, variance = centre + spread * output[:, :dimension], spread**2 * np.exp(output[:, dimension:])
    relevance = network.relevance(inputs).detach().numpy()
    expected = []
    for start, end in [(0, 3), (3, 7)]:
        base = (mean[start:end] / variance[start:end]).sum(0) / (1 / variance[start:end]).sum(0)
        expected.extend(relevance[start:end] @ base)
    np.testing.assert_allclose(network.score(inputs, mask).detach().numpy(), expected, rtol=1e-9)


def test_the_base_vector_maximises_the_likelihood_of_the_candidates() -> None:
    network = _network(2)
    inputs = torch.randn(6, 5, dtype=torch.float64)
    mask = torch.ones(1, 6, dtype=torch.bool)
    mean, log_variance = network.base(inputs).detach().chunk(2, dim=-1)
    density = torch.distributions.Normal(mean, (log_variance / 2).exp())
    best = network.base_vectors(inputs, mask).detach()

    def likelihood(vector: torch.Tensor) -> float:
        return float(density.log_prob(vector).sum())

    for direction in torch.randn(50, 2, dtype=torch.float64):
        assert likelihood(best + 0.01 * direction) < likelihood(best)


def test_log_variances_of_any_size_give_a_finite_base_vector() -> None:
    network = _network(2)
    with torch.no_grad():
        network.base.layers[-1].weight.mul_(1e4)
    vectors = network.base_vectors(torch.randn(6, 5, dtype=torch.float64), torch.ones(1, 6, dtype=torch.bool))
    assert torch.isfinite(vectors).all()


def test_the_base_network_starts_at_the_distribution_of_observation_embeddings_in_the_log() -> None:
    network = _network(2)
    table = torch.tensor([[1.0, 3.0], [2.0, 3.0], [4.0, 7.0]], dtype=torch.float64)
    with torch.no_grad():
        network.observation.tables[0][:3] = table
    shares = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)
    network.start_base(torch.tensor([[0], [1], [2]]), shares)
    mean, log_variance = network.base_distribution(torch.randn(6, 5, dtype=torch.float64))
    shown = table.numpy()[[0, 0, 1, 2]]
    np.testing.assert_allclose(mean.detach().numpy(), np.tile(shown.mean(0), (6, 1)))
    np.testing.assert_allclose(log_variance.detach().exp().numpy(), np.tile(shown.var(0), (6, 1)))


def test_stage_one_is_validated_on_what_stage_two_starts_from(small_log: ClickLog, small: Splits) -> None:
    ranker = Vectorization(**TINY)
    network = ranker.build(Shape(64, (10,)), torch.Generator().manual_seed(0))
    with torch.no_grad():
        network.observation.tables[0].uniform_(-1, 1, generator=torch.Generator().manual_seed(1))
    scaling = FeatureScaling.fit(small_log.features)
    lists = ranker.training_lists(small_log, Inputs(small_log.features, scaling))
    clicks, base = ranker.stages(network, lists)
    inputs = Inputs(small.test.features, scaling).gather(torch.arange(20))
    mask = torch.ones(2, 10, dtype=torch.bool)
    assert base.begin is not None
    base.begin()
    torch.testing.assert_close(clicks.score(inputs, mask), base.score(inputs, mask))


def test_the_click_logit_is_the_dot_product_of_relevance_and_observation(small_log: ClickLog) -> None:
    ranker = Vectorization(**TINY).fit(small_log)
    log = small_log.select(np.arange(1))
    batch = TrainingLists.of_log(log, Inputs(log.features, ranker.scaling_)).batch(np.arange(1))
    network: Any = ranker.network_
    relevance = network.relevance(batch.features).numpy()
    observation = network.observation.tables[0].numpy()[log.positions - 1]
    logits = (relevance * observation).sum(1)
    np.testing.assert_allclose(network.click_logits(batch)[0].numpy(), logits, rtol=1e-5)
    shares = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(ranker.click_shares(log), shares, rtol=1e-5)


def test_the_second_stage_leaves_relevance_and_observation_alone(small_log: ClickLog) -> None:
    short = Vectorization(**TINY, base_steps=1).fit(small_log)
    long = Vectorization(**TINY, base_steps=40).fit(small_log)
    for name, value in short.network_.state_dict().items():
        same = torch.equal(value, long.network_.state_dict()[name])
        assert same == (not name.startswith("base."))


def test_in_the_joint_schedule_observation_waits_for_the_warm_up(
    small_log: ClickLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ultr.methods.vectorization.WARM_UP", 5)
    ranker = Vectorization(**TINY, schedule="joint")
    network = ranker.build(Shape(64, (10,)), torch.Generator().manual_seed(0))
    inputs = Inputs(small_log.features, FeatureScaling.fit(small_log.features))
    lists = ranker.training_lists(small_log, inputs)
    warm_up, joint = ranker.stages(network, lists)
    assert network.observation not in warm_up.modules
    assert set(joint.modules) == {network.relevance, network.observation, network.base}
    batch = lists.batch(np.arange(4))
    expected = network.click_loss(batch) + 2 / (10 * 3) * network.base_loss(batch)
    torch.testing.assert_close(joint.loss(batch), expected)
    assert joint.held_out == network.click_loss
    assert warm_up.steps + joint.steps == 40
    joint.losses(batch)[0].sum().backward()
    with_base = network.observation.tables[0].grad.clone()
    network.zero_grad()
    network.click_loss(batch).sum().backward()
    torch.testing.assert_close(with_base, network.observation.tables[0].grad)


def test_further_bias_factors_are_learned_beside_the_position(small_log: ClickLog) -> None:
    random = np.random.default_rng(0)
    bright = random.integers(2, size=len(small_log.clicks))
    impressions = np.repeat(small_log.impressions, small_log.lengths)
    clicks = np.where(bright == 1, np.minimum(3 * small_log.clicks + impressions // 5, impressions), small_log.clicks)
    style = replace(small_log.factors[0], name="style", values=bright.astype(np.int32), levels=("plain", "bright"))
    log = replace(small_log, clicks=clicks, factors=(*small_log.factors, style))
    with_style = Vectorization(hidden=(16,), steps=300).fit(log)
    without = Vectorization(hidden=(16,), steps=300).fit(replace(log, factors=small_log.factors))
    assert with_style.history_[2].loss < without.history_[2].loss


def test_base_steps_do_not_go_with_the_joint_schedule(small_log: ClickLog) -> None:
    with pytest.raises(OptionError, match="base_steps does not go with schedule 'joint'"):
        Vectorization(schedule="joint", base_steps=5).fit(small_log)


@pytest.mark.parametrize("dimension", [0, 2.0, True, "3"])
def test_a_dimension_that_is_no_positive_integer_is_refused(dimension: object, small_log: ClickLog) -> None:
    with pytest.raises(OptionError, match="dimension must be an integer of at least 1"):
        Vectorization(dimension=dimension).fit(small_log)  # type: ignore[arg-type]


def test_it_removes_trust_bias_that_raw_clicks_keep() -> None:
    splits = letor_like(train_queries=600, validation_queries=100, test_queries=300)
    log = simulate(splits.train, click_model("trust"), impressions=2_000_000, svm_share=0.02)
    test = splits.test

    def quality(ranker: ClickBaseline | Vectorization) -> float:
        ranker.fit(log, validation=splits.validation)
        return float(np.nanmean(ndcg(ranker.score(test.features, test.offsets), test.labels, test.offsets, cutoff=10)))

    raw = quality(ClickBaseline(hidden=(32,), steps=300))
    debiased = quality(Vectorization(dimension=3, hidden=(32,), steps=300))
    assert debiased > raw + 0.02

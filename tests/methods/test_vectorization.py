from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.relevance.documents import inputs_of
from torch import Tensor

from ultr.clicks.registry import click_model
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.datasets.letor_like import letor_like
from ultr.datasets.splits import Splits
from ultr.errors import OptionError
from ultr.methods import ClickBaseline, Vectorization
from ultr.methods.factors import Factor, factors_of
from ultr.methods.vector_objective import VectorObjective
from ultr.metrics.ranking import ndcg
from ultr.relevance import MLP
from ultr.relevance.inputs import Documents
from ultr.relevance.mlp import Network
from ultr.simulation.log import simulate
from ultr.train.lists import TrainingLists, pad

POSITION = Factor("position", tuple(map(str, range(1, 11))), 0)


def _vectorization(**options: int | str) -> Vectorization:
    return Vectorization(relevance=MLP(hidden=(16,), steps=40), base_hidden=(8,), evaluate_every=10, **options)  # type: ignore[arg-type]


def _objective(dimension: int = 3) -> VectorObjective:
    return VectorObjective([POSITION], dimension, combine="product").double()


def _r(documents: int, dimension: int) -> Tensor:
    """r(x), mu(x) and log sigma^2(x) of some documents side by side."""
    return torch.randn(documents, 3 * dimension, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("dimension", [1, 2, 5])
def test_the_score_is_the_projection_on_the_closed_form_base_vector(dimension: int) -> None:
    objective, r = _objective(dimension), _r(7, dimension)
    offsets = np.array([0, 3, 7])
    mask = torch.from_numpy(ragged.mask(offsets, width=4))
    with torch.no_grad():
        objective.centre.uniform_(-1, 1)
        objective.spread.uniform_(0.1, 2)
    relevance, output = r[:, :dimension].numpy(), r[:, dimension:].numpy()
    centre, spread = objective.centre.numpy(), objective.spread.numpy()
    mean, variance = centre + spread * output[:, :dimension], spread**2 * np.exp(output[:, dimension:])
    expected = []
    for start, end in [(0, 3), (3, 7)]:
        base = (mean[start:end] / variance[start:end]).sum(0) / (1 / variance[start:end]).sum(0)
        expected.extend(relevance[start:end] @ base)
    np.testing.assert_allclose(objective.score(r, mask).numpy(), expected, rtol=1e-9)


def test_the_base_vector_maximises_the_likelihood_of_the_candidates() -> None:
    objective, r = _objective(2), _r(6, 2)
    mask = torch.ones(1, 6, dtype=torch.bool)
    _, mean, log_variance = r.chunk(3, dim=-1)
    density = torch.distributions.Normal(mean, (log_variance / 2).exp())
    best = objective.base_vectors(pad(r, mask), mask)

    def likelihood(vector: Tensor) -> float:
        return float(density.log_prob(vector).sum())

    for direction in torch.randn(50, 2, dtype=torch.float64):
        assert likelihood(best + 0.01 * direction) < likelihood(best)


def test_log_variances_of_any_size_give_a_finite_base_vector() -> None:
    r, mask = 1e4 * _r(6, 2), torch.ones(1, 6, dtype=torch.bool)
    assert torch.isfinite(_objective(2).base_vectors(pad(r, mask), mask)).all()


def test_the_base_network_starts_at_the_distribution_of_observation_embeddings_in_the_log() -> None:
    model = Vectorization(relevance=MLP(hidden=(8,)), dimension=2, base_hidden=(6,)).build(5, [POSITION], seed=0)
    objective, base = model.objective.double(), model.by_name["base"]
    assert isinstance(objective, VectorObjective)
    table = torch.tensor([[1.0, 3.0], [2.0, 3.0], [4.0, 7.0]], dtype=torch.float64)
    with torch.no_grad():
        objective.observation.tables[0][:3] = table
    objective.shown = torch.tensor([[0], [1], [2]]), torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)
    objective.set_units()
    assert isinstance(base, Network)
    base.reset_outputs()
    outputs = base.double().layers(torch.randn(6, 5, dtype=torch.float64))
    mean, log_variance = objective.base_distribution(outputs)
    shown = table.numpy()[[0, 0, 1, 2]]
    np.testing.assert_allclose(mean.detach().numpy(), np.tile(shown.mean(0), (6, 1)))
    np.testing.assert_allclose(log_variance.detach().exp().numpy(), np.tile(shown.var(0), (6, 1)))


def test_stage_one_is_validated_on_what_stage_two_starts_from(small_log: ClickLog, small: Splits) -> None:
    ranker = _vectorization()
    model = ranker.build(64, factors_of(small_log), seed=0)
    with torch.no_grad():
        model.objective.observation.tables[0].uniform_(-1, 1, generator=torch.Generator().manual_seed(1))
    lists = ranker.training_lists(small_log, inputs_of(small_log.features))
    clicks, base = ranker.stages(model.objective, lists, 40)
    documents = Documents(inputs_of(small.test.features), torch.arange(20))
    mask = torch.ones(2, 10, dtype=torch.bool)
    assert base.begin is not None
    base.begin(model.by_name)
    first, second = (stage.score(model.outputs(documents, stage.ranks_with), mask) for stage in (clicks, base))
    torch.testing.assert_close(first, second)


def test_the_click_logit_is_the_dot_product_of_relevance_and_observation(small_log: ClickLog) -> None:
    ranker = _vectorization().fit(small_log).ranker_
    log = small_log.select(np.arange(1))
    batch = TrainingLists.of_log(log, ranker.inputs(log.features)).batch(np.arange(1))
    relevance = ranker.model.outputs(batch.documents, ["relevance"])
    observation = ranker.objective.observation.tables[0].numpy()[log.positions - 1]
    logits = (relevance.numpy() * observation).sum(1)
    np.testing.assert_allclose(ranker.objective.click_logits(relevance, batch)[0].numpy(), logits, rtol=1e-5)
    shares = np.exp(logits) / np.exp(logits).sum()
    np.testing.assert_allclose(ranker.click_shares(log), shares, rtol=1e-5)


def test_the_second_stage_leaves_relevance_and_observation_alone(small_log: ClickLog) -> None:
    short = _vectorization(base_steps=1).fit(small_log).ranker_.model.state_dict()
    long = _vectorization(base_steps=40).fit(small_log).ranker_.model.state_dict()
    for name, value in short.items():
        assert torch.equal(value, long[name]) == (not name.startswith("models.base."))


def test_in_the_joint_schedule_observation_waits_for_the_warm_up(
    small_log: ClickLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ultr.methods.vectorization.WARM_UP", 5)
    ranker = _vectorization(schedule="joint")
    model = ranker.build(64, factors_of(small_log), seed=0)
    objective = model.objective
    lists = ranker.training_lists(small_log, inputs_of(small_log.features))
    assert isinstance(objective, VectorObjective)
    warm_up, joint = ranker.stages(objective, lists, 40)
    assert (warm_up.moves, warm_up.bias) == (("relevance",), ())
    assert (set(joint.moves), joint.bias) == ({"relevance", "base"}, (objective.observation,))
    batch = lists.batch(np.arange(4))
    r = model.outputs(batch.documents, joint.uses)
    expected = objective.click_loss(r, batch) + 2 / (10 * 3) * objective.base_loss(r, batch)
    torch.testing.assert_close(joint.losses(r, batch)[0], expected)
    assert joint.held_out == objective.click_loss
    assert (warm_up.steps, joint.steps) == (5, 35)
    joint.losses(r, batch)[0].sum().backward()
    with_base = objective.observation.tables[0].grad
    assert with_base is not None
    with_base = with_base.clone()
    model.zero_grad()
    objective.click_loss(model.outputs(batch.documents, joint.uses), batch).sum().backward()
    torch.testing.assert_close(with_base, objective.observation.tables[0].grad)


def test_further_bias_factors_are_learned_beside_the_position(small_log: ClickLog) -> None:
    random = np.random.default_rng(0)
    bright = random.integers(2, size=len(small_log.clicks))
    impressions = np.repeat(small_log.impressions, small_log.lengths)
    clicks = np.where(bright == 1, np.minimum(3 * small_log.clicks + impressions // 5, impressions), small_log.clicks)
    style = replace(small_log.factors[0], name="style", values=bright.astype(np.int32), levels=("plain", "bright"))
    log = replace(small_log, clicks=clicks, factors=(*small_log.factors, style))
    with_style = Vectorization(relevance=MLP(hidden=(16,), steps=300)).fit(log)
    without = Vectorization(relevance=MLP(hidden=(16,), steps=300)).fit(replace(log, factors=small_log.factors))
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

    raw = quality(ClickBaseline(relevance=MLP(hidden=(32,), steps=300)))
    debiased = quality(Vectorization(relevance=MLP(hidden=(32,), steps=300), dimension=3))
    assert debiased > raw + 0.02

from __future__ import annotations

import numpy as np
import pytest
import torch

from ultr.clicks.model import EXAMINATION
from ultr.clicks.registry import click_model
from ultr.data.click_log import ClickLog
from ultr.data.scaling import FeatureScaling
from ultr.datasets.letor_like import letor_like
from ultr.errors import OptionError
from ultr.evaluation import evaluate
from ultr.methods import DLA, ClickBaseline, LabelBaseline
from ultr.methods.network import Shape
from ultr.simulation.log import simulate
from ultr.train.inputs import Inputs


def test_each_side_is_weighted_by_the_inverse_of_the_other(small_log: ClickLog) -> None:
    method = DLA(hidden=(8,))
    network = method.build(Shape(64, (10,)), torch.Generator().manual_seed(0))
    with torch.no_grad():
        network.observation.tables[0].uniform_(-1, 1, generator=torch.Generator().manual_seed(1))
    inputs = Inputs(small_log.features, FeatureScaling.fit(small_log.features))
    batch = method.training_lists(small_log, inputs).batch(np.arange(3))
    expected = []
    for number in range(3):
        rows = slice(number * 10, number * 10 + 10)
        f = network.relevance(batch.features[rows]).detach().double().numpy()[:, 0]
        h = network.observation(batch.factors[rows]).detach().double().numpy()[:, 0]
        g, theta = np.exp(f) / np.exp(f).sum(), np.exp(h) / np.exp(h).sum()
        clicks = batch.clicks[number].double().numpy()
        ranker = -(clicks * theta[0] / theta * np.log(g)).sum()
        propensity = -(clicks * g[0] / g * np.log(theta)).sum()
        expected.append(ranker + propensity)
    np.testing.assert_allclose(network.dual_loss(batch).detach().numpy(), expected, rtol=1e-4)


def test_weights_have_no_gradient(small_log: ClickLog) -> None:
    method = DLA(hidden=(8,))
    network = method.build(Shape(64, (10,)), torch.Generator().manual_seed(0))
    inputs = Inputs(small_log.features, FeatureScaling.fit(small_log.features))
    batch = method.training_lists(small_log, inputs).batch(np.arange(3))
    relevance, _ = network.logits(batch)
    weights = (network.logits(batch)[1][:, :1] - network.logits(batch)[1]).exp().detach()
    (-(batch.clicks * weights * relevance.log_softmax(-1)).sum()).backward()
    expected = network.relevance.layers[0].weight.grad
    assert isinstance(expected, torch.Tensor)
    expected = expected.clone()
    network.zero_grad()
    network.dual_loss(batch).sum().backward()
    torch.testing.assert_close(network.relevance.layers[0].weight.grad, expected)


def test_it_finds_the_examination_curve_and_the_ranking_of_position_based_clicks() -> None:
    splits = letor_like(train_queries=1_000, validation_queries=150, test_queries=500)
    # So many impressions that click rates are all but their expectation; swaps tell positions from documents.
    log = simulate(
        splits.train, click_model("position-based"), impressions=10**9, svm_share=0.05, rankings=10, noise=0.5
    )
    options = {"hidden": (32,), "recipe": "paper", "steps": 1_500}
    ranker = DLA(**options).fit(log, validation=splits.validation)  # type: ignore[arg-type]
    true = np.array(EXAMINATION) / EXAMINATION[0]
    np.testing.assert_allclose(ranker.propensities()["position"], true, atol=0.05)

    def quality(other: DLA | ClickBaseline | LabelBaseline) -> float:
        return evaluate(other, splits.test).mean("nDCG@10")

    labelled = quality(LabelBaseline(**options).fit(splits.train, validation=splits.validation))  # type: ignore[arg-type]
    assert quality(ranker) > labelled - 0.02


def test_unfitted_it_has_no_propensities() -> None:
    with pytest.raises(OptionError, match="not fitted yet"):
        DLA().propensities()

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.relevance.documents import inputs_of

from ultr.data.click_log import ClickLog
from ultr.errors import OptionError
from ultr.methods import DLA
from ultr.methods.factors import factors_of
from ultr.relevance import MLP


def test_each_side_is_weighted_by_the_inverse_of_the_other(small_log: ClickLog) -> None:
    method = DLA(relevance=MLP(hidden=(8,)))
    model = method.build(64, factors_of(small_log), seed=0)
    with torch.no_grad():
        model.objective.observation.tables[0].uniform_(-1, 1, generator=torch.Generator().manual_seed(1))
    batch = method.training_lists(small_log, inputs_of(small_log.features)).batch(np.arange(3))
    r = model.outputs(batch.documents, ["relevance"])
    observation = model.objective.observation(batch.factors)
    expected = []
    for number in range(3):
        rows = slice(number * 10, number * 10 + 10)
        f = r[rows].detach().double().numpy()[:, 0]
        h = observation[rows].detach().double().numpy()[:, 0]
        g, theta = np.exp(f) / np.exp(f).sum(), np.exp(h) / np.exp(h).sum()
        clicks = batch.clicks[number].double().numpy()
        ranker = -(clicks * theta[0] / theta * np.log(g)).sum()
        propensity = -(clicks * g[0] / g * np.log(theta)).sum()
        expected.append(ranker + propensity)
    np.testing.assert_allclose(model.objective.loss(r, batch).detach().numpy(), expected, rtol=1e-4)


def test_weights_have_no_gradient(small_log: ClickLog) -> None:
    method = DLA(relevance=MLP(hidden=(8,)))
    model = method.build(64, factors_of(small_log), seed=0)
    with torch.no_grad():
        model.objective.observation.tables[0].uniform_(-1, 1, generator=torch.Generator().manual_seed(1))
    batch = method.training_lists(small_log, inputs_of(small_log.features)).batch(np.arange(3))
    relevance = batch.pad(model.outputs(batch.documents, ["relevance"]).squeeze(-1))
    observation = batch.pad(model.objective.observation(batch.factors).squeeze(-1))
    weights = (observation[:, :1] - observation).exp().detach()
    (-(batch.clicks * weights * relevance.log_softmax(-1)).sum()).backward()
    expected = [parameter.grad.clone() for parameter in model.models.parameters() if parameter.grad is not None]
    assert len(expected) == 4
    model.zero_grad()
    model.objective.loss(model.outputs(batch.documents, ["relevance"]), batch).sum().backward()
    torch.testing.assert_close([parameter.grad for parameter in model.models.parameters()], expected)


def test_unfitted_it_has_no_propensities() -> None:
    with pytest.raises(OptionError, match="not fitted yet"):
        DLA().propensities()

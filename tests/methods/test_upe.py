from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.methods.exact_logs import agreement, exact_log, placed
from tests.relevance.documents import blank_documents, inputs_of

from ultr.arrays import Doubles
from ultr.data.click_log import ClickLog
from ultr.errors import DataError, OptionError
from ultr.methods import DLA, UPE
from ultr.methods.factors import factors_of
from ultr.methods.upe import STRATA, UnconfoundedObjective, shown_documents
from ultr.relevance import MLP
from ultr.train.lists import Batch, TrainingLists

G = np.random.default_rng(1).permutation(np.geomspace(0.05, 0.95, 20))
THETA = np.array([1.0, 0.8, 0.6, 0.45, 0.35, 0.25])
SHOWN = placed(G, shown=6, lists=200, temperature=1.0)
LOG = exact_log(SHOWN, G[SHOWN] * THETA)
TINY = MLP(hidden=(8,), steps=3)


def test_it_finds_propensities_and_relevance_of_position_based_clicks() -> None:
    shown = placed(G, shown=6, lists=150, temperature=2.0)
    log = exact_log(shown, G[shown] * THETA)
    relevance = MLP(hidden=(16,), recipe="collapsed", steps=350, learning_rate=0.03, batch_size=150)
    ranker = UPE(relevance=relevance).fit(log)
    np.testing.assert_allclose(ranker.propensities()["position"], THETA, atol=0.02)
    assert agreement(ranker, G) > 0.95
    np.testing.assert_allclose(ranker.click_shares(log), _shares(log), atol=0.01)


def _shares(log: ClickLog) -> Doubles:
    clicks = log.clicks.reshape(-1, 6)
    shares: Doubles = (clicks / clicks.sum(axis=1, keepdims=True)).ravel()
    return shares


def _propensities(method: UPE | DLA, *, score: bool) -> Doubles:
    """What a method learns of the positions beside a ranker that takes all documents for the same."""
    lists = TrainingLists.of_log(LOG, inputs_of(LOG.features))
    objective, batch = method.objective(factors_of(LOG)), lists.batch(np.arange(LOG.lists))
    logging = torch.from_numpy(np.log(G)).float()
    optimizer = torch.optim.Adam(objective.parameters(), lr=0.05)
    ignorant = torch.zeros(len(batch.factors), 1)
    if isinstance(objective, UnconfoundedObjective):
        objective.set_strata(logging[torch.from_numpy(shown_documents(lists))].double())
    for _ in range(300):
        optimizer.zero_grad()
        arguments = (logging[batch.documents.rows],) if score else ()
        objective.loss(ignorant, batch, *arguments).mean().backward()
        optimizer.step()
    found: Doubles = objective.propensities()["position"]
    return found


def test_its_propensities_are_right_where_the_ranker_is_ignorant_and_those_of_dla_are_not() -> None:
    # Relevant documents stand first, and an ignorant ranker leaves it to the positions to explain their clicks.
    confounded = _propensities(DLA(), score=False)
    assert (confounded[1:] < THETA[1:] - 0.05).all()
    np.testing.assert_allclose(_propensities(UPE(), score=True), THETA, atol=0.01)


@pytest.fixture
def objective() -> UnconfoundedObjective:
    built = UnconfoundedObjective(factors_of(LOG)).double()
    with torch.no_grad():
        built.observation.tables[0].copy_(torch.tensor([[0.3, 0.5], [-0.4, 1.0], [-1.0, -0.2], *[[0.0, 0.0]] * 3]))
    built.set_strata(torch.from_numpy(np.log(G)))
    return built


def test_propensities_are_means_over_all_logging_scores(objective: UnconfoundedObjective) -> None:
    strata = (np.quantile(np.log(G), (np.arange(STRATA) + 0.5) / STRATA) - np.log(G).mean()) / np.log(G).std()
    levels, slopes = np.array([0.3, -0.4, -1.0]), np.array([0.5, 1.0, -0.2])
    means = np.exp(levels + slopes * strata[:, None]).mean(axis=0)
    np.testing.assert_allclose(objective.propensities()["position"][:3], means / means[0], rtol=1e-6)


def test_each_loss_is_weighted_by_the_inverse_of_the_other(objective: UnconfoundedObjective) -> None:
    batch = Batch(
        documents=blank_documents(5),
        factors=torch.tensor([[0], [1], [2], [0], [1]]),
        clicks=torch.tensor([[0.9, 0.2, 0.1], [0.5, 0.4, 0.0]], dtype=torch.float64),
        mask=torch.tensor([[True, True, True], [True, True, False]]),
    )
    r = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    scores = torch.log(torch.tensor([0.3, 0.5, 0.1, 0.9, 0.2], dtype=torch.float64))
    found = objective.loss(r, batch, scores).detach().numpy()
    f, clicks, places = r[:, 0].numpy(), np.array([0.9, 0.2, 0.1, 0.5, 0.4]), np.array([0, 1, 2, 0, 1])
    unit = (scores.numpy() - np.log(G).mean()) / np.log(G).std()
    o = np.array([0.3, -0.4, -1.0])[places] + np.array([0.5, 1.0, -0.2])[places] * unit
    theta = objective.propensities()["position"][places]
    expected = []
    for part in (slice(3), slice(3, 5)):
        of_ranker = clicks[part] * theta[part][0] / theta[part] * np.log(np.exp(f[part]) / np.exp(f[part]).sum())
        inverse = np.exp(f[part][0] - f[part])
        of_bias = clicks[part] * inverse * np.log(np.exp(o[part]) / np.exp(o[part]).sum())
        expected.append(-(of_ranker + of_bias).sum())
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_shown_documents_come_as_often_as_they_are_shown() -> None:
    impressions = np.where(np.arange(200) < 100, 3, 1)
    lists = TrainingLists.of_log(replace(LOG, impressions=impressions, clicks=LOG.clicks * 0), inputs_of(LOG.features))
    found = np.bincount(shown_documents(lists), minlength=20) / 1_000
    expected = np.bincount(SHOWN.ravel(), np.repeat(impressions / 400, 6), minlength=20)
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_a_logging_score_of_the_log_needs_no_stage_of_its_own(small_log: ClickLog) -> None:
    assert {record.stage for record in UPE(relevance=TINY).fit(small_log).history_} == {"logging score", "dual"}
    given = UPE(relevance=TINY, logging_score="linear_1").fit(small_log)
    assert {record.stage for record in given.history_} == {"dual"}
    assert list(given.ranker_.model.by_name) == ["relevance"]
    column = small_log.features[:, 0]
    assert given.ranker_.objective.scale[0] == pytest.approx(column[small_log.documents].mean(), abs=0.1)


def test_a_logging_score_that_is_not_there_is_refused(small_log: ClickLog) -> None:
    with pytest.raises(OptionError, match="logging_score: the log has no column 'linear1', did you mean 'linear_1'"):
        UPE(relevance=TINY, logging_score="linear1").fit(small_log)
    features = small_log.features.copy()
    features[3, 0] = np.nan
    with pytest.raises(DataError, match="the logging score 'linear_1' is missing for some documents"):
        UPE(relevance=TINY, logging_score="linear_1").fit(replace(small_log, features=features))

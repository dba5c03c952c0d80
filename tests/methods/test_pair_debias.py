from __future__ import annotations

from dataclasses import replace
from math import exp, log
from typing import Any

import numpy as np
import pytest
import torch
from tests.relevance.documents import inputs_of
from torch import Tensor

from ultr.clicks.registry import click_model
from ultr.data.click_log import ClickLog
from ultr.datasets.letor_like import letor_like
from ultr.errors import DataError, OptionError, UltrWarning
from ultr.evaluation import evaluate
from ultr.methods import ClickBaseline, PairDebias
from ultr.methods.pair_debias import PairObjective, pair_losses
from ultr.relevance import MLP
from ultr.simulation.log import simulate
from ultr.train.lists import Batch

TINY = MLP(hidden=(8,), steps=5)
DOCUMENTS = ((0, 1, 2, 3), (4, 5, 6))
POSITIONS = ((1, 2, 3, 4), (1, 3, 5))
T_PLUS, T_MINUS = (1.0, 0.8, 0.5, 0.3, 0.6, 0.9), (1.0, 1.1, 0.7, 1.4, 0.4, 0.2)


@pytest.fixture
def sessions() -> list[tuple[int, list[bool]]]:
    """Which list was shown and what was clicked; 60 times the first list, 20 times the second."""
    random = np.random.default_rng(0)
    return [(number, (random.random(len(DOCUMENTS[number])) < 0.5).tolist()) for number in [0] * 60 + [1] * 20]


@pytest.fixture
def click_log(sessions: list[tuple[int, list[bool]]]) -> ClickLog:
    """The sessions as a log of six positions, of which the last is never shown."""
    counted = ClickLog.of(
        features=np.random.default_rng(1).normal(size=(7, 5)),
        documents=np.concatenate([DOCUMENTS[number] for number, _ in sessions]),
        offsets=np.cumsum([0] + [len(DOCUMENTS[number]) for number, _ in sessions]),
        positions=np.concatenate([POSITIONS[number] for number, _ in sessions]),
        clicks=np.concatenate([clicked for _, clicked in sessions]),
        queries=[number for number, _ in sessions],
        pairs=True,
    )
    return replace(counted, factors=(replace(counted.factors[0], levels=tuple("123456")),))


@pytest.fixture
def objective() -> PairObjective:
    built = PairObjective(6).double()
    built.t_plus.copy_(torch.tensor(T_PLUS))
    built.t_minus.copy_(torch.tensor(T_MINUS))
    return built


@pytest.fixture
def batch(click_log: ClickLog) -> Batch:
    lists = PairDebias().training_lists(click_log, inputs_of(click_log.features))
    found = lists.batch(np.arange(2))
    assert found.pairs is not None
    return replace(found, clicks=found.clicks.double(), pairs=found.pairs.double())


@pytest.fixture
def r() -> Tensor:
    """f(x) of documents 0 to 6, in the order of the batch."""
    return torch.randn(7, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_the_loss_is_that_of_a_loop_over_sessions(
    objective: PairObjective, r: Tensor, batch: Batch, sessions: list[tuple[int, list[bool]]]
) -> None:
    f, totals = r.squeeze(-1).tolist(), [0.0, 0.0]
    for number, clicked in sessions:
        for i, position, click in zip(DOCUMENTS[number], POSITIONS[number], clicked, strict=True):
            for j, below, other in zip(DOCUMENTS[number], POSITIONS[number], clicked, strict=True):
                if click and not other:
                    totals[number] += log(1 + exp(f[j] - f[i])) / (T_PLUS[position - 1] * T_MINUS[below - 1])
    np.testing.assert_allclose(
        objective.debiased_loss(r, batch)[0].tolist(), [totals[0] / 60, totals[1] / 20], rtol=1e-5
    )


@pytest.mark.parametrize("norm", [0.0, 1.0, 2.5])
def test_the_bias_moves_to_the_closed_form_of_a_loop_over_sessions(
    objective: PairObjective, r: Tensor, batch: Batch, sessions: list[tuple[int, list[bool]]], norm: float
) -> None:
    f, plus, minus = r.squeeze(-1).tolist(), [0.0] * 6, [0.0] * 6
    for number, clicked in sessions:
        often = (60, 20)[number]
        for i, position, click in zip(DOCUMENTS[number], POSITIONS[number], clicked, strict=True):
            for j, below, other in zip(DOCUMENTS[number], POSITIONS[number], clicked, strict=True):
                if click and not other:
                    loss = log(1 + exp(f[j] - f[i])) / often
                    plus[position - 1] += loss / T_MINUS[below - 1]
                    minus[below - 1] += loss / T_PLUS[position - 1]
    with torch.no_grad():
        objective.update_bias(objective.debiased_loss(r, batch)[1], 0.25, norm)
    for found, old, sums in ((objective.t_plus, T_PLUS, plus), (objective.t_minus, T_MINUS, minus)):
        expected = [0.75 * t + 0.25 * (s / sums[0]) ** (1 / (norm + 1)) for t, s in zip(old, sums, strict=True)]
        # The last position is not in the batch, so it stays.
        np.testing.assert_allclose(found.tolist(), [*expected[:5], old[5]], rtol=1e-5)


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_the_fixed_point_is_stationary_for_the_regularised_loss(
    objective: PairObjective, r: Tensor, batch: Batch, norm: float
) -> None:
    with torch.no_grad():
        for _ in range(500):
            objective.update_bias(objective.debiased_loss(r, batch)[1], 0.2, norm)
        assert batch.pairs is not None
        losses = pair_losses(batch.pad(r.squeeze(-1)), batch.pairs)
    positions = [torch.tensor(shown) - 1 for shown in POSITIONS]
    plus, minus = (values.clone().requires_grad_() for values in (objective.t_plus, objective.t_minus))
    fit = sum(
        (square[: len(at), : len(at)] / (plus[at][:, None] * minus[at])).sum()
        for square, at in zip(losses, positions, strict=True)
    )
    for values in (plus, minus):
        # The strength that makes the first position stationary; it must do for all others.
        (slope,) = torch.autograd.grad(fit, values, retain_graph=True)
        strength = -slope[0] / norm
        (balance,) = torch.autograd.grad(fit + strength * values[:5].pow(norm).sum(), values, retain_graph=True)
        assert slope[:5].abs().min() > 1e-2
        torch.testing.assert_close(balance, torch.zeros_like(balance), rtol=0, atol=1e-6)


def test_a_position_without_a_pair_moves_down_but_stays_above_zero(
    objective: PairObjective, r: Tensor, batch: Batch
) -> None:
    assert batch.pairs is not None
    pairs = batch.pairs.clone()
    pairs[0, 1, :] = 0
    pairs[:, :, 2] = 0
    with torch.no_grad():
        for _ in range(5_000):
            objective.update_bias(objective.debiased_loss(r, replace(batch, pairs=pairs))[1], 0.5, 1.0)
    assert objective.t_plus[1].item() == pytest.approx(1e-3)
    assert objective.t_minus[3].item() > 1e-3
    assert objective.t_plus.isfinite().all()
    assert objective.t_minus.isfinite().all()
    assert objective.debiased_loss(r, replace(batch, pairs=pairs))[0].isfinite().all()


def test_a_batch_without_a_pair_at_the_first_position_changes_nothing(
    objective: PairObjective, r: Tensor, batch: Batch
) -> None:
    assert batch.pairs is not None
    pairs = batch.pairs.clone()
    pairs[:, 0, :] = 0
    pairs[:, :, 0] = 0
    with torch.no_grad():
        objective.update_bias(objective.debiased_loss(r, replace(batch, pairs=pairs))[1], 0.5, 1.0)
    np.testing.assert_allclose(objective.t_plus.tolist(), T_PLUS, rtol=1e-6)
    np.testing.assert_allclose(objective.t_minus.tolist(), T_MINUS, rtol=1e-6)


def test_held_out_clicks_are_shared_out_by_relevance_and_the_bias_of_clicks(
    objective: PairObjective, r: Tensor, batch: Batch
) -> None:
    weights = np.exp(r.squeeze(-1).tolist()[:4]) * T_PLUS[:4]
    expected = -(batch.clicks[0].numpy() * np.log(weights / weights.sum())).sum()
    np.testing.assert_allclose(objective.click_loss(r, batch)[0].item(), expected, rtol=1e-6)


def test_it_ranks_better_than_clicks_alone_and_than_pairs_whose_bias_is_left_in() -> None:
    splits = letor_like(train_queries=1_000, validation_queries=150, test_queries=500)
    clicks = simulate(
        splits.train,
        click_model("position-based"),
        impressions=2_000_000,
        svm_share=0.05,
        rankings=4,
        noise=0.5,
        pairs=True,
    )
    relevance = MLP(hidden=(32,), steps=1_000)
    ranker = PairDebias(relevance=relevance)
    # So small a rate leaves t+ and t- at 1, which shows that they are what helps and not the pairs alone.
    others = ClickBaseline(relevance=relevance), PairDebias(relevance=relevance, em_rate=1e-12)
    quality, *biased = (
        evaluate(method.fit(clicks, validation=splits.validation), splits.test).mean("nDCG@10")
        for method in (ranker, *others)
    )
    assert quality > max(biased)
    t_plus, t_minus = ranker.propensities()
    assert t_plus[0] == t_minus[0] == 1
    # The first two are alike: over seeds, t+ of the second is between .993 and 1.003.
    assert abs(t_plus[1] - 1) < 0.02
    assert (np.diff(t_plus[1:]) < 0).all()


def test_a_log_that_does_not_count_pairs_is_refused_but_may_choose_the_weights(pair_log: ClickLog) -> None:
    uncounted = replace(pair_log, pair_clicks=None)
    with pytest.raises(DataError, match=r"give --pairs to `ultr prepare` or `ultr simulate`, or pairs=True to"):
        PairDebias(relevance=TINY).fit(uncounted)
    values = [
        PairDebias(relevance=TINY).fit(pair_log, validation=log).history_[-1].value for log in (pair_log, uncounted)
    ]
    assert values[0] == values[1]


def test_a_log_that_prefers_no_document_is_refused() -> None:
    alone = ClickLog.of(features=np.eye(3), documents=[0, 1, 2], offsets=[0, 1, 2, 3], clicks=[1, 0, 1], pairs=True)
    with pytest.raises(DataError, match="nothing to learn from"):
        PairDebias(relevance=TINY).fit(alone)


@pytest.mark.parametrize("options", [{"em_rate": 0.0}, {"norm": -1.0}, {"norm": float("nan")}], ids=str)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], pair_log: ClickLog) -> None:
    (name,) = options
    with pytest.raises(OptionError, match=name):
        PairDebias(relevance=TINY, **options).fit(pair_log)


def test_unfitted_it_has_no_propensities() -> None:
    with pytest.raises(OptionError, match="not fitted yet"):
        PairDebias().propensities()


def test_sampled_sessions_need_no_counted_pairs_but_say_that_their_clicks_are_independent(click_log: ClickLog) -> None:
    uncounted = replace(click_log, pair_clicks=None)
    sampling = PairDebias(relevance=replace(TINY, recipe="paper"))
    with pytest.warns(UltrWarning, match="do not depend on each other"):
        sampling.fit(uncounted)
    t_plus, t_minus = sampling.propensities()
    assert (t_plus[1:5] != 1).all()
    assert (t_minus[1:5] != 1).all()

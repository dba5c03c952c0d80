from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from tests.relevance.documents import inputs_of
from torch import nn

from ultr.arrays import Floats
from ultr.clicks import ClickMatrix
from ultr.data import ragged
from ultr.data.bias_factor import BiasFactor, position_factor
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.log_checks import trusted
from ultr.data.scaling import FeatureScaling
from ultr.methods import Vectorization
from ultr.methods.factors import factors_of
from ultr.methods.vector_objective import VectorObjective
from ultr.relevance import MLP, Inputs, Preprocessing
from ultr.seeding import generator
from ultr.simulation.log import simulate
from ultr.train.lists import TrainingLists, pad


def _log(lengths: list[int], impressions: list[int], seed: int = 0) -> ClickLog:
    random = np.random.default_rng(seed)
    shown = sum(lengths)
    offsets = ragged.from_lengths(np.array(lengths))
    positions = np.arange(shown) - np.repeat(offsets[:-1], lengths) + 1
    return ClickLog(
        features=random.normal(size=(shown, 6)).astype(np.float32),
        documents=np.arange(shown),
        offsets=offsets,
        factors=(
            position_factor(positions, count=10),
            BiasFactor("device", random.integers(2, size=shown).astype(np.int32), ("phone", "desk")),
        ),
        impressions=np.array(impressions),
        clicks=random.binomial(np.repeat(impressions, lengths), 0.4),
        queries=np.arange(len(lengths)),
        query_ids=np.array([str(i) for i in range(len(lengths))]),
        feature_names=tuple("abcdef"),
    )


def _lists(log: ClickLog) -> TrainingLists:
    return TrainingLists.of_log(log, inputs_of(log.features))


def _stream(_: str) -> np.random.Generator:
    return np.random.default_rng(0)


def _gradients(model: nn.Module) -> list[torch.Tensor]:
    return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]


def test_a_collapsed_row_and_its_separate_sessions_give_the_same_gradient() -> None:
    collapsed = _log([4], [50])
    # 50 sessions of that list, each row shown once, with clicks that add up to the counts of the collapsed row.
    sessions = np.zeros((50, 4), dtype=np.int64)
    for document, count in enumerate(collapsed.clicks):
        sessions[np.random.default_rng(document).permutation(50)[:count], document] = 1
    separate = replace(
        collapsed,
        documents=np.tile(collapsed.documents, 50),
        offsets=np.arange(51) * 4,
        factors=tuple(replace(factor, values=np.tile(factor.values, 50)) for factor in collapsed.factors),
        impressions=np.ones(50, dtype=np.int64),
        clicks=sessions.reshape(-1),
        queries=np.zeros(50, dtype=np.int64),
    )
    method = Vectorization(relevance=MLP(hidden=(8,)), dimension=3, base_hidden=(4,))
    model = method.build(6, factors_of(collapsed), seed=0)
    assert isinstance(model.objective, VectorObjective)
    gradients = []
    for log in (collapsed, separate):
        lists = _lists(log)
        batch = lists.batch(np.arange(lists.lists))
        impressions = torch.from_numpy(lists.impressions).float()
        model.zero_grad()
        r = model.outputs(batch.documents, model.objective.ranks_with)
        ((model.objective.click_loss(r, batch) + model.objective.base_loss(r, batch)) @ impressions).backward()
        gradients.append(_gradients(model))
    assert len(gradients[0]) == len(list(model.parameters()))
    for first, second in zip(*gradients, strict=True):
        torch.testing.assert_close(first, second, rtol=1e-4, atol=1e-4)


def test_lists_of_different_lengths_are_padded_in_order() -> None:
    log = _log([1, 3, 2], [10, 10, 10])
    lists = _lists(log)
    batch = lists.batch(np.array([2, 1]))
    assert batch.mask.tolist() == [[True, True, False], [True, True, True]]
    rates = log.clicks / 10
    np.testing.assert_allclose(batch.clicks[batch.mask].numpy(), rates[[4, 5, 1, 2, 3]], rtol=1e-6)
    assert batch.factors[:, 0].tolist() == [0, 1, 0, 1, 2]
    padded = batch.pad(torch.arange(5.0) + 1)
    assert padded.tolist() == [[1, 2, 0], [3, 4, 5]]


def test_an_epoch_is_over_when_a_batch_for_each_document_was_seen_however_often_it_is_shown() -> None:
    once = _log([2, 4, 3, 3], [10, 10, 10, 10])
    assert _lists(once).steps_per_epoch(2) == 2.0
    # The same twelve documents in three times as many lists.
    often = replace(_log([2, 4, 3, 3] * 3, [10] * 12), features=once.features, documents=np.tile(once.documents, 3))
    assert _lists(often).steps_per_epoch(2) == 2.0
    # Candidates that no list shows do not count.
    for log in (once, often):
        assert _lists(replace(log, features=np.tile(once.features, (5, 1)))).steps_per_epoch(2) == 2.0


def test_values_are_summed_by_position_also_where_a_share_has_no_document() -> None:
    lists = _lists(_log([1, 3, 0], [10, 10, 10]))
    values = torch.tensor([2.0, 3.0, 5.0, 7.0])
    sums = lists.batch(np.array([0, 1, 2])).sum_by_position(4, values, torch.ones(4))
    assert sums.tolist() == [[5.0, 5.0, 7.0, 0.0], [2.0, 1.0, 1.0, 0.0]]
    nothing = lists.batch(np.array([2])).sum_by_position(4, values[:0])
    assert (nothing.tolist(), nothing.dtype) == ([[0.0] * 4], sums.dtype)


def test_the_gradient_of_padding_reaches_every_document_once() -> None:
    values = torch.arange(5.0).requires_grad_()
    mask = torch.tensor([[True, True, False], [True, True, True]])
    weights = torch.tensor([[1.0, 2.0, 99.0], [3.0, 4.0, 5.0]])
    (pad(values, mask) * weights).sum().backward()
    assert values.grad is not None
    assert values.grad.tolist() == [1, 2, 3, 4, 5]


def test_sampled_sessions_are_clicked_at_the_rates_of_the_log() -> None:
    log = _log([4], [50])
    lists = _lists(log)
    batch = lists.batch(np.zeros(20_000, dtype=np.int64), sessions=True, random=_stream)
    assert set(batch.clicks.unique().tolist()) == {0.0, 1.0}
    np.testing.assert_allclose(batch.clicks.mean(0).numpy(), log.clicks / 50, atol=0.02)


CLICKS = np.random.default_rng(3).random(12 * 4 + 5 * 2) < 0.5


def _sessions() -> ClickLog:
    """Twelve sessions of a list of four documents and five of one of two."""
    lengths = np.array([4] * 12 + [2] * 5)
    return ClickLog.of(
        features=np.eye(6),
        documents=np.concatenate([range(4)] * 12 + [[5, 4]] * 5),
        offsets=ragged.from_lengths(lengths),
        clicks=CLICKS,
        queries=lengths,
        pairs=True,
    )


def test_pairs_are_the_share_of_sessions_that_clicked_one_and_not_the_other() -> None:
    log = _sessions()
    lists = TrainingLists.of_log(log, inputs_of(log.features), pairs=True)
    expected = np.zeros((2, 4, 4))
    for number, sessions in enumerate((CLICKS[:48].reshape(12, 4), CLICKS[48:].reshape(5, 2))):
        for i, j in np.ndindex(sessions.shape[1], sessions.shape[1]):
            expected[number, i, j] = np.mean([session[i] and not session[j] for session in sessions])
    pairs = lists.batch(np.array([1, 0, 1])).pairs
    assert pairs is not None
    np.testing.assert_allclose(pairs.numpy(), expected[[1, 0, 1]], rtol=1e-6)


def test_pairs_are_only_there_if_asked_for_and_counted() -> None:
    log = _sessions()
    inputs = inputs_of(log.features)
    assert TrainingLists.of_log(log, inputs).batch(np.arange(2)).pairs is None
    uncounted = replace(log, pair_clicks=None)
    assert TrainingLists.of_log(uncounted, inputs, pairs=True).batch(np.arange(2)).pairs is None


def test_sampled_pairs_come_at_the_shares_of_the_log_and_leave_the_clicks_alone() -> None:
    log = _sessions()
    inputs = inputs_of(log.features)
    lists, without = TrainingLists.of_log(log, inputs, pairs=True), TrainingLists.of_log(log, inputs)
    chosen = np.tile([0, 1], 10_000)
    batch = lists.batch(chosen, sessions=True, random=_stream)
    shares = lists.batch(np.array([0, 1])).pairs
    assert batch.pairs is not None
    assert shares is not None
    assert set(batch.pairs.unique().tolist()) == {0.0, 1.0}
    np.testing.assert_allclose(batch.pairs.view(-1, 2, 4, 4).mean(0).numpy(), shares.numpy(), atol=0.02)
    assert batch.clicks.equal(without.batch(chosen, sessions=True, random=_stream).clicks)


def test_pairs_can_be_those_of_the_sampled_sessions() -> None:
    log = trusted(_sessions(), pair_clicks=None)
    lists = replace(TrainingLists.of_log(log, inputs_of(log.features)), session_pairs=True)
    chosen = np.resize([0, 1], 300)
    batch = lists.batch(chosen, sessions=True, random=_stream)
    assert batch.pairs is not None
    assert batch.clicks.equal(replace(lists, session_pairs=False).batch(chosen, sessions=True, random=_stream).clicks)
    for clicks, mask, pairs in zip(batch.clicks, batch.mask, batch.pairs, strict=True):
        for i, j in np.ndindex(*pairs.shape):
            assert pairs[i, j] == (clicks[i] == 1 and bool(mask[j]) and clicks[j] == 0)


def test_every_step_on_an_endless_log_draws_new_sessions_of_the_click_model() -> None:
    labels = np.array([[0, 4, 2, 1, 3]])
    judged = JudgedLists.of(features=np.eye(5), labels=labels[0], offsets=[0, 5])
    log = simulate(judged, ClickMatrix(), scores=-np.arange(5.0), impressions=10**15)
    lists = TrainingLists.of_log(log, inputs_of(log.features))
    streams = [partial(generator, 0, step) for step in (1, 2, 1)]
    drawn = [lists.batch(np.zeros(40_000, np.int64), sessions=True, random=each).clicks for each in streams]
    assert drawn[0].equal(drawn[2])
    assert not drawn[0].equal(drawn[1])
    rates = ClickMatrix().probabilities(labels, max_label=4)[0]
    np.testing.assert_allclose(log.clicks / log.impressions[0], rates, atol=1e-6)
    errors = np.sqrt(rates * (1 - rates) / 80_000)
    assert (np.abs(torch.cat(drawn[:2]).double().mean(dim=0).numpy() - rates) < 4 * errors).all()


def test_the_shares_of_sampled_sessions_are_what_is_sampled_without_shares() -> None:
    log = _sessions()
    inputs = inputs_of(log.features)
    lists, drawn = TrainingLists.of_log(log, inputs, pairs=True), np.array([0, 1, 1, 0, 0, 1, 1])
    whole = lists.batch(drawn, sessions=True, random=_stream)
    assert whole.pairs is not None
    for share in (np.array([0, 3, 4]), np.array([1, 2, 5, 6])):
        part = lists.batch(drawn, share=share, sessions=True, random=_stream)
        width, documents = part.mask.shape[1], np.isin(np.repeat(np.arange(7), whole.mask.sum(1)), share)
        assert part.pairs is not None
        assert part.mask.equal(whole.mask[share, :width])
        assert part.clicks.equal(whole.clicks[share, :width])
        assert part.pairs.equal(whole.pairs[share, :width, :width])
        assert part.documents.preprocessed.equal(whole.documents.preprocessed[documents])
        assert part.factors.equal(whole.factors[documents])


def _noise(lists: TrainingLists, drawn: list[int], share: list[int] | None = None, *, numbers: int = 2) -> Floats:
    part = None if share is None else np.array(share)
    found = lists.batch(np.array(drawn), share=part, noise=numbers, random=_stream).noise
    assert found is not None
    noise: Floats = found.numpy()
    return noise


def test_noise_is_uniform_with_so_many_numbers_per_document() -> None:
    noise = _noise(_lists(_log([4, 1], [10, 10])), [0, 1] * 4_000, numbers=3)
    assert noise.shape == (5 * 4_000, 3)
    assert ((noise >= 0) & (noise < 1)).all()
    for column in noise.T:
        counts = np.histogram(column, bins=10, range=(0, 1))[0]
        assert (np.abs(counts - 2_000) < 5 * np.sqrt(2_000)).all()
    assert (np.abs(np.corrcoef(noise.T) - np.eye(3)) < 4 / np.sqrt(len(noise))).all()


def test_the_noise_of_two_shares_put_together_is_that_of_the_whole_batch() -> None:
    lists, drawn = _lists(_log([4, 1, 3], [10, 10, 10])), [2, 0, 1, 0, 2]
    whole = np.split(_noise(lists, drawn), np.cumsum([3, 4, 1, 4]))
    first, second = _noise(lists, drawn, [0, 2, 4]), _noise(lists, drawn, [1, 3])
    np.testing.assert_array_equal(first, np.concatenate([whole[0], whole[2], whole[4]]))
    np.testing.assert_array_equal(second, np.concatenate([whole[1], whole[3]]))


def test_noise_leaves_sampled_sessions_alone_and_is_only_there_if_asked_for() -> None:
    lists, drawn = _lists(_log([4], [50])), np.zeros(100, dtype=np.int64)
    with_noise = lists.batch(drawn, sessions=True, noise=1, random=_stream)
    without = lists.batch(drawn, sessions=True, random=_stream)
    assert without.noise is None
    assert with_noise.clicks.equal(without.clicks)


def test_a_few_features_are_scaled_but_not_normalised() -> None:
    features = np.random.default_rng(0).normal(size=(40, 1)).astype(np.float32)
    prepared = inputs_of(features).gather(torch.arange(40)).numpy()
    np.testing.assert_allclose(prepared, FeatureScaling.fit(features).apply(features))


def test_inputs_too_large_for_memory_are_prepared_batch_by_batch_with_the_same_result() -> None:
    features = np.random.default_rng(0).normal(size=(40, 20)).astype(np.float32)
    scaling = FeatureScaling.fit(features)
    rows = torch.tensor([3, 3, 39, 0])
    preprocessing = Preprocessing(scaling)
    once, lazily = Inputs(features, preprocessing), Inputs(features, preprocessing, in_memory=0)
    torch.testing.assert_close(once.gather(rows), lazily.gather(rows))
    scaled = scaling.apply(features)[rows]
    centred = scaled - scaled.mean(1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(once.gather(rows).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_factor_totals_are_those_of_each_combination_of_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ragged, "SPAN", 9)
    log = _log([4, 1, 10, 3, 2, 7, 5], [3, 1, 10, 2, 8, 1, 4])
    levels, impressions, clicks = _lists(log).factor_totals()
    expected: dict[tuple[int, int], list[int]] = {}
    for number in range(log.lists):
        for row in range(log.offsets[number], log.offsets[number + 1]):
            total = expected.setdefault((log.factors[0].values[row], log.factors[1].values[row]), [0, 0])
            total[0] += log.impressions[number]
            total[1] += log.clicks[row]
    found = {(a, b): [shown, clicked] for (a, b), shown, clicked in zip(levels, impressions, clicks, strict=True)}
    assert found == expected


def test_any_number_of_levels_can_be_combined() -> None:
    log = _log([4, 3], [2, 5])
    many = [BiasFactor(name, log.factors[1].values * 99_999, tuple(map(str, range(100_000)))) for name in "abcd"]
    levels, impressions, _ = _lists(replace(log, factors=(log.factors[0], *many))).factor_totals()
    assert levels.shape[1] == 5
    assert set(levels[:, 1:].ravel().tolist()) == {0, 99_999}
    assert impressions.sum() == 4 * 2 + 3 * 5


def test_lists_with_a_click_keep_all_that_belongs_to_them() -> None:
    log = _log([3, 1, 4, 2], [5, 5, 5, 5])
    clicks = log.clicks.copy()
    clicks[3:8] = 0
    lists = _lists(replace(log, clicks=clicks))
    assert lists.clicked.tolist() == [True, False, False, True]
    batch = replace(lists.batch(np.arange(4), noise=2, random=_stream), weights=torch.tensor([1.0, 2.0, 3.0, 4.0]))
    kept = batch.clicked()
    assert kept.documents.rows.tolist() == [0, 1, 2, 8, 9]
    assert kept.mask.sum(dim=1).tolist() == [3, 2]
    assert kept.weights is not None
    assert kept.weights.tolist() == [1.0, 4.0]
    assert batch.noise is not None
    assert kept.noise is not None
    torch.testing.assert_close(kept.noise, batch.noise[[0, 1, 2, 8, 9]])
    torch.testing.assert_close(kept.factors, batch.factors[[0, 1, 2, 8, 9]])
    torch.testing.assert_close(kept.clicks, batch.clicks[[0, 3]])
    # A click where there is no document is none.
    assert len(replace(batch, clicks=batch.clicks + (~batch.mask).float()).clicked().mask) == 2

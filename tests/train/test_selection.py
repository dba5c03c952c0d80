from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.relevance.documents import inputs_of

from ultr.data.click_log import ClickLog
from ultr.datasets.splits import Splits
from ultr.errors import DataError
from ultr.methods import LabelBaseline, Vectorization
from ultr.methods.factors import factors_of
from ultr.metrics import ndcg
from ultr.relevance import MLP
from ultr.relevance.inputs import all_documents
from ultr.train.selection import CHUNK, ClickValidation, LabelValidation, chunks


def test_held_out_clicks_are_worth_minus_the_mean_loss_of_an_impression(small_log: ClickLog) -> None:
    log = replace(small_log, impressions=small_log.impressions + np.arange(small_log.lists) * 100)
    method = Vectorization(relevance=MLP(hidden=(8,)), base_hidden=(4,))
    inputs = inputs_of(log.features)
    lists = method.training_lists(log, inputs)
    model = method.build(64, factors_of(log), seed=0)
    stage = method.stages(model.objective, lists, 1)[0]
    r = model.outputs(all_documents(inputs), ["relevance"]).detach().double()
    total = 0.0
    for number in range(log.lists):
        shown = slice(log.offsets[number], log.offsets[number + 1])
        logits = r[torch.from_numpy(log.documents[shown])].sum(-1)
        total -= float(torch.log_softmax(logits, 0) @ torch.from_numpy(log.clicks[shown]).double())
    assert ClickValidation(lists)(model, stage) == pytest.approx(-total / log.impressions.sum(), rel=1e-5)


def test_of_a_large_held_out_log_lists_are_drawn_in_proportion_to_their_impressions(small_log: ClickLog) -> None:
    log = replace(small_log, impressions=small_log.impressions + np.arange(small_log.lists) * 100)
    method = Vectorization(relevance=MLP(hidden=(8,)), base_hidden=(4,))
    lists = method.training_lists(log, inputs_of(log.features))
    model = method.build(64, factors_of(log), seed=0)
    stage = method.stages(model.objective, lists, 1)[0]
    drawn, shares = ClickValidation(lists, most=log.lists - 1), log.impressions / log.impressions.sum()
    counts = np.bincount(drawn._chosen, drawn._weights, minlength=log.lists)
    assert (np.abs(counts - shares * (log.lists - 1)) < 1).all()
    few = ClickValidation(lists, most=log.lists // 2)(model, stage)
    assert few == ClickValidation(lists, most=log.lists // 2)(model, stage)
    assert few == pytest.approx(ClickValidation(lists)(model, stage), rel=0.1)


def test_labels_are_worth_the_mean_ndcg_at_10_of_queries_with_a_relevant_document(small: Splits) -> None:
    method = LabelBaseline(relevance=MLP(hidden=(8,), steps=1))
    ranker = method.fit(small.train).ranker_
    blank = replace(small.test, labels=np.where(np.arange(small.test.documents) < 30, 0, small.test.labels))
    lists = method.training_lists(blank, ranker.inputs(blank.features))
    stage = method.stages(ranker.objective, lists, 1)[0]
    value = LabelValidation(blank, ranker.preprocessing)(ranker.model, stage)
    by_query = ndcg(ranker.score(blank.features, blank.offsets), blank.labels, blank.offsets, cutoff=10)
    assert np.isnan(by_query).any()
    assert value == pytest.approx(np.nanmean(by_query))


def test_validation_lists_without_a_relevant_document_are_refused(small: Splits) -> None:
    blank = replace(small.validation, labels=np.zeros_like(small.validation.labels))
    with pytest.raises(DataError, match="no query of the validation data has a relevant document"):
        LabelBaseline(relevance=MLP(hidden=(8,), steps=1)).fit(small.train, validation=blank)


def test_labels_become_gains(small: Splits) -> None:
    inputs = inputs_of(small.train.features)
    lists = LabelBaseline().training_lists(small.train, inputs)
    np.testing.assert_allclose(lists.clicks, np.array([0, 1, 3, 7, 15])[small.train.labels] / 16)


def test_chunks_hold_every_list_once_and_stay_small_with_padding() -> None:
    lengths = np.concatenate([np.ones(3_000, dtype=int), [0, 6_000, 0], np.full(500, 30), [3 * CHUNK], [1]])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    groups = list(chunks(offsets))
    assert np.concatenate(groups).tolist() == np.flatnonzero(lengths).tolist()
    for group in groups:
        assert len(group) == 1 or len(group) * lengths[group].max() <= CHUNK
    assert len(groups) < 10
    assert list(chunks(np.array([0, 0, 0]))) == []

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from importlib import import_module

import numpy as np
import pytest

from ultr.arrays import Integers
from ultr.bias import GROUPINGS, RankTest, ScalarTest, scalar_test
from ultr.bias.scalar_test import _by_halves
from ultr.clicks.registry import click_model
from ultr.data.cells import Cells
from ultr.data.click_log import ClickLog
from ultr.datasets.letor_like import letor_like
from ultr.errors import DataError
from ultr.simulation.log import simulate

MODULE = import_module("ultr.bias.scalar_test")


@cache
def _log(name: str, *, impressions: int = 30_000, rankings: int = 10) -> tuple[ClickLog, Integers]:
    judged = letor_like(train_queries=60, validation_queries=1, test_queries=1).train
    noise = 0.5 if rankings > 1 else 0.0
    model = click_model(name)
    log = simulate(judged, model, impressions=impressions, svm_share=0.2, rankings=rankings, noise=noise)
    return log, judged.labels


@pytest.fixture
def few_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "SPLITS", 3)


def _thin(log: ClickLog, reason: str, **options: object) -> None:
    found = scalar_test(log, samples=9, **options)  # type: ignore[arg-type]
    assert found.test is None
    assert found.answer == "cannot tell"
    assert reason in str(found.reason)


@pytest.mark.parametrize(("name", "answer"), [("position-based", "yes"), ("trust", "no")])
def test_labels_scores_and_clicks_alone_give_the_same_answer(name: str, answer: str) -> None:
    log, labels = _log(name)
    scores = labels + np.random.default_rng(0).normal(scale=0.5, size=len(labels))
    tests = [
        scalar_test(log, labels=labels, samples=39),
        scalar_test(log, scores=scores, samples=39),
        scalar_test(log, samples=39),
    ]
    assert [test.grouping for test in tests] == list(GROUPINGS[:3])
    for test in tests:
        assert test.answer == answer
        assert test.reason is None
        assert test.dispersion is not None
        assert 0 < test.clicks < test.impressions <= log.impressions.sum() * 10
        assert 0 < test.documents <= len(labels)
    # All clicked documents at several positions count, but by clicks only those of half of the lists.
    assert tests[2].impressions < 0.6 * tests[0].impressions


def test_documents_that_do_not_move_are_tested_by_label_with_a_caveat() -> None:
    log, labels = _log("trust", rankings=1)
    found = scalar_test(log, labels=labels, samples=39)
    assert (found.grouping, found.answer) == ("labels", "no")
    assert "equally relevant" in found.caveats[0]
    assert found.impressions == np.repeat(log.impressions, log.lengths).sum()
    _thin(log, "shown at two positions")


def test_a_log_that_is_too_small_cannot_tell() -> None:
    log, labels = _log("position-based", impressions=600)
    small = log.select(np.arange(40))
    found = scalar_test(small, labels=labels, samples=39)
    assert found.test is not None
    assert found.test.power is not None
    assert found.test.power < 0.8
    assert found.answer == ("cannot tell" if found.test.scalar else "no")


def test_two_lists_a_query_are_enough_where_clicks_are_independent(few_halves: None) -> None:
    log, _ = _log("trust", impressions=60_000, rankings=2)
    found = scalar_test(log, samples=39)
    assert found.grouping == "documents by clicks"
    assert found.test is not None


def test_impressions_are_shared_out_where_no_document_has_a_group_and_moved(
    few_halves: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups of documents that stayed and moved documents without a group are there, but no test can use them."""
    grouped = MODULE.list_click_groups

    def apart(log: ClickLog, *, seed: int) -> tuple[Integers, Cells]:
        groups, half = grouped(log, seed=seed)
        groups = np.append(groups, 0)
        groups[half.documents[half.moved()]] = -1
        return groups, half

    log, _ = _log("position-based")
    monkeypatch.setattr(MODULE, "list_click_groups", apart)
    assert (apart(log, seed=0)[0] >= 0).any()
    found = scalar_test(log, samples=9)
    assert found.reason is None
    assert found.test is not None


def test_thin_logs_give_a_reason() -> None:
    log, _ = _log("position-based", impressions=600)
    _thin(replace(log, clicks=np.zeros_like(log.clicks)), "no clicks")
    _thin(log.select(np.array([], dtype=np.int64)), "no clicks")
    top = ClickLog.of(features=np.zeros((3, 1)), documents=[0, 1, 2], offsets=[0, 1, 2, 3], clicks=[1, 0, 1])
    _thin(top, "two positions")
    _thin(top, "two positions", labels=np.array([0, 1, 0]))
    _thin(top, "two positions", labels=np.full(3, -1))


def test_labels_or_scores_that_tell_nothing_leave_it_to_the_clicks(few_halves: None) -> None:
    log, labels = _log("position-based", impressions=600)
    alone = scalar_test(log, samples=9)
    for useless in (
        scalar_test(log, labels=np.zeros_like(labels), samples=9),
        scalar_test(log, scores=np.zeros(len(labels)), samples=9),
    ):
        assert useless.grouping == alone.grouping == "documents by clicks"
        assert useless.test is not None
        assert alone.test is not None
        assert useless.test.p_values == alone.test.p_values


def test_labels_must_be_those_of_the_documents() -> None:
    log, labels = _log("position-based", impressions=600)
    with pytest.raises(DataError, match="labels must have one number for each of"):
        scalar_test(log, labels=labels[:-1])


def test_of_a_large_log_the_queries_with_the_most_impressions_are_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    log, labels = _log("position-based")
    often = np.where(log.queries < 5, 20, 1)
    log = replace(log, impressions=log.impressions * often, clicks=log.clicks * often.repeat(log.lengths))
    rows = int(log.lengths[log.queries < 5].sum())
    monkeypatch.setattr(MODULE, "MOST_ROWS", rows)
    whole, few = (scalar_test(part, labels=labels, samples=9) for part in (log, log.select(log.queries < 5)))
    assert isinstance(whole, ScalarTest)
    assert (whole.documents, whole.impressions, whole.clicks) == (few.documents, few.impressions, few.clicks)


def test_the_middle_of_several_halves_speaks_for_all_at_twice_its_p_value() -> None:
    def half(p: float, *, level: float, samples: int, seed: int, power: bool = True, largest: int = 3) -> ScalarTest:
        assert level == 0.025
        rank = RankTest(np.eye(2), (1.0,), (p,), 1 if p > level else largest, level, 0.9 if power else None)
        return ScalarTest(rank, "documents by clicks", 1, 1, 1, None, None, ())

    for p_values, combined, scalar in (([0.9, 0.01, 0.3], 0.6, True), ([0.02, 0.01, 0.9], 0.04, False)):
        found = _by_halves([partial(half, p) for p in p_values], level=0.05, samples=9, seed=0).test
        assert found is not None
        assert found.p_values[0] == pytest.approx(combined)
        assert (found.dimension, found.level, found.power) == (1 if scalar else 3, 0.05, 0.9)

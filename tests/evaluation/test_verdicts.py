"""Values, evidence and halves by their definitions, from both sides of every threshold."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from ultr.counted import and_list
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.evaluation import Assumption, Comparison, CounterfactualValue, Evidence, UnseenPart, Valuation, gap_closed
from ultr.evaluation.comparison import QUESTIONS, signed_texts
from ultr.evaluation.halves import Half, Halves, _positive, _some_queries
from ultr.evaluation.placement import Placement, ranks_of
from ultr.evaluation.trial import CANNOT_TELL, Answer
from ultr.evaluation.unseen_part import _none, _were
from ultr.metrics import Interval

HALVES = import_module("ultr.evaluation.halves")
HEAD = import_module("ultr.evaluation.head_queries")
LOG = ClickLog.of(features=np.zeros((2, 1)), documents=[0, 1], offsets=[0, 2], clicks=[1, 0], impressions=[4])


def test_values_are_shown_with_their_evidence() -> None:
    value = CounterfactualValue(np.array([1.0, 1.0]), np.array([4.0, 4.0]), 9.0, 1_234.4, 0.123, 0.0456)
    answers: dict[str, Any] = {name: Answer(CANNOT_TELL, "nothing tells") for name in QUESTIONS}
    section = Comparison(
        **answers,
        values={"new": value},
        propensities=None,
        assumption=Assumption(None, None, "Not tested."),
        unseen=UnseenPart(LOG, "all 1 queries of the log"),
        names=("old", "new"),
    ).section()
    assert section.advice == "Not tested."
    assert section.tables[0].rows == [
        {
            "ranker": "new",
            "value": "0.250 .250-.250",
            "effective clicks": "1,234",
            "clipped": "12.3%",
            "never shown": "4.6%",
        }
    ]


def test_differences_have_their_sign() -> None:
    assert signed_texts(Interval(0.1, -0.05, 0.25)) == {"by": "+0.1000", "low": "-0.0500", "high": "+0.2500"}
    assert signed_texts(None) == {"by": "", "low": "", "high": ""}
    assert signed_texts(Interval(0.1, np.nan, np.nan)) == {"by": "+0.1000", "low": "", "high": ""}


@pytest.mark.parametrize(
    ("names", "listed", "were"),
    [
        (["a"], "a", "a was"),
        (["a", "b"], "a and b", "a and b were"),
        (["a", "b", "c"], "a, b and c", "a, b and c were"),
    ],
)
def test_names_are_listed_as_in_a_sentence(names: list[str], listed: str, were: str) -> None:
    assert (and_list(names), _were(names)) == (listed, were)


def test_nobody_is_named_by_how_many_there_are() -> None:
    assert [_none(count) for count in (1, 2, 3)] == ["the model was not", "neither model was", "no model was"]


@pytest.mark.parametrize(("value", "share"), [(0.6, 0.0), (0.65, 0.25), (0.8, 1.0), (0.5, -0.5), (0.9, 1.5)])
def test_the_gap_is_closed_from_the_lower_to_the_upper_bound(value: float, share: float) -> None:
    assert gap_closed(value, lower=0.6, upper=0.8) == pytest.approx(share)
    assert math.isnan(gap_closed(value, lower=0.6, upper=0.6))


def _evidence() -> Evidence:
    """Three documents of one query in one order, four times, with 2, 0 and 1 clicks."""
    log = ClickLog.of(
        features=np.arange(3.0)[:, None], documents=[0, 1, 2], offsets=[0, 3], clicks=[2, 0, 1], impressions=[4]
    )
    return Evidence.of(log)


@pytest.mark.parametrize(
    ("scores", "first", "ties"),
    [
        ([3.0, 2.0, 1.0], [0, 1, 2], [1, 1, 1]),
        ([1.0, 2.0, 2.0], [2, 0, 0], [1, 2, 2]),
        ([1.0, 1.0, 1.0], [0, 0, 0], [3, 3, 3]),
    ],
)
def test_tied_documents_share_their_ranks(scores: list[float], first: list[int], ties: list[int]) -> None:
    evidence = _evidence()
    assert [each.tolist() for each in ranks_of(np.array(scores), evidence)] == [first, ties]
    (part,) = evidence.parts()
    by_rank = np.array([1.0, 0.5])
    whole = np.append(by_rank, 0.0)
    expected = [whole[start : start + count].mean() for start, count in zip(first, ties, strict=True)]
    assert Placement.ranked(np.array(scores), evidence).weights(part)(by_rank).tolist() == pytest.approx(expected)


def test_ranks_do_not_run_on_from_one_query_to_the_next() -> None:
    log = ClickLog.of(
        features=np.zeros((4, 1)), documents=[0, 1, 2, 3], offsets=[0, 2, 4], clicks=[1, 0, 0, 1], queries=["a", "b"]
    )
    first, ties = ranks_of(np.array([1.0, 2.0, 2.0, 1.0]), Evidence.of(log))
    assert (first.tolist(), ties.tolist()) == ([1, 0, 0, 1], [1, 1, 1, 1])


def test_positions_beyond_the_ranks_that_count_weigh_nothing() -> None:
    evidence = _evidence()
    (part,) = evidence.parts()
    assert Placement.as_shown(evidence).weights(part)(np.array([1.0, 0.5])).tolist() == [1.0, 0.5, 0.0]
    assert Placement.as_shown(evidence).weights(part)(np.array([1.0, 0.5, 0.25, 0.1])).tolist() == [1.0, 0.5, 0.25]


def test_what_is_clipped_is_missing_from_the_value() -> None:
    """theta is 1, 0.1, 0.01; with a smallest share of 0.05 the third document is divided by 0.05, not by 0.01."""
    evidence = _evidence()
    value = Valuation([1.0, 0.1, 0.01], smallest=0.05).of_scores(np.array([3.0, 2.0, 1.0]), evidence)
    weights = np.array([1.0, 0.1, 0.01])
    kept = 2 * 1.0 / 1.0 + 1 * 0.01 / 0.05
    full = 2 * 1.0 / 1.0 + 1 * 0.01 / 0.01
    assert value.clipped == pytest.approx(1 - kept / full)
    squared = 2 * 1.0**2 + 1 * (0.01 / 0.05) ** 2
    assert value.effective_clicks == pytest.approx(kept**2 / squared)
    assert value.clicks == 3.0
    assert value.unsupported == 0.0
    assert value.totals.tolist() == pytest.approx([float(weights @ (np.array([2, 0, 1]) / [1.0, 0.1, 0.05]))])


def test_ranks_beyond_the_cutoff_have_no_clicks() -> None:
    value = Valuation([1.0, 0.5, 0.25], cutoff=2).of_scores(np.array([3.0, 2.0, 1.0]), _evidence())
    assert value.clicks == 2.0


@pytest.mark.parametrize(("rates", "draws"), [([0.4, 0.2], 0.1), ([0.4, 0.2], 0.2)])
def test_the_halves_are_apart_by_their_rates_in_standard_errors(rates: list[float], draws: float) -> None:
    shape = np.linspace(-1, 1, 21)

    def half(factor: float, spread: float) -> Half:
        known: Any = type("Known", (), {"linked": np.ones(21, dtype=np.bool_)})()
        values = factor * np.array(rates)
        return Half(known, values, values * np.exp(spread * shape)[:, None])

    found = Halves(half(2.0, draws), half(1.0, 0.0))
    assert found.separation(np.array([0.5, 0.5])) == pytest.approx(np.log(2) / (draws * shape.std()))


def test_slopes_that_chance_made_flat_hardly_rise() -> None:
    assert _positive(np.array([[1.0, 0.5, 0.001, -3.0]])).tolist() == [[1.0, 0.5, 0.03, 0.03]]


@pytest.mark.parametrize(("most", "whole"), [(300, True), (299, False)])
def test_of_a_larger_log_some_queries_are_halved(
    most: int,
    whole: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = ClickLog.of(
        features=np.zeros((300, 1)),
        documents=np.arange(300),
        offsets=np.arange(0, 301, 2),
        clicks=np.ones(300),
        queries=np.arange(150),
    )
    monkeypatch.setattr(HALVES, "MOST_SHOWN", most)
    found = _some_queries(log, seed=0)
    assert (found is log) is whole
    monkeypatch.setattr(HALVES, "MOST_SHOWN", 100)
    third = _some_queries(log, seed=0)
    assert 30 < third.lists < 70
    assert len(third.features) == len(third.documents)


@pytest.mark.parametrize(("documents", "step"), [(50_000, 1), (50_001, 2), (150_000, 3), (150_001, 4)])
def test_a_prior_is_fitted_to_queries_at_even_distances(documents: int, step: int) -> None:
    offsets = ragged.from_lengths(np.array([documents - 9, *[1] * 9]))
    assert HEAD._some(offsets).tolist() == list(range(0, 10, step))

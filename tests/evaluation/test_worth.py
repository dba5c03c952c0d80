"""Rankings compared by the value of what follows a click."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from tests.evaluation.test_comparison import NOISE, POSITIONS, THETA, By, judged
from tests.evaluation.test_counterfactual import UNCLIPPED, ByFirstFeature, two_queries

from ultr.arrays import Doubles
from ultr.clicks.position_based import PositionBased
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.errors import DataError, OptionError
from ultr.evaluation import Candidates, Evidence, Valuation, compare
from ultr.evaluation.placement import placement_by
from ultr.simulation.log import simulate

PROPENSITIES = np.array([1.0, 0.5, 0.25])


def with_purchases(purchases: list[int]) -> ClickLog:
    log = two_queries()
    return ClickLog.of(
        features=log.features,
        documents=log.documents,
        offsets=log.offsets,
        clicks=log.clicks,
        impressions=log.impressions,
        queries=["q", "q", "r"],
        signals={"purchase": purchases},
    )


def test_a_document_is_worth_what_followed_its_clicks_over_its_examination() -> None:
    """Documents 0 to 4 have 5, 3, 1, 0, 2 clicks, 2, 1, 0, 0, 2 purchases and mean examinations .9 .6 .25 1 .5."""
    log = with_purchases([1, 1, 0, 0, 1, 0, 0, 2])
    evidence = Evidence.of(log, Candidates.shown(log), value={"click": 1, "purchase": 20})
    (part,) = evidence.parts()
    assert part.amounts.tolist() == [45, 23, 1, 0, 42]
    assert part.squares.tolist() == [5 + 2 * 400, 3 + 400, 1, 0, 2 + 2 * 400]
    (counted,) = evidence.parts(clicked=True)
    assert counted.amounts.tolist() == [45, 23, 1, 42]
    valuation = Valuation(PROPENSITIES, smallest=UNCLIPPED)
    found = valuation.of(placement_by(ByFirstFeature(), evidence), evidence)
    # Documents 2 1 0 and 4 3 are ranked in this order.
    by_hand = [1 * 1 / 0.25 + 0.5 * 23 / 0.6 + 0.25 * 45 / 0.9, 1 * 42 / 0.5]
    np.testing.assert_allclose(found.totals, by_hand)
    weights = np.array([0.25 / 0.9, 0.5 / 0.6, 1 / 0.25, 0.5, 1 / 0.5])
    assert found.clicks == 11
    assert found.effective_clicks == pytest.approx((part.amounts @ weights) ** 2 / (part.squares @ weights**2))


def test_clicks_without_relevance_are_taken_off_with_the_value_that_they_have() -> None:
    """Where a fifth of the clicks on a document is due to trust, so is a fifth of its value."""
    log = with_purchases([1, 1, 0, 0, 1, 0, 0, 2])
    floor = np.array([0.1, 0.05, 0.02])
    valuation = Valuation(PROPENSITIES, smallest=UNCLIPPED, floor=floor)
    (plain,), (valued,) = (tuple(Evidence.of(log, value=value).parts()) for value in (None, {"purchase": 1}))
    relevance, worth = valuation.relevance_of(plain)[2], valuation.relevance_of(valued)[2]
    # Document 3 has no click, and so the 5 purchases per 11 clicks of all documents.
    per_click = np.array([2 / 5, 1 / 3, 0, 5 / 11, 1])
    assert relevance[3] < 0
    np.testing.assert_allclose(worth, relevance * per_click)


def test_twice_the_value_of_a_click_is_twice_the_clicks_also_where_some_are_taken_off() -> None:
    log = two_queries()
    valuation = Valuation(PROPENSITIES, smallest=UNCLIPPED, floor=np.array([0.1, 0.05, 0.02]))
    (plain,), (double,) = (tuple(Evidence.of(log, value=value).parts()) for value in (None, {"click": 2}))
    np.testing.assert_allclose(valuation.relevance_of(double)[2], 2 * valuation.relevance_of(plain)[2])


def test_value_without_a_click_counts_as_a_click_would() -> None:
    log = with_purchases([0, 0, 0, 0, 0, 0, 3, 0])
    (part,) = Evidence.of(log, value={"purchase": 2}).parts(clicked=True)
    assert part.candidates.tolist() == [0, 1, 2, 3, 4]
    assert Valuation(PROPENSITIES).relevance_of(part)[2].tolist() == [0, 0, 0, 6, 0]


def test_given_candidates_have_the_same_worth() -> None:
    log = with_purchases([1, 1, 0, 0, 1, 0, 0, 2])
    candidates = Candidates(np.array([5, 1, 0, 4, 3]), np.array([0, 3, 5]))
    (part,) = Evidence.of(log, candidates, value={"purchase": 1}).parts()
    assert part.documents.tolist() == [5, 1, 0, 4, 3]
    assert part.amounts.tolist() == [0, 1, 2, 2, 0]


def _bought(lists: JudgedLists) -> Doubles:
    """Purchases per click on each document."""
    return np.where(lists.features[:, 2] > 0.5, 0.9, 0.0)


@cache
def shop() -> ClickLog:
    """Clicks go by the grade, feature 0; who has clicked mostly buys if the third feature is high."""
    lists = judged()
    return simulate(
        lists,
        PositionBased(examination=THETA),
        scores=lists.features[:, 1].astype(np.float64),
        impressions=40 * lists.queries,
        rankings=4,
        noise=0.3,
        signals={"purchase": _bought(lists)},
    )


def test_clicks_as_the_value_change_nothing_and_weights_are_a_unit() -> None:
    log, grades = shop(), By(0)
    plain, one, seven = (
        compare(NOISE, grades, log, propensities=THETA, value=value) for value in (None, {"click": 1}, {"click": 7})
    )
    assert plain.value.difference == one.value.difference
    assert one.value_against_raw_clicks.difference == plain.value_against_raw_clicks.difference
    assert plain.value.difference is not None
    assert seven.value.difference is not None
    assert seven.value.difference.mean == pytest.approx(7 * plain.value.difference.mean)
    assert seven.values["B"].effective_clicks == pytest.approx(plain.values["B"].effective_clicks)
    assert (plain.counted, seven.counted) == ("clicks", "value (7 click)")
    assert plain.as_json()["value_of"] == "clicks"


def test_what_is_clicked_and_what_is_bought_have_different_winners() -> None:
    log, grades = shop(), By(0)
    by_clicks = compare(NOISE, grades, log, names=("price", "grade"))
    by_value = compare(NOISE, grades, log, names=("price", "grade"), value={"click": 0, "purchase": 3})
    assert by_clicks.value.winner == "grade"
    assert by_value.value.winner == "price"
    assert "the difference in expected value (3 purchase) on an impression is -" in by_value.value.reason
    assert by_clicks.list_likelihood == by_value.list_likelihood
    sentence = "Rankings are compared by value (3 purchase), which is assumed to follow a click wherever it was"
    assert sentence in by_value.section().advice
    assert "compared by" not in by_clicks.section().advice


def test_the_estimate_is_the_value_that_users_would_bring() -> None:
    """Purchases per page by the probabilities of the world itself."""
    lists, model = judged(), PositionBased(examination=THETA)
    bought = _bought(lists)
    relevance = model.rates(lists.max_label)[lists.labels, 0] / model.rates(lists.max_label)[-1, 0]
    expected = {}
    for name, feature in (("price", 2), ("grade", 0)):
        ranks = np.argsort(
            np.argsort(-lists.features[:, feature].reshape(-1, POSITIONS), axis=1, kind="stable"), axis=1
        )
        examined = np.asarray(THETA)[ranks] * model.rates(lists.max_label)[-1, 0] / THETA[0]
        expected[name] = float((examined * (relevance * bought).reshape(-1, POSITIONS)).sum(axis=1).mean())
    found = compare(NOISE, By(0), shop(), names=("price", "grade"), propensities=THETA, value={"purchase": 1})
    difference = found.value.difference
    assert difference is not None
    assert difference.low < expected["grade"] - expected["price"] < difference.high
    for name, value in expected.items():
        assert found.values[name].value == pytest.approx(value, rel=0.1)


def test_a_value_needs_its_signals_and_no_model_of_clicks() -> None:
    log = shop()
    with pytest.raises(DataError, match="no signal 'cart' to compare by; its signals are click, purchase"):
        compare(NOISE, By(0), log, propensities=THETA, value={"cart": 1})
    with pytest.raises(OptionError, match="must have a weight above 0"):
        compare(NOISE, By(0), log, propensities=THETA, value={"click": 0})
    with pytest.raises(OptionError, match="doubly-robust models clicks and not their value"):
        compare(
            NOISE,
            By(0),
            log,
            propensities=THETA,
            weighting="doubly-robust",
            relevance=np.zeros(len(log.features)),
            value={"purchase": 1},
        )

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from tests.bias.explored_world import Context, adjacent, expected_log

from ultr.arrays import Doubles, Floats, Integers
from ultr.clicks.model import EXAMINATION
from ultr.clicks.position_based import PositionBased
from ultr.clicks.registry import click_model
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.provenance import Provenance
from ultr.datasets.splits import Splits
from ultr.errors import DataError, OptionError
from ultr.evaluation import Assumption, Candidates, QueryLikelihoods, compare
from ultr.methods import ClickBaseline, LabelBaseline, Vectorization
from ultr.metrics import Interval, log_likelihoods
from ultr.pages import Verdict
from ultr.relevance import MLP
from ultr.simulation.log import simulate

POSITIONS = 6
THETA = EXAMINATION[:POSITIONS]


def judged(queries: int = 150) -> JudgedLists:
    """Six documents a query; the features are the grade, a poor guess of it, and noise."""
    random = np.random.default_rng(0)
    labels = random.integers(5, size=POSITIONS * queries)
    features = np.stack([labels, labels + 4 * random.normal(size=len(labels)), random.normal(size=len(labels))], axis=1)
    return JudgedLists.of(
        features=features, labels=labels, offsets=np.arange(0, len(labels) + 1, POSITIONS), max_label=4
    )


def log_of(lists: JudgedLists, *, noise: float = 0.3, impressions: int = 40, seed: int = 0) -> ClickLog:
    return simulate(
        lists,
        PositionBased(examination=THETA),
        scores=lists.features[:, 1].astype(np.float64),
        impressions=impressions * lists.queries,
        rankings=4 if noise else 1,
        noise=noise,
        seed=seed,
    )


class By:
    """A ranker by one feature, which thinks that each document is clicked with one probability."""

    provenance = Provenance()

    def __init__(self, feature: int, chance: float = 0.2) -> None:
        self.feature, self.chance = feature, chance

    def score(self, features: Floats, offsets: Integers) -> Floats:
        return features[:, self.feature]

    def click_shares(self, log: ClickLog) -> Doubles:
        return 1 / np.repeat(log.lengths, log.lengths)

    def click_probabilities(self, log: ClickLog) -> Doubles:
        return np.full(len(log.clicks), self.chance)


GRADES, GUESSES, NOISE = By(0), By(1), By(2)
UNTESTED = Assumption(None, None, "The log was not tested.")
"""Spares a comparison the test of the log, which takes most of its time."""


def test_the_better_ranker_is_told_from_the_worse_whichever_comes_first() -> None:
    log = log_of(judged())
    forth, back = (compare(*pair, log, assumption=UNTESTED) for pair in ((GUESSES, GRADES), (GRADES, GUESSES)))
    assert (forth.value.verdict, forth.value.winner) == ("B is better", "B")
    assert (back.value.verdict, back.value.winner) == ("A is better", "A")
    assert forth.value.difference is not None
    assert back.value.difference is not None
    assert forth.value.difference.low > 0
    assert forth.value.difference.mean == pytest.approx(-back.value.difference.mean)
    assert forth.value.difference.low == pytest.approx(-back.value.difference.high)


@pytest.mark.parametrize(("clicks", "rejected"), [("position-based", False), ("trust", True)])
def test_whether_one_number_for_each_position_is_enough_is_said(
    clicks: str,
    rejected: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(import_module("ultr.bias.scalar_test"), "SPLITS", 3)
    lists = judged(75)
    log = simulate(
        lists,
        click_model(clicks),
        scores=lists.features[:, 1].astype(np.float64),
        impressions=100_000,
        rankings=4,
        noise=0.5,
    )
    part = log.split(0.3)[1]
    assumption = compare(GUESSES, GRADES, part, swaps=log).assumption
    assert assumption == Assumption.of_log(log)
    assert assumption.rejected is rejected
    assert assumption.p_value is not None
    assert (assumption.p_value <= 0.05) is rejected
    assert ("is not enough (p" if rejected else "Nothing speaks against one number") in assumption.sentence


def test_a_log_without_swaps_cannot_test_its_propensities() -> None:
    assumption = compare(GUESSES, GRADES, log_of(judged(), noise=0)).assumption
    assert (assumption.rejected, assumption.p_value) == (None, None)
    assert "cannot be tested: no clicked document" in assumption.sentence


def test_the_better_ranker_is_better_than_what_was_shown_and_than_raw_clicks() -> None:
    log = log_of(judged())
    comparison = compare(NOISE, GRADES, log, names=("noise", "grades"), assumption=UNTESTED)
    assert comparison.value_against_shown.verdict == "grades is better"
    assert comparison.value_against_raw_clicks.verdict == "grades is better"
    assert list(comparison.values) == ["noise", "grades", "the lists as shown"]
    reverse = compare(GRADES, NOISE, log, assumption=UNTESTED)
    assert reverse.value_against_raw_clicks.winner == "raw clicks"
    assert reverse.value_against_shown.winner == "the lists as shown"


def test_a_ranker_like_raw_clicks_does_not_lose_to_them_by_chance() -> None:
    # Raw click rates know the very clicks they would be judged by, were they not taken from other pages.
    lists = replace(judged(), labels=np.full(900, 2))
    shuffled = compare(GRADES, NOISE, log_of(lists, impressions=8), propensities=THETA, assumption=UNTESTED)
    answer = shuffled.value_against_raw_clicks
    assert answer.verdict == "cannot tell"
    assert answer.difference is not None
    assert abs(answer.difference.mean) < 0.03


def test_there_are_no_raw_clicks_to_rank_by_where_every_page_was_shown_once() -> None:
    log = log_of(judged())
    log = log.select(np.unique(log.queries, return_index=True)[1])
    log = replace(log, impressions=np.ones(log.lists, dtype=np.int64), clicks=np.minimum(log.clicks, 1))
    comparison = compare(NOISE, GRADES, log, propensities=THETA, assumption=UNTESTED)
    answer = comparison.value_against_raw_clicks
    assert (answer.verdict, answer.difference) == ("cannot tell", None)
    assert answer.reason.endswith("to rank by raw clicks: no clicked document was shown in both halves")
    assert comparison.value.difference is not None


@pytest.mark.parametrize("noise", [0.5, 0.0])
def test_rankers_with_the_same_order_rank_alike_whether_or_not_propensities_are_known(noise: float) -> None:
    log = log_of(judged(), noise=noise)
    comparison = compare(GRADES, By(0), log, names=("old", "new"), assumption=UNTESTED)
    answer = comparison.value
    assert (answer.verdict, answer.winner, answer.difference) == ("they rank alike", None, Interval(0.0, 0.0, 0.0))
    queries = len(np.unique(comparison.unseen.log.queries))
    assert answer.reason == f"old and new put the documents of all {queries:,} queries in the same order"
    section = comparison.section()
    assert (section.badge, section.verdict) == ("the same", Verdict.CAREFUL)
    assert section.answer.startswith("they rank alike: old and new put")
    assert "log with swaps" not in section.advice
    assert compare(GRADES, NOISE, log, assumption=UNTESTED).value.verdict != "they rank alike"


def test_without_swaps_the_values_cannot_be_told_but_the_likelihood_can() -> None:
    comparison = compare(By(0, 0.9), By(1, 0.2), log_of(judged(), noise=0.0))
    assert comparison.value.verdict == comparison.value_against_raw_clicks.verdict == "cannot tell"
    assert comparison.value.reason.startswith("the propensities are not identified: no chain of clicked documents")
    assert comparison.value.difference is None
    assert comparison.values == {}
    assert comparison.propensities is None
    assert comparison.likelihood.verdict == "B is better"


def test_given_propensities_serve_without_swaps() -> None:
    comparison = compare(GUESSES, GRADES, log_of(judged(), noise=0.0), propensities=THETA)
    assert comparison.value.verdict == "B is better"
    np.testing.assert_array_equal(comparison.propensities, THETA)


def test_intervals_are_wider_where_the_propensities_are_estimated() -> None:
    log = log_of(judged(), noise=0.1)
    known, estimated = (
        compare(GUESSES, GRADES, log, propensities=theta, assumption=UNTESTED).value.difference
        for theta in (THETA, None)
    )
    assert known is not None
    assert estimated is not None
    assert estimated.high - estimated.low > 1.2 * (known.high - known.low)


def test_a_part_of_a_log_is_helped_by_the_swaps_of_the_whole() -> None:
    log = log_of(judged())
    rest, part = log.split(0.3)
    comparison = compare(GUESSES, GRADES, part, swaps=log, assumption=UNTESTED)
    assert comparison.propensities is not None
    np.testing.assert_allclose(comparison.propensities, np.array(THETA) / THETA[0], atol=0.15)
    assert comparison.value.verdict == "B is better"
    with pytest.raises(DataError, match="the query ids of the log"):
        compare(GUESSES, GRADES, part, swaps=replace(rest, query_ids=rest.query_ids[::-1]))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda log: {"log": log.select(log.queries < 12)}, "12 queries, fewer than 30"),
        (lambda log: {"log": log_of(judged(40), noise=0, impressions=1)}, "of equal weight, fewer than 100"),
        (lambda log: {"propensities": (1, 0.9, 0.001, 0.001, 0.001, 0.001)}, "had to be clipped"),
        (lambda log: {"candidates": _more(log)}, "was never shown by the log"),
    ],
)
def test_too_little_support_is_said_in_words(change: Any, reason: str) -> None:
    options = {"log": log_of(judged()), "propensities": THETA, "assumption": UNTESTED}
    answer = compare(GUESSES, GRADES, **(options | change(options["log"]))).value
    assert answer.verdict == "cannot tell"
    assert answer.reason.startswith("too little support")
    assert reason in answer.reason


def _more(log: ClickLog) -> Candidates:
    """The documents of the next query as candidates too, which the log never shows for this one."""
    first = np.arange(150) * POSITIONS
    documents = (first[:, None] + np.arange(2 * POSITIONS)) % (150 * POSITIONS)
    return Candidates(documents.reshape(-1), np.arange(151) * 2 * POSITIONS)


def test_likelihoods_are_those_of_the_whole_log_query_by_query() -> None:
    log = log_of(judged())
    fits = [QueryLikelihoods.of(By(0, chance), log) for chance in (0.1, 0.3)]
    impressions = np.repeat(log.impressions, log.lengths)
    means = [
        log_likelihoods(np.full(len(log.clicks), chance), log.clicks, impressions).sum() / impressions.sum()
        for chance in (0.1, 0.3)
    ]
    assert len(fits[0].totals) == 150
    assert fits[1].against(fits[0]).mean == pytest.approx(means[1] - means[0])
    assert fits[1].against_in_lists(fits[0]).mean == 0


def test_models_are_compared_by_value_and_by_likelihood(small: Splits, small_log: ClickLog) -> None:
    relevance = MLP(hidden=(16,), steps=60)
    train, held_out = small_log.split(0.5)
    click, vectors = ClickBaseline(relevance=relevance).fit(train), Vectorization(relevance=relevance).fit(train)
    comparison = compare(click, vectors, held_out, swaps=small_log, assumption=UNTESTED)
    assert comparison.likelihood.winner == comparison.list_likelihood.winner == "B"
    labels = LabelBaseline(relevance=relevance).fit(small.train)
    with_labels = compare(labels, vectors, held_out, swaps=small_log, assumption=UNTESTED)
    assert with_labels.likelihood.verdict == "cannot tell"
    assert "A does not predict these clicks" in with_labels.likelihood.reason


def test_input_that_does_not_fit_is_one_sentence() -> None:
    log = log_of(judged())
    with pytest.raises(DataError, match="the log has no click"):
        compare(GRADES, NOISE, replace(log, clicks=np.zeros_like(log.clicks)))
    with pytest.raises(OptionError, match="the log shows 6 positions, but 2 propensities"):
        compare(GRADES, NOISE, log, propensities=(1.0, 0.5), assumption=UNTESTED)
    with pytest.raises(OptionError, match="need different names"):
        compare(GRADES, NOISE, log, names=("model", "model"))
    other = By(0)
    other.feature_names = ("bm25",)  # type: ignore[attr-defined]
    with pytest.raises(DataError, match="a ranker knows 1 features, the log has 3"):
        compare(other, NOISE, log)


def test_propensities_are_those_of_exploration_and_it_is_said() -> None:
    random = np.random.default_rng(0)
    kinds = ({"x": 0.8, "y": 0.4, "z": 0.1}, {"x": 0.1, "y": 0.2, "z": 0.4})
    contexts = [Context(kinds[n % 2], adjacent(3, 0.1), pages=4_000, query=str(n)) for n in range(40)]
    log = replace(expected_log(contexts), features=random.normal(size=(3, 3)).astype(np.float32))
    found = compare(By(0), By(1), log, seed=0)
    assert found.propensities == pytest.approx((1.0, 0.5, 0.25), rel=1e-6)
    assert found.explored == 40 * 4_000 * 3
    assert "480,000 placements by exploration" in found.exploration
    plain = compare(By(0), By(1), replace(log, placements=None), seed=0)
    assert (plain.explored, plain.exploration) == (0, "")
    assert plain.propensities is not None
    assert np.abs(plain.propensities / (1.0, 0.5, 0.25) - 1).max() > 0.3

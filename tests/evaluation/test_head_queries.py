"""Rates of documents by features and clicks together, in worlds whose rates are known."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ultr.arrays import Doubles
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.errors import DataError
from ultr.evaluation.head_queries import HeadQueries, RatePrior
from ultr.methods import ClickBaseline
from ultr.methods.ranker import Ranker
from ultr.metrics import kendall_tau
from ultr.relevance import MLP

STRENGTH, DOCUMENTS = 40.0, 8
THETA = 1 / np.arange(1, DOCUMENTS + 1) ** 0.5


def drawn_rates(queries: int, random: np.random.Generator) -> tuple[Doubles, Doubles, Doubles]:
    """Scores, the mean of each prior and true rates, [queries, documents]."""
    scores = random.normal(size=(queries, DOCUMENTS))
    prior = np.exp(-1.5 + 0.6 * scores)
    return scores, prior, random.gamma(STRENGTH * prior, 1 / STRENGTH)


def test_the_prior_that_made_the_clicks_is_found() -> None:
    random = np.random.default_rng(0)
    scores, _, rates = drawn_rates(800, random)
    exposure = random.choice([3.0, 30.0, 300.0], size=rates.shape)
    clicks = random.poisson(exposure * rates).astype(np.float64)
    offsets = ragged.from_lengths(np.full(800, DOCUMENTS))
    found = RatePrior.fit(scores.ravel(), offsets, clicks.ravel(), exposure.ravel())
    assert found.level == pytest.approx(-1.5, abs=0.05)
    assert found.within == pytest.approx(0.6, abs=0.03)
    assert found.between == pytest.approx(0.6, abs=0.08)
    assert found.strength == pytest.approx(STRENGTH, rel=0.15)


def test_a_shift_or_another_unit_of_all_scores_changes_no_rate() -> None:
    random = np.random.default_rng(1)
    scores, _, rates = drawn_rates(200, random)
    exposure = np.full(rates.size, 50.0)
    clicks = random.poisson(exposure * rates.ravel()).astype(np.float64)
    offsets = ragged.from_lengths(np.full(200, DOCUMENTS))
    means = np.repeat(scores.mean(axis=1), DOCUMENTS)
    first = RatePrior.fit(scores.ravel(), offsets, clicks, exposure)
    second = RatePrior.fit(100 * scores.ravel() - 7, offsets, clicks, exposure)
    np.testing.assert_allclose(
        second.rates(100 * (scores.ravel() - means), 100 * means - 7), first.rates(scores.ravel() - means, means), 1e-2
    )


@cache
def world() -> tuple[ClickLog, Ranker, Doubles, Doubles]:
    """A log with 5, 100 or 10,000 impressions of a query, a ranker that knows the prior's order, true rates, scores."""
    random = np.random.default_rng(2)
    queries = 300
    scores, _, rates = drawn_rates(queries, random)
    impressions = np.resize([5, 100, 10_000], queries)
    order = np.argsort(random.random(scores.shape), axis=1)
    shown = np.take_along_axis(rates, order, axis=1) * THETA
    log = ClickLog.of(
        features=scores.reshape(-1, 1),
        documents=(order + DOCUMENTS * np.arange(queries)[:, None]).ravel(),
        offsets=np.arange(0, scores.size + 1, DOCUMENTS),
        clicks=random.binomial(impressions[:, None], np.minimum(shown, 1)).ravel(),
        impressions=impressions,
        queries=[f"q{query:03}" for query in range(queries)],
    )
    ranker = ClickBaseline(relevance=MLP(hidden=(8,), steps=300)).fit(log).ranker_
    return log, ranker, rates, scores


def test_clicks_rule_head_queries_and_features_rule_tail_queries() -> None:
    log, ranker, rates, _ = world()
    found = HeadQueries.of(ranker, log, propensities=THETA.tolist())
    row = found.documents.astype(np.int64)
    true = rates.ravel()[row]
    offsets = np.arange(0, len(row) + 1, DOCUMENTS)
    size = np.resize([5, 100, 10_000], 300)
    taus = {
        name: kendall_tau(given, true, offsets)
        for name, given in {
            "features": found.score,
            "clicks": found.clicks / found.exposure,
            "both": found.posterior,
        }.items()
    }
    mean = {name: [values[size == each].mean() for each in (5, 100, 10_000)] for name, values in taus.items()}
    tail, torso, head = (
        np.array([mean[name][number] for name in ("features", "clicks", "both")]) for number in range(3)
    )
    assert tail[2] > tail[0] - 0.02
    assert tail[2] > tail[1] + 0.1
    assert torso[2] > max(torso[:2]) + 0.02
    assert head[2] > head[0] + 0.2
    assert head[2] > head[1] - 0.005
    assert ((found.low <= true) & (true <= found.high)).mean() == pytest.approx(0.95, abs=0.02)


def test_each_row_is_prior_and_clicks_by_the_formula() -> None:
    log, ranker, _, _ = world()
    found = HeadQueries.of(ranker, log, propensities=THETA.tolist())
    strength = found.fitted.strength
    np.testing.assert_allclose(
        found.posterior, (strength * found.prior + found.clicks) / (strength + found.exposure), rtol=1e-12
    )
    last = log.documents[-1]
    place = int(np.flatnonzero(found.documents == str(last))[0])
    assert found.queries[place] == "q299"
    assert found.impressions[place] == 10_000
    assert found.exposure[place] == pytest.approx(10_000 * THETA[-1])
    assert found.clicks[place] == log.clicks[-1]


def test_exposures_deep_down_are_as_small_as_they_are() -> None:
    log, ranker, _, _ = world()
    steep = 1 / np.arange(1, DOCUMENTS + 1) ** 2.0
    found = HeadQueries.of(ranker, log, propensities=steep.tolist())
    position = np.empty(len(log.features), dtype=np.int64)
    position[log.documents] = log.positions - 1
    assert found.exposure == pytest.approx(found.impressions * steep[position[found.documents.astype(np.int64)]])
    assert (found.exposure / found.impressions).min() == pytest.approx(1 / 64)


@pytest.mark.parametrize("wrong", [0.0, -0.1, float("nan")])
def test_given_propensities_are_above_0(wrong: float) -> None:
    log, ranker, _, _ = world()
    with pytest.raises(DataError, match="propensities must be numbers above 0"):
        HeadQueries.of(ranker, log, propensities=[*THETA[:-1], wrong])


def test_rows_of_one_document_are_one() -> None:
    log, ranker, _, _ = world()
    # In each query, the documents of even and of odd rows have one name each.
    names = np.where(np.arange(len(log.features)) % 2, "odd", "even")
    found = HeadQueries.of(ranker, log, document_ids=names, propensities=THETA.tolist())
    assert len(found.documents) == 600
    assert found.clicks.sum() == log.clicks.sum()
    assert set(found.impressions.tolist()) == {20, 400, 40_000}
    with pytest.raises(DataError, match="2400 documents in the log, but 3 ids"):
        HeadQueries.of(ranker, log, document_ids=names[:3])


def test_a_hundred_of_a_hundred_does_not_beat_nine_thousand_of_ten_thousand() -> None:
    """Most documents of the log are clicked half of the time, and features say nothing."""
    random = np.random.default_rng(3)
    usual = random.binomial(1_000, random.beta(20, 20, size=200))
    log = ClickLog.of(
        features=random.random((202, 1)),
        documents=np.arange(202),
        offsets=[*range(0, 201, 2), 201, 202],
        positions=[*([1, 2] * 100), 1, 1],
        clicks=[*usual, 100, 9_000],
        impressions=[*([1_000] * 100), 100, 10_000],
        queries=[*range(100), "asked", "asked"],
    )
    ranker = ClickBaseline(relevance=MLP(hidden=(4,), steps=2)).fit(log).ranker_
    found = HeadQueries.of(ranker, log, propensities=[1.0, 1.0])
    few, many = found.posterior[found.queries == "asked"]
    assert few < many == pytest.approx(0.9, abs=0.01)
    low, high = (values[found.queries == "asked"] for values in (found.low, found.high))
    assert low[0] < low[1] < high[1]
    assert high[0] - low[0] > 5 * (high[1] - low[1])


def test_candidates_are_ranked_by_rates_where_the_table_knows_some_of_them() -> None:
    log, ranker, _, _ = world()
    found = HeadQueries.of(ranker, log, propensities=THETA.tolist())
    rows = np.flatnonzero(found.queries == "q002")
    known, missing = rows[:-1], rows[-1]
    # The last is not known by its name, and so by its score; a query that is not known keeps its scores.
    documents = np.array([*found.documents[known], "new", "new"])
    scores = np.array([*found.score[known], found.score[missing], 0.3])
    given = found.rerank(scores, np.array(["q002", "other"]), documents, np.array([0, DOCUMENTS, DOCUMENTS + 1]))
    np.testing.assert_array_equal(given[: DOCUMENTS - 1], found.posterior[known])
    assert given[DOCUMENTS - 1] == pytest.approx(found.prior[missing], rel=1e-6)
    assert given[-1] == 0.3
    # Scores that all moved by the same amount mean the same.
    moved = found.rerank(scores[:-1] + 5, np.array(["q002"]), documents[:-1], np.array([0, DOCUMENTS]))
    np.testing.assert_allclose(moved, given[:-1], rtol=1e-6)
    with pytest.raises(DataError, match="every candidate needs the id of its document"):
        found.rerank(scores, np.array(["q002"]), documents[:2], np.array([0, len(scores)]))


def test_the_table_is_written_and_read(tmp_path: Path) -> None:
    log, ranker, _, _ = world()
    found = HeadQueries.of(ranker, log)
    assert found.source == "unknown"
    found.save(tmp_path / "head.parquet")
    again = HeadQueries.load(tmp_path / "head.parquet")
    for name, value in vars(found).items():
        np.testing.assert_array_equal(getattr(again, name), value)
    (tmp_path / "text").write_text("no table")
    with pytest.raises(DataError, match="is not a table that `ultr head` wrote"):
        HeadQueries.load(tmp_path / "text")


def test_a_log_without_clicks_or_with_other_features_is_refused() -> None:
    _, ranker, _, _ = world()
    nothing = ClickLog.of(features=[[0.0]], documents=[0], offsets=[0, 1], clicks=[0])
    with pytest.raises(DataError, match="no click"):
        HeadQueries.of(ranker, nothing)
    other = ClickLog.of(features=[[0.0, 1.0]], documents=[0], offsets=[0, 1], clicks=[1])
    with pytest.raises(DataError, match="other features"):
        HeadQueries.of(ranker, other)

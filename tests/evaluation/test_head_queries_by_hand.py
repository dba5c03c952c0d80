"""Priors and tables of head queries, against other libraries and by hand."""

from __future__ import annotations

from dataclasses import astuple, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from scipy.stats import gamma, nbinom

from ultr.arrays import Doubles, Floats, Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.errors import DataError
from ultr.evaluation.head_queries import HeadQueries, RatePrior, _parts


def _drawn(queries: int = 60) -> tuple[Doubles, Integers, Doubles, Doubles]:
    """Scores, offsets, clicks and exposures of queries with two to five documents."""
    random = np.random.default_rng(0)
    offsets = ragged.from_lengths(np.resize([2, 5, 3], queries))
    scores = 10 + 3 * random.normal(size=offsets[-1]) + 2 * np.repeat(random.normal(size=queries), np.diff(offsets))
    exposure = random.choice([5.0, 50.0], size=len(scores))
    rates = random.gamma(20 * np.exp(-1.2 + 0.2 * (scores - 10)), 1 / 20)
    return scores, offsets, random.poisson(rates * exposure).astype(np.float64), exposure


def _likelihood(prior: RatePrior, scores: Doubles, offsets: Integers, clicks: Doubles, exposure: Doubles) -> float:
    """Clicks that are Poisson with a Gamma rate are negative binomial."""
    means = np.repeat([scores[a:b].mean() for a, b in pairwise(offsets)], np.diff(offsets))
    rates = np.exp(prior.level + prior.within * (scores - means) + prior.between * means)
    return float(nbinom.logpmf(clicks, prior.strength * rates, prior.strength / (prior.strength + exposure)).mean())


def test_no_other_prior_makes_the_clicks_likelier() -> None:
    drawn = _drawn()
    found = RatePrior.fit(*drawn)
    best = _likelihood(found, *drawn)
    for field, step in (("level", 0.02), ("within", 0.01), ("between", 0.01), ("strength", 1.0)):
        for sign in (-1, 1):
            other = replace(found, **{field: getattr(found, field) + sign * step})
            assert _likelihood(other, *drawn) < best + 1e-9


def test_scores_that_are_all_alike_tell_the_mean_rate_alone() -> None:
    clicks, exposure = np.array([3.0, 5.0, 4.0, 4.0]), np.full(4, 20.0)
    found = RatePrior.fit(np.ones(4), np.array([0, 2, 4]), clicks, exposure)
    own, mean = _parts(np.ones(4), np.array([0, 2, 4]))
    assert found.rates(own, mean) == pytest.approx(np.full(4, 16 / 80), rel=1e-3)


def test_without_a_click_there_is_no_prior() -> None:
    with pytest.raises(DataError, match=r"^the log has no click, so there are no rates to fit a prior to$"):
        RatePrior.fit(np.ones(2), np.array([0, 2]), np.zeros(2), np.ones(2))


def test_rates_are_a_line_in_both_parts_of_a_score_within_limits() -> None:
    prior = RatePrior(-1.0, 2.0, 0.5, 10.0)
    found = prior.rates(np.array([0.0, 1.0, 0.0, 100.0, -100.0]), np.array([0.0, 0.0, 2.0, 0.0, 0.0]))
    assert np.log(found) == pytest.approx([-1.0, 1.0, 0.0, 5.0, -30.0])


def test_scores_fall_apart_into_those_of_queries_and_the_rest() -> None:
    own, mean = _parts(np.array([1.0, 3.0, 5.0, 2.0]), np.array([0, 3, 3, 4]))
    assert own.tolist() == [-2.0, 0.0, 2.0, 0.0]
    assert mean.tolist() == [3.0, 3.0, 3.0, 2.0]


class First:
    """All that a table needs of a ranker."""

    feature_names, method = ("x",), "click"

    def score(self, features: Floats, offsets: Integers) -> Floats:
        return features[:, 0]


def _log() -> ClickLog:
    """Two documents of query a in both orders, and three of b, of which rows 3 and 4 are one document."""
    return ClickLog.of(
        features=[[3.0], [1.0], [2.0], [4.0], [6.0]],
        documents=[0, 1, 1, 0, 2, 3, 4, 2],
        offsets=[0, 2, 4, 6, 8],
        clicks=[3, 1, 2, 1, 4, 2, 1, 0],
        impressions=[10, 5, 20, 8],
        queries=["a", "a", "b", "b"],
        feature_names=["x"],
    )


NAMES = np.array(["p", "q", "r", "s", "s"])


def test_every_column_of_a_table_by_hand() -> None:
    ranker: Any = First()
    table = HeadQueries.of(ranker, _log(), document_ids=NAMES, propensities=[1.0, 0.5])
    assert list(zip(table.queries.tolist(), table.documents.tolist(), strict=True)) == [
        ("a", "p"),
        ("a", "q"),
        ("b", "r"),
        ("b", "s"),
    ]
    assert table.score.tolist() == [3.0, 1.0, 2.0, 5.0]
    assert table.impressions.tolist() == [15.0, 15.0, 28.0, 28.0]
    assert table.exposure.tolist() == [10 + 2.5, 5 + 5, 20 + 4, 10 + 8]
    assert table.clicks.tolist() == [4.0, 3.0, 4.0, 3.0]
    fitted = table.fitted
    own, mean = np.array([1.0, -1.0, -1.5, 1.5]), np.array([2.0, 2.0, 3.5, 3.5])
    prior = np.exp(fitted.level + fitted.within * own + fitted.between * mean)
    assert table.prior == pytest.approx(prior)
    shape, rate = fitted.strength * prior + table.clicks, fitted.strength + table.exposure
    assert table.posterior == pytest.approx(shape / rate)
    assert table.low == pytest.approx(gamma.ppf(0.025, shape, scale=1 / rate))
    assert table.high == pytest.approx(gamma.ppf(0.975, shape, scale=1 / rate))
    assert (table.source, table.sentence) == ("given", "Propensities are those that were given.")
    again = RatePrior.fit(table.score, np.array([0, 2, 4]), table.clicks, table.exposure)
    assert astuple(fitted) == pytest.approx(astuple(again))


def test_documents_are_called_by_their_rows_unless_they_have_names() -> None:
    ranker: Any = First()
    assert HeadQueries.of(ranker, _log(), propensities=[1.0, 0.5]).documents.tolist() == ["0", "1", "2", "3", "4"]
    with pytest.raises(DataError, match=r"^5 documents in the log, but 4 ids of documents$"):
        HeadQueries.of(ranker, _log(), document_ids=NAMES[:4], propensities=[1.0, 0.5])
    other: Any = SimpleNamespace(feature_names=("y",))
    with pytest.raises(DataError, match=r"^the log has other features than the one that the ranker was trained on$"):
        HeadQueries.of(other, _log())


def _table() -> HeadQueries:
    numbers = np.array([0.1, 0.2, 0.4])
    return HeadQueries(
        queries=np.array(["a", "a", "b"]),
        documents=np.array(["p", "q", "p"]),
        score=np.array([1.0, 2.0, 0.0]),
        prior=numbers,
        posterior=np.array([0.5, 0.05, 0.3]),
        low=numbers / 2,
        high=numbers * 2,
        impressions=np.array([9.0, 8.0, 7.0]),
        exposure=np.array([6.0, 5.0, 4.0]),
        clicks=np.array([3.0, 2.0, 1.0]),
        fitted=RatePrior(-1.0, 0.5, 0.25, 12.0),
        source="swaps",
        sentence="By swaps.",
    )


def test_known_candidates_get_their_posterior_and_others_of_the_query_the_rate_of_their_score() -> None:
    """exp(0.5 s + shift), the shift being the mean of log prior - 0.5 s over the candidates that are known."""
    scores = np.array([1.0, 2.0, 3.0, 7.0, 4.0, 5.0])
    found = _table().rerank(
        scores,
        np.array(["a", "c", "b"]),
        np.array(["p", "q", "x", "p", "y", "p"]),
        np.array([0, 3, 4, 6]),
    )
    shift = np.mean([np.log(0.1) - 0.5, np.log(0.2) - 1.0])
    of_b = np.log(0.4) - 2.5
    expected = [0.5, 0.05, np.exp(1.5 + shift), 7.0, np.exp(2.0 + of_b), 0.3]
    assert found.tolist() == pytest.approx(expected)


@pytest.mark.parametrize(("documents", "queries"), [(["p"], ["a"]), (["p", "q"], ["a", "b"]), (["p", "q", "r"], ["a"])])
def test_candidates_and_ids_must_fit(documents: list[str], queries: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        _table().rerank(np.ones(2), np.array(queries), np.array(documents), np.array([0, 2]))
    assert str(caught.value) == "every candidate needs the id of its document, and every list the id of its query"


def test_a_table_is_read_as_it_was_written_and_no_other_file_is(tmp_path: Path) -> None:
    table = _table()
    table.save(tmp_path / "head")
    again = HeadQueries.load(tmp_path / "head")
    for name, value in vars(table).items():
        np.testing.assert_array_equal(getattr(again, name), value)
    written = parquet.read_table(tmp_path / "head")
    about = written.schema.metadata[b"ultr"].replace(b"head queries 1", b"head queries 2")
    parquet.write_table(written.replace_schema_metadata({"ultr": about}), tmp_path / "newer")
    parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "other")
    for name in ("newer", "other", "nothing"):
        with pytest.raises(DataError) as caught:
            HeadQueries.load(tmp_path / name)
        assert str(caught.value) == f"{tmp_path / name} is not a table that `ultr head` wrote; write it again"

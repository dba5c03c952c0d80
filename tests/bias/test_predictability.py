from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import RidgeCV

from ultr.arrays import Doubles, Floats
from ultr.bias import position_predictability, predictability
from ultr.data.click_log import ClickLog
from ultr.diagnosis.position_predictability import PositionPredictability
from ultr.diagnosis.volume import Volume
from ultr.errors import DataError


def _log(*, noise: float, queries: int = 150, rankings: int = 2, seed: int = 0, width: int = 6) -> ClickLog:
    """Pages ordered by a linear score of the features plus noise; all of them noise if it is infinite."""
    random = np.random.default_rng(seed)
    weights = random.normal(size=width)
    features = random.normal(size=(queries * 8, width))
    scores = np.zeros(len(features)) if np.isinf(noise) else features @ weights
    spread = 1.0 if np.isinf(noise) else noise
    pages = [
        start + np.argsort(-(scores[start : start + 8] + spread * random.normal(size=8)))
        for start in range(0, len(features), 8)
        for _ in range(rankings)
    ]
    return ClickLog.of(
        features=features,
        documents=np.concatenate(pages),
        offsets=np.arange(0, 8 * len(pages) + 1, 8),
        clicks=np.zeros(8 * len(pages)),
        queries=np.repeat(np.arange(queries), rankings),
    )


def test_missing_features_count_as_the_median() -> None:
    log = _log(noise=0.5)
    gaps = np.random.default_rng(1).random(log.features.shape) < 0.2
    missing = np.where(gaps, np.float32("nan"), log.features)
    filled = np.where(gaps, np.nanmedian(missing, axis=0), log.features).astype(np.float32)
    found, expected = (position_predictability(replace(log, features=each)) for each in (missing, filled))
    assert found == expected
    assert 0 < found.r_squared < position_predictability(log).r_squared
    finding = PositionPredictability.of(replace(log, features=missing)).section()
    assert "linear function of the features, the median where one is missing, explains" in finding.answer
    assert Volume.of(replace(log, features=missing)).features_with_gaps == 6


def test_a_ranker_by_the_features_is_seen_through_and_chance_is_not() -> None:
    tied = position_predictability(_log(noise=0.0))
    assert tied.r_squared > 0.8
    assert tied.ceiling == 1
    loose = position_predictability(_log(noise=np.inf))
    assert abs(loose.r_squared) < 0.02
    assert abs(loose.ceiling) < 0.15
    # Two rankings of each query tell the ceiling within some hundredths only.
    between = position_predictability(_log(noise=0.5))
    assert 0.3 < between.r_squared < between.ceiling + 0.1 < 1
    assert between.units == "queries"


def test_the_share_is_that_of_another_ridge_regression() -> None:
    log = _log(noise=1.0, rankings=1)
    centred = np.concatenate([_within(log.features[log.documents[s : s + 8]]) for s in range(0, len(log.documents), 8)])
    places = np.tile(np.arange(8) - 3.5, log.lists)
    half = len(places) // 2
    model = RidgeCV(alphas=np.logspace(-3, 3, 7), fit_intercept=False).fit(centred[:half], places[:half])
    assert position_predictability(log).r_squared == pytest.approx(model.score(centred[half:], places[half:]), abs=0.04)


def _within(features: Floats) -> Doubles:
    centred: Doubles = features.astype(np.float64) - features.mean(axis=0, dtype=np.float64)
    return centred


def test_units_and_shifts_of_the_features_make_no_difference() -> None:
    log = _log(noise=1.0, queries=40)
    other = ClickLog.of(
        features=log.features * np.array([1, 10, 0.1, 5, 2, 3]) + 7,
        documents=log.documents,
        offsets=log.offsets,
        clicks=log.clicks,
        impressions=log.impressions,
        queries=log.query_ids[log.queries],
    )
    a, b = position_predictability(log), position_predictability(other)
    assert a.r_squared == pytest.approx(b.r_squared, abs=1e-4)


def test_chunks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    log = _log(noise=1.0, queries=30)
    whole = position_predictability(log)
    monkeypatch.setattr(predictability, "_CHUNK", 100)
    chunked = position_predictability(log)
    assert chunked.r_squared == pytest.approx(whole.r_squared)


def test_more_features_than_rows_predict_nothing_from_noise() -> None:
    found = position_predictability(_log(noise=np.inf, queries=12, rankings=1, width=60))
    assert found.r_squared < 0.1


def test_constant_features_predict_nothing() -> None:
    log = _log(noise=0.0, queries=10)
    flat = ClickLog.of(
        features=np.ones((len(log.features), 2)), documents=log.documents, offsets=log.offsets, clicks=log.clicks
    )
    found = position_predictability(flat)
    assert found.r_squared == pytest.approx(0)


def test_lists_are_held_out_where_there_are_few_queries() -> None:
    assert position_predictability(_log(noise=1.0, queries=2, rankings=20)).units == "lists"


def test_a_log_without_order_is_refused() -> None:
    with pytest.raises(DataError, match="no list of the click log shows two documents"):
        position_predictability(ClickLog.of(features=[[1.0]], documents=[0], offsets=[0, 1], clicks=[0]))
    with pytest.raises(DataError, match="with one list cannot be cross-validated"):
        position_predictability(ClickLog.of(features=[[1.0], [2.0]], documents=[0, 1], offsets=[0, 2], clicks=[0, 0]))

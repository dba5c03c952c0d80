"""Model files of engines, against the real libraries and against interpreters of their rules."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost
from tests.exporting import interpreters

from ultr.arrays import Doubles, Floats
from ultr.exporting.engines import elastic, lightgbm_text, ranklib, solr, xgboost_dump, xgboost_model
from ultr.relevance.forest import LEAF, Forest, forest_of_lightgbm

NAMES = ("title", "body", "age", "price")


@pytest.fixture(scope="module")
def forest() -> Forest:
    random = np.random.default_rng(0)
    features = random.normal(size=(500, len(NAMES))).astype(np.float32).round(1)
    features[random.random(features.shape) < 0.2] = np.nan
    target = np.nan_to_num(features[:, 0]) * np.nan_to_num(features[:, 1]) + np.isnan(features[:, 2])
    parameters = {"verbosity": -1, "num_leaves": 9, "min_data_in_leaf": 5, "learning_rate": 0.5}
    model = lightgbm.train(parameters, lightgbm.Dataset(features, target), 12)
    return forest_of_lightgbm(model.dump_model()["tree_info"], 1)


@pytest.fixture(scope="module")
def rows(forest: Forest) -> Floats:
    """Values on thresholds and right beside them, zeros, large ones, missing ones."""
    largest = np.finfo(np.float32).max
    thresholds = forest.thresholds[(forest.features != LEAF) & (forest.thresholds < largest)]
    near = np.concatenate([thresholds, *(np.nextafter(thresholds, np.float32(end)) for end in (-np.inf, np.inf))])
    special = np.array([0.0, -0.0, 1e30, -1e30, np.nan, np.nan], dtype=np.float32)
    return np.random.default_rng(1).choice(np.concatenate([near, special]), size=(500, len(NAMES)))


def test_lightgbm_reads_its_file(forest: Forest, rows: Floats) -> None:
    booster = lightgbm.Booster(model_str=lightgbm_text.model_text(forest, NAMES))
    assert booster.feature_name() == list(NAMES)
    np.testing.assert_allclose(booster.predict(rows, raw_score=True), _expected(forest, rows), rtol=1e-9, atol=1e-12)


def test_xgboost_reads_its_file(forest: Forest, rows: Floats, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(xgboost_model.model(forest, NAMES)))
    booster = xgboost.Booster(model_file=path)
    found = booster.predict(xgboost.DMatrix(rows, feature_names=list(NAMES)), output_margin=True)
    np.testing.assert_allclose(found, _expected(forest, rows), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("write", "read", "missing"),
    [
        (lambda forest: xgboost_dump.definition(forest, NAMES), interpreters.plugin, True),
        (lambda forest: elastic.trained_model(forest, NAMES), interpreters.elastic, True),
        (lambda forest: solr.model(forest, NAMES, name="mine"), interpreters.solr, True),
        (lambda forest: lightgbm_text.dump(forest, NAMES), interpreters.vespa, True),
        (ranklib.ensemble, interpreters.ranklib, False),
    ],
    ids=["plugin", "elastic", "solr", "vespa", "ranklib"],
)
def test_an_engine_scores_as_the_forest_does(
    write: Callable[[Forest], Any],
    read: Callable[[Any, interpreters.Document], float],
    missing: bool,  # noqa: FBT001
    forest: Forest,
    rows: Floats,
) -> None:
    written = write(forest)
    written = written if isinstance(written, str) else json.loads(json.dumps(written))
    chosen = rows if missing else rows[~np.isnan(rows).any(axis=1)]
    assert len(chosen) > 50
    if read is interpreters.solr:
        # Next to its slack of 1e-6, Solr cannot tell what is closer to 0 than float32 has digits.
        chosen = chosen[~((np.abs(chosen) < 1e-12) & (chosen != 0)).any(axis=1)]
    documents = [
        {name: None if np.isnan(value) else float(value) for name, value in zip(NAMES, row, strict=True)}
        for row in chosen
    ]
    found = [read(written, document) for document in documents]
    np.testing.assert_allclose(found, _expected(forest, chosen), rtol=1e-5, atol=1e-5)


def _expected(forest: Forest, rows: Floats) -> Doubles:
    return forest.predict(rows, 1)[:, 0]

"""`POST /rank?explain=true`, and values that training did not have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serving.ranker_file import NAMES, weights_of, write_ranker
from tests.serving.service import client, error_of

FEATURES = np.random.default_rng(1).normal(size=(12, len(NAMES))).astype(np.float32)
REQUEST = {
    "queries": [
        {"id": "few", "candidates": [{"id": f"d{row}", "features": FEATURES[row].tolist()} for row in range(3)]},
        {"id": "many", "candidates": [{"features": row.tolist()} for row in FEATURES]},
        {"candidates": []},
    ]
}


def test_the_first_candidates_of_each_query_come_with_what_moved_them(tmp_path: Path) -> None:
    with client(write_ranker(tmp_path / "model.onnx", form="documents")) as service:
        answer = service.post("/rank?explain=true", json=REQUEST).json()
        plain = service.post("/rank", json=REQUEST).json()
    assert answer["explained_by"] == "sampled Shapley values"
    assert _without(answer) == plain
    for query, rows in zip(answer["queries"], (FEATURES[:3], FEATURES, FEATURES[:0]), strict=True):
        explained = [each for each in query["ranking"] if "explanation" in each]
        assert explained == query["ranking"][: min(10, len(rows))]
        for each in explained:
            told = each["explanation"]
            assert sum(told["contributions"].values()) == pytest.approx(each["score"] - told["mean_score"], abs=1e-5)
            expected = weights_of() * (rows[each["index"]] - rows.mean(axis=0))
            for column, name in enumerate(NAMES):
                assert told["contributions"].get(name, 0.0) == pytest.approx(expected[column], abs=1e-5)
            assert told["complete"]


def _without(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer as if no explanation had been asked for."""
    queries = [
        query | {"ranking": [{k: v for k, v in each.items() if k != "explanation"} for each in query["ranking"]]}
        for query in answer["queries"]
    ]
    return {"model": answer["model"], "queries": queries}


def test_a_model_whose_scores_depend_on_the_list_says_that_it_cannot_be_explained(model: Path) -> None:
    with client(model) as service:
        refused = service.post("/rank?explain=true", json=REQUEST)
        assert service.post("/rank", json=REQUEST).status_code == 200
    assert refused.status_code == 422
    assert "cannot be explained: scores of this file depend on the whole list" in error_of(refused)


def test_too_much_to_explain_is_refused_before_it_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ultr.serving.explaining.MOST_MIXED", 100)
    with client(write_ranker(tmp_path / "model.onnx", form="documents")) as service:
        assert "send fewer candidates" in error_of(service.post("/rank?explain=true", json=REQUEST))


def test_explain_is_true_or_false(model: Path) -> None:
    with client(model) as service:
        assert service.post("/rank?explain=false", json=REQUEST).status_code == 200
        refused = service.post("/rank?explain=yes", json=REQUEST)
    assert refused.status_code == 422
    assert error_of(refused) == "explain must be true or false"


def test_values_that_training_did_not_have_are_counted(tmp_path: Path) -> None:
    ranges: dict[str, Any] = {"minimum": [0.0, 0.0, 0.0], "maximum": [1.0, 1.0, 1.0], "missing": {NAMES[0]: 0.5}}
    path = write_ranker(tmp_path / "model.onnx", form="documents", **ranges)
    rows = [[None, 0.5, 1.0], [2.0, -1.0, 0.0], [0.0, 0.0, 1.5]]
    with client(path) as service:
        request = {"queries": [{"candidates": [{"features": row} for row in rows]}]}
        assert service.post("/rank", json=request).status_code == 200
        assert "ultr_outside_training_total 3.0" in service.get("/metrics").text


def test_a_file_without_ranges_counts_nothing(model: Path) -> None:
    with client(model) as service:
        assert service.post("/rank", json=REQUEST).status_code == 200
        assert "ultr_outside_training_total 0.0" in service.get("/metrics").text

"""Explanations of rankers: they add up to scores, and say nothing of what does not differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.explanation.rankers import BRANDS, NAMES, NUMBERS, candidates, log, ranker
from torch import Tensor

from ultr import explain
from ultr.errors import DataError, OptionError
from ultr.methods.distilled import Distilled
from ultr.methods.vector_objective import Embeddings
from ultr.relevance import Documents, RelevanceModel, Trees
from ultr.scoring import Scorer
from ultr.scoring.explanation import EXACT, GRADIENTS, SAMPLED

KINDS = {
    "network": GRADIENTS,
    "vectors": GRADIENTS,
    "auto": GRADIENTS,
    "auto by trees": EXACT,
    "lbd": GRADIENTS,
    "trees": EXACT,
    "vectors by trees": EXACT,
    "lightgbm": EXACT,
    "dla": EXACT,
}
OFFSETS = np.array([0, 7, 7, 8, 20])


@pytest.mark.parametrize("name", KINDS)
def test_contributions_add_up_to_the_score_less_the_mean_of_the_list(name: str) -> None:
    features, model = candidates(20), ranker(name)
    found = explain(model, features, OFFSETS)
    scores = model.score(features, OFFSETS).astype(np.float64)
    assert found.how == KINDS[name]
    assert sorted(found.candidates) == list(range(20))
    for start, end in ((0, 7), (7, 8), (8, 20)):
        own = np.flatnonzero((found.candidates >= start) & (found.candidates < end))
        rows = found.candidates[own]
        assert (np.diff(scores[rows]) <= 0).all()
        assert found.ranks[own].tolist() == list(range(1, end - start + 1))
        off = found.contributions[own].sum(axis=1) - (scores[rows] - scores[start:end].mean())
        assert np.abs(off).max() <= 1e-3 * np.ptp(scores[start:end]) + 1e-5 * np.abs(scores[start:end]).max()
    assert found.complete.all()
    assert np.abs(found.contributions).max() > 0.01


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    ("column", "value"),
    [(0, 1.5), (1, np.nan), (NUMBERS, 1.0), (NUMBERS, np.nan), (NUMBERS + 1, 3.0)],
    ids=["number", "missing number", "category", "missing category", "learned category"],
)
def test_candidates_that_differ_in_one_feature_are_moved_by_it_alone(name: str, column: int, value: float) -> None:
    pair = np.repeat(candidates(1, seed=5), 2, axis=0)
    pair[0, [1, NUMBERS]] = pair[1, [1, NUMBERS]] = 0.0
    pair[1, column] = value
    model = ranker(name)
    found = explain(model, pair)
    scores = model.score(pair).astype(np.float64)[found.candidates]
    allowed = 2e-6 if found.how == EXACT else float(found.allowed.max())
    np.testing.assert_allclose(found.contributions[:, column], scores - scores.mean(), rtol=0, atol=allowed)
    assert not np.delete(found.contributions, column, axis=1).any()


def test_the_base_vector_of_a_list_is_held_fixed() -> None:
    features, model = candidates(9), ranker("vectors")
    found = explain(model, features)
    embeddings = Embeddings.of(model)
    assert embeddings is not None
    r = embeddings.relevance(features).astype(np.float64)
    projected = (r - r.mean(axis=0)) @ embeddings.base_vectors(features, np.array([0, 9]))[0]
    np.testing.assert_allclose(
        found.contributions.sum(axis=1), projected[found.candidates], rtol=0, atol=float(found.allowed.max())
    )
    assert "held fixed" in found.note
    assert not explain(ranker("network"), features).note


def test_only_the_best_are_explained_and_nothing_else_changes() -> None:
    features = candidates(20)
    for name in ("network", "trees"):
        whole, best = (explain(ranker(name), features, OFFSETS, top=top) for top in (None, 2))
        assert best.ranks.tolist() == [1, 2, 1, 1, 2]
        places = [np.flatnonzero(whole.candidates == each)[0] for each in best.candidates]
        np.testing.assert_allclose(best.contributions, whole.contributions[places], rtol=0, atol=1e-4)


def test_more_steps_are_taken_until_it_adds_up_and_else_the_gap_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model, features = ranker("network"), candidates(6)
    steep = replace(model, model=_steeper(model.model, 60.0))
    monkeypatch.setattr("ultr.explanation.integrated_gradients.STEPS", (1,))
    few = explain(steep, features)
    assert not few.complete.all()
    np.testing.assert_allclose(few.gaps, few.scores - few.means - few.contributions.sum(axis=1))
    monkeypatch.setattr("ultr.explanation.integrated_gradients.STEPS", (1, 4, 512))
    assert explain(steep, features).complete.all()


def _steeper(model: Any, times: float) -> Any:
    from copy import deepcopy

    copied = deepcopy(model)
    copied.by_name["relevance"].layers.linear[0].weight.data *= times
    return copied


def test_frames_have_their_columns_matched_by_name() -> None:
    features = candidates(5)
    brands = [None if np.isnan(code) else BRANDS[int(code)] for code in features[:, NUMBERS]]
    frame: dict[str, Any] = {name: features[:, column] for column, name in enumerate(NAMES)}
    frame |= {"brand": brands, "shop": [f"shop {int(code)}" for code in features[:, -1]], "id": list("abcde")}
    found = explain(ranker("trees"), dict(reversed(frame.items())), ids=["id"])
    np.testing.assert_array_equal(found.contributions, explain(ranker("trees"), features).contributions)


def test_a_forest_that_a_network_has_taught_is_explained_exactly() -> None:
    short = Distilled(relevance=Trees(rounds=5, leaves=5))
    found = explain(short.teach(ranker("network"), log(), log()), candidates(5))
    assert found.how == EXACT
    assert found.complete.all()


class _Doubled(RelevanceModel):
    """A model of another package: nothing is known of it but what it gives."""

    def forward(self, documents: Documents) -> Tensor:
        return 2 * documents.preprocessed[:, :1]

    def project(self, vector: Tensor) -> _Doubled:
        return self

    def graph(self) -> torch.nn.Module:
        raise NotImplementedError


def test_models_of_other_packages_are_explained_by_sampling() -> None:
    from ultr.train.objective import ScalarObjective
    from ultr.train.ranking_model import RankingModel

    own = replace(ranker("network"), model=RankingModel({"relevance": _Doubled()}, ScalarObjective()))
    found = explain(own, candidates(5))
    assert found.how == SAMPLED
    assert found.errors is not None
    assert found.complete.all()
    assert not found.contributions[:, 1:].any()


def test_an_exported_forest_is_explained_as_the_model_is(tmp_path: Path) -> None:
    features = candidates(12)
    ranker("trees").export(tmp_path / "trees.onnx")
    found, expected = (
        explain(each, features, top=4) for each in (Scorer.load(tmp_path / "trees.onnx"), ranker("trees"))
    )
    assert found.how == EXACT
    np.testing.assert_allclose(found.contributions, expected.contributions, rtol=0, atol=1e-6)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match="the ranker knows 6 features"):
        explain(ranker("trees"), candidates(3)[:, :4])
    with pytest.raises(DataError, match="offsets"):
        explain(ranker("trees"), candidates(3), np.array([0, 2]))
    with pytest.raises(OptionError, match="top"):
        explain(ranker("trees"), candidates(3), top=0)


def test_lists_without_candidates_have_no_explanation() -> None:
    found = explain(ranker("trees"), candidates(3)[:0], np.array([0, 0]))
    assert found.contributions.shape == (0, len(NAMES))

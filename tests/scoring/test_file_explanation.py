"""Explanations of exported files, made by hand and without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.serving.ranker_file import NAMES, card, weights_of, write_ranker

from ultr.errors import OptionError
from ultr.scoring import Scorer
from ultr.scoring.card import KEY
from ultr.scoring.explanation import EXACT, SAMPLED
from ultr.scoring.file_explanation import explain_file
from ultr.scoring.forest import LEAF, Forest

FEATURES = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
OFFSETS = np.array([0, 5, 8])


def _stumps() -> Forest:
    """Two trees: bm25 <= 0 ? 1 : (age <= 0.5 ? 2 : -1), and clicks <= 0 ? 0.25 : -0.75."""
    return Forest(
        features=np.array([0, LEAF, 2, LEAF, LEAF, 1, LEAF, LEAF]),
        thresholds=np.array([0, 0, 0.5, 0, 0, 0, 0, 0], dtype=np.float32),
        missing_left=np.array([True, False, False, False, False, True, False, False]),
        left=np.array([1, 1, 3, 3, 4, 6, 6, 7]),
        right=np.array([2, 1, 4, 3, 4, 7, 6, 7]),
        values=np.array([0, 1, 0, 2, -1, 0, 0.25, -0.75]),
        roots=np.array([0, 5]),
        outputs=np.array([0, 0]),
    )


def _write_forest(path: Path, *, doubled: bool = False) -> Path:
    """The forest as a file; if doubled, the graph does more with its scores than pass them on."""
    attributes: dict[str, Any] = {
        "n_targets": 1,
        "nodes_treeids": [0, 0, 0, 0, 0, 1, 1, 1],
        "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
        "nodes_featureids": [0, 0, 2, 0, 0, 1, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_values": [0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 3, 0, 0, 1, 0, 0],
        "nodes_falsenodeids": [2, 0, 4, 0, 0, 2, 0, 0],
        "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 1, 0, 0],
        "target_treeids": [0, 0, 0, 1, 1],
        "target_nodeids": [1, 3, 4, 1, 2],
        "target_ids": [0] * 5,
        "target_weights": [1.0, 2.0, -1.0, 0.25, -0.75],
    }
    nodes = [
        helper.make_node("TreeEnsembleRegressor", ["features"], ["sums"], domain="ai.onnx.ml", **attributes),
        helper.make_node("Squeeze", ["sums", "axis"], ["flat"]),
        helper.make_node("Add", ["flat", "flat"], ["scores"])
        if doubled
        else helper.make_node("Identity", ["flat"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "forest",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["documents", 3])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["documents"])],
        [helper.make_tensor("axis", TensorProto.INT64, [1], [1])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    helper.set_model_props(model, {KEY: card(form="documents").model_dump_json()})
    onnx.save(model, path)
    return path


def test_the_forest_of_a_file_is_read_without_the_package_onnx(tmp_path: Path) -> None:
    scorer = Scorer.load(_write_forest(tmp_path / "forest.onnx"))
    assert scorer.forest is not None
    np.testing.assert_array_equal(scorer.forest.as_matrix(), _stumps().as_matrix())
    rows = np.concatenate([FEATURES, np.full((1, 3), np.nan, dtype=np.float32)])
    np.testing.assert_array_equal(scorer.score(rows), _stumps().predict(rows, 1)[:, 0].astype(np.float32))


def test_a_forest_is_explained_exactly(tmp_path: Path) -> None:
    found = explain_file(Scorer.load(_write_forest(tmp_path / "forest.onnx")), FEATURES, OFFSETS)
    assert found.how == EXACT
    assert found.complete.all()
    clicks = np.where(FEATURES[:, 1] <= 0, 0.25, -0.75)
    means = np.repeat([clicks[:5].mean(), clicks[5:].mean()], [5, 3])
    # The tree of one feature adds to that feature alone.
    np.testing.assert_allclose(found.contributions[:, 1], (clicks - means)[found.candidates], rtol=0, atol=1e-12)


def test_a_graph_that_does_more_with_its_forest_is_not_explained_by_it(tmp_path: Path) -> None:
    found = explain_file(Scorer.load(_write_forest(tmp_path / "forest.onnx", doubled=True)), FEATURES, OFFSETS)
    assert found.how == SAMPLED
    assert found.complete.all()


@pytest.mark.parametrize("form", ["lists", "documents"])
def test_a_linear_model_is_explained_by_its_weights(tmp_path: Path, form: str) -> None:
    scorer = Scorer.load(write_ranker(tmp_path / "model.onnx", form=form))  # type: ignore[arg-type]
    assert scorer.forest is None
    found = explain_file(scorer, FEATURES[:5], np.array([0, 5]), top=3)
    expected = weights_of() * (FEATURES[:5] - FEATURES[:5].mean(axis=0))
    np.testing.assert_allclose(found.contributions, expected[found.candidates], rtol=0, atol=1e-5)
    assert found.how == SAMPLED
    assert found.ranks.tolist() == [1, 2, 3]


def test_the_same_seed_gives_the_same_sample(tmp_path: Path) -> None:
    scorer = Scorer.load(write_ranker(tmp_path / "model.onnx", form="documents", hidden=(8,)))
    first, again, other = (explain_file(scorer, FEATURES, OFFSETS, seed=seed).contributions for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_scores_that_depend_on_the_whole_request_cannot_be_explained(tmp_path: Path) -> None:
    scorer = Scorer.load(write_ranker(tmp_path / "model.onnx", form="flat"))
    with pytest.raises(OptionError, match="depend on the whole list"):
        explain_file(scorer, FEATURES, OFFSETS)


def test_more_work_than_allowed_is_refused_before_it_is_done(tmp_path: Path) -> None:
    scorer = Scorer.load(write_ranker(tmp_path / "model.onnx", form="documents"))
    # Of 8 candidates, each against 7 others by 10 orders of 3 features, with both ends.
    needed = 8 * 7 * 10 * (len(NAMES) + 1)
    assert explain_file(scorer, FEATURES, np.array([0, 8]), most=needed).complete.all()
    with pytest.raises(OptionError, match=f"{needed:,} mixed candidates"):
        explain_file(scorer, FEATURES, np.array([0, 8]), most=needed - 1)

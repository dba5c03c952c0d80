from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.serving.ranker_file import weights_of, write_ranker

from ultr.errors import DataError, ModelFileError
from ultr.scoring import Card, Scorer
from ultr.scoring.card import KEY, Form

CARD: dict[str, Any] = {
    "form": "documents",
    "method": "click",
    "pointwise": False,
    "feature_names": ["bm25", "age"],
    "typical": [1.0, 2.0],
    "model_digest": "m",
    "data_fingerprint": "d",
    "versions": {},
}


def _file(path: Path, card: dict[str, Any] | str | None, *, width: int = 2) -> Path:
    """A graph that adds up the features."""
    node = helper.make_node("ReduceSum", ["features", "axis"], ["scores"], keepdims=0)
    graph = helper.make_graph(
        [node],
        "sum",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["documents", width])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["documents"])],
        [helper.make_tensor("axis", TensorProto.INT64, [1], [1])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    if card is not None:
        text = card if isinstance(card, str) else Card.model_validate(card).model_dump_json()
        helper.set_model_props(model, {KEY: text})
    onnx.save(model, path)
    return path


def test_a_file_is_scored_and_named_by_its_content(tmp_path: Path) -> None:
    scorer = Scorer.load(_file(tmp_path / "a.onnx", CARD), threads=1)
    assert scorer.score(np.array([[1, 2], [3, 4]], dtype=np.float32)).tolist() == [3, 7]
    assert scorer.card.feature_names == ["bm25", "age"]
    same = Scorer.load(_file(tmp_path / "b.onnx", CARD))
    other = Scorer.load(_file(tmp_path / "c.onnx", CARD | {"method": "dla"}))
    assert scorer.digest == same.digest != other.digest


@pytest.mark.parametrize(
    ("card", "width", "message"),
    [
        (None, 2, "not one that `ultr export` wrote"),
        ("{}", 2, "not exported by a version of ultr that this one reads"),
        ("no JSON", 2, "not exported by a version of ultr that this one reads"),
        (CARD, 3, "takes 3 features and names 2"),
    ],
)
def test_other_files_are_refused(card: Any, width: int, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=message):
        Scorer.load(_file(tmp_path / "model.onnx", card, width=width))


def test_what_is_no_file_or_no_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="is a folder; give the file that `ultr export"):
        Scorer.load(tmp_path)
    with pytest.raises(ModelFileError, match="No such file"):
        Scorer.load(tmp_path / "absent.onnx")
    broken = _file(tmp_path / "model.onnx", CARD)
    broken.write_bytes(broken.read_bytes()[:-20])
    with pytest.raises(ModelFileError, match="damaged or not an ONNX model"):
        Scorer.load(broken)


@pytest.mark.parametrize("shape", [(3, 3), (2,), (2, 2, 2)])
def test_arrays_of_another_shape_are_refused(shape: tuple[int, ...], tmp_path: Path) -> None:
    scorer = Scorer.load(_file(tmp_path / "model.onnx", CARD))
    with pytest.raises(DataError, match="knows 2 features"):
        scorer.score(np.ones(shape, dtype=np.float32))


def test_offsets_must_fit(tmp_path: Path) -> None:
    scorer = Scorer.load(_file(tmp_path / "model.onnx", CARD))
    with pytest.raises(DataError, match="must start with 0 and end with 3"):
        scorer.score(np.ones((3, 2), dtype=np.float32), np.array([0, 2]))


@pytest.mark.parametrize(
    "change",
    [{"typical": [1.0]}, {"feature_names": ["a", "a"]}, {"feature_names": [], "typical": []}, {"colour": "red"}],
)
def test_a_card_that_contradicts_itself_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ModelFileError, match="export the model again"):
        Card.parse(json.dumps(CARD | change), file="model.onnx")


def test_less_than_half_of_what_is_computed_is_padding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One list of 500 among 200 of one would else be padded to 100,500 rows."""
    scorer = Scorer.load(write_ranker(tmp_path / "model.onnx", form="lists"))
    lengths = np.array([1] * 100 + [0, 500, 3, 4] + [1] * 100)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.random.default_rng(0).normal(size=(int(lengths.sum()), 3)).astype(np.float32)
    computed: list[int] = []
    run = Scorer._run

    def count(self: Scorer, options: Any, **inputs: np.ndarray) -> np.ndarray:
        computed.append(inputs["mask"].size)
        return run(self, options, **inputs)

    monkeypatch.setattr(Scorer, "_run", count)
    np.testing.assert_allclose(scorer.score(rows, offsets), rows @ weights_of(), rtol=1e-4, atol=1e-5)
    assert sum(computed) < 2 * len(rows)


@pytest.mark.parametrize("form", ["documents", "lists", "flat"])
def test_many_candidates_are_scored_in_parts_that_keep_queries_whole(
    form: Form, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = Scorer.load(write_ranker(tmp_path / "model.onnx", form=form))
    offsets = np.array([0, 0, 4, 9, 30, 31, 36, 36])
    rows = np.random.default_rng(0).normal(size=(36, 3)).astype(np.float32)
    computed: list[int] = []
    run = Scorer._run

    def count(self: Scorer, options: Any, **inputs: np.ndarray) -> np.ndarray:
        computed.append(int(np.prod(inputs["features"].shape[:-1])))
        return run(self, options, **inputs)

    monkeypatch.setattr(Scorer, "_run", count)
    monkeypatch.setattr("ultr.scoring.scorer.AT_ONCE", 10)
    # In its flat form this ranker adds the number of queries of a part: three in the first, one in the second.
    added = np.repeat([3, 1, 3], [9, 21, 6]) if form == "flat" else np.zeros(36)
    np.testing.assert_allclose(scorer.score(rows, offsets), rows @ weights_of() + added, rtol=1e-4, atol=1e-5)
    assert max(computed) == (10 if form == "documents" else 21)

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv
from tests.cli.console import ultr

from ultr.data.click_log import ClickLog
from ultr.methods import Vectorization, load
from ultr.relevance import MLP
from ultr.scoring import Scorer

pytestmark = pytest.mark.usefixtures("_operators_read_once")


@pytest.fixture(scope="module")
def model(small_log: ClickLog, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "model"
    Vectorization(relevance=MLP(hidden=(8,), steps=5), dimension=2, base_hidden=(4,)).fit(small_log).save(folder)
    return folder


@pytest.fixture(scope="module")
def printed(model: Path) -> str:
    """What is said where the model is exported beside its folder."""
    return ultr("export", model, "--to", "onnx", "--overwrite").stdout


def test_a_model_is_exported_beside_its_folder(model: Path, printed: str) -> None:
    assert str(model.with_name("model.onnx")) in printed
    assert "Kendall's tau 1.0000" in printed
    features = np.random.default_rng(0).normal(size=(7, 64)).astype(np.float32)
    scorer = Scorer.load(model.with_name("model.onnx"))
    assert scorer.score(features) == pytest.approx(load(model).score(features), abs=1e-4)


@pytest.mark.usefixtures("printed")
def test_an_exported_file_ranks_as_its_model_does(model: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    names = load(model).feature_names
    features = {name: random.normal(size=12) for name in reversed(names)}
    csv.write_csv(pa.table({"query": np.arange(12) // 4} | features), tmp_path / "candidates.csv")
    by_file, by_folder = (
        [line.split("\t")[:3] for line in ultr("rank", each, tmp_path / "candidates.csv").stdout.splitlines()]
        for each in (model.with_name("model.onnx"), model)
    )
    assert by_file == by_folder
    (tmp_path / "candidates.txt").write_text("0 qid:1 " + " ".join(f"{number}:1" for number in range(1, 65)) + "\n")
    message = ultr("rank", model.with_name("model.onnx"), tmp_path / "candidates.txt", expect=2).stderr
    assert "has numbered features, but the ranker knows its 64 features by name" in message


def test_machines_read_what_pointwise_costs(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "point.onnx"
    options = ("--pointwise", "--data", "letor-like=40", "--part", "test", "--out", file)
    content = json.loads(ultr("export", model, *options, "--json").stdout)
    assert content["card"]["form"] == "documents"
    assert content["cost"]["exported"] - content["cost"]["model"] == pytest.approx(
        content["cost"]["change"]["difference"]
    )
    assert content["file"] == str(file)
    assert file.stat().st_size == content["bytes"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--to", "pmml"], "--to"),
        (["--form", "ragged"], "form"),
        (["--form", "ragged", "--distil"], "form"),
        (["--distil"], "exists"),
        (["--out", "{model}/manifest.json"], "exists"),
        (["--data", "absent.txt"], "there is no file 'absent.txt'"),
    ],
)
def test_what_cannot_be_exported_is_said_in_a_sentence(arguments: list[str], message: str, model: Path) -> None:
    result = ultr("export", model, *(each.format(model=model) for each in arguments), expect=2)
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1

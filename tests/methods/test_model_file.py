from __future__ import annotations

import json
import os
import resource
from collections.abc import Callable
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from ultr.data.click_log import ClickLog
from ultr.errors import DataError, ModelFileError, OptionError
from ultr.files import DIGEST, read_json, write_json
from ultr.methods import Vectorization, load
from ultr.methods.origin import Origin
from ultr.relevance import MLP


@pytest.fixture
def model(small_log: ClickLog, tmp_path: Path) -> Path:
    ranker = Vectorization(relevance=MLP(hidden=(8,), steps=2), base_hidden=(4,), seed=5).fit(small_log)
    ranker.save(tmp_path / "model")
    return tmp_path / "model"


def _edit(model: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a manifest as a stranger would, with the digest that belongs to it."""
    content = read_json(model / "manifest.json")
    change(content)
    write_json(model / "manifest.json", content, sealed=True)


def test_the_manifest_says_what_the_model_is(model: Path, small_log: ClickLog) -> None:
    manifest = json.loads((model / "manifest.json").read_text())
    assert manifest["method"] == "vectorization"
    assert manifest["options"]["dimension"] == 3
    assert manifest["options"]["seed"] == 5
    assert manifest["options"]["relevance"]["kind"] == "mlp"
    assert manifest["options"]["relevance"]["hidden"] == [8]
    assert manifest["feature_names"] == list(small_log.feature_names)
    assert manifest["scaling"]["minimum"] == small_log.features.min(axis=0).tolist()
    assert manifest["provenance"]["data"][0]["fingerprint"] == small_log.fingerprint()
    assert set(manifest["versions"]) == {"ultr", "torch", "numpy", "python", "threads", "processes"}
    positions = [str(i + 1) for i in range(10)]
    assert manifest["factors"] == [
        {"name": "position", "levels": positions, "column": 0, "by_page": False, "edges": [], "usual": 0}
    ]


def test_everybody_may_read_the_model(model: Path) -> None:
    assert {path.stat().st_mode & 0o777 for path in model.iterdir()} == {0o644}


def test_there_is_no_pickle_in_a_model_folder(model: Path) -> None:
    assert sorted(path.name for path in model.iterdir()) == [
        "manifest.json",
        "sample.safetensors",
        "weights.safetensors",
    ]


def test_a_few_training_lists_stay_with_the_model(model: Path, small_log: ClickLog) -> None:
    sample = load(model).sample
    assert sample is not None
    assert sample.feature_names == small_log.feature_names
    shown = [small_log.features[small_log.documents[a:b]] for a, b in pairwise(small_log.offsets)]
    for start, end in pairwise(sample.offsets):
        assert any(np.array_equal(sample.features[start:end], features) for features in shown)


def test_a_model_without_sample_is_read(model: Path) -> None:
    (model / "sample.safetensors").unlink()
    assert load(model).sample is None


def test_what_is_loaded_is_what_was_saved(model: Path, small_log: ClickLog, tmp_path: Path) -> None:
    origin = Origin(command="ultr train vectorization", log="../log")
    load(model).save(tmp_path / "again", origin=origin)
    first, second = load(model), load(tmp_path / "again")
    assert (first.origin, second.origin) == (None, origin)
    for name in ("method", "options", "feature_names", "factors", "learned_factors", "history", "choices"):
        assert getattr(first, name) == getattr(second, name)
    assert first.clicks_per_impression == second.clicks_per_impression
    assert first.data_fingerprint == small_log.fingerprint()
    for name in ("minimum", "maximum", "typical", "missing"):
        assert np.array_equal(getattr(first.scaling, name), getattr(second.scaling, name))
    weights = [(folder / "weights.safetensors").read_bytes() for folder in (model, tmp_path / "again")]
    assert weights[0] == weights[1]


@pytest.mark.parametrize("command", ["ultr train vectorization --log log --out model", None])
def test_a_model_of_an_earlier_version_says_to_train_it_again(command: str | None, model: Path) -> None:
    _edit(model, lambda m: m.update(format="ultr model 1", origin=command and {"command": command}))
    with pytest.raises(ModelFileError) as caught:
        load(model)
    expected = f"{model} was saved by an earlier version of ultr; train the model again"
    assert str(caught.value) == (f"{expected}: {command}" if command else expected)


def test_a_damaged_sample_is_refused(model: Path) -> None:
    (model / "sample.safetensors").write_bytes(b"no sample")
    with pytest.raises(ModelFileError, match=r"sample\.safetensors is damaged"):
        load(model)


def test_truncated_weights_are_refused(model: Path) -> None:
    weights = model / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(ModelFileError, match=r"weights\.safetensors is truncated"):
        load(model)


def test_missing_weights_are_refused(model: Path) -> None:
    (model / "weights.safetensors").unlink()
    with pytest.raises(ModelFileError, match=r"has no weights\.safetensors"):
        load(model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m["options"].update(dimension=4), "do not fit"),
        (lambda m: m["options"]["relevance"].update(hidden=[9]), "do not fit"),
        (lambda m: m["feature_names"].pop(), "scaling and feature_names differ in length"),
        (lambda m: m["scaling"]["minimum"].pop(), "scaling and feature_names differ in length"),
        (
            lambda m: [m["feature_names"].pop(), *(values.pop() for values in m["scaling"].values())],
            "do not fit",
        ),
        (lambda m: m["options"].update(colour="red"), "colour"),
        (lambda m: m["options"]["relevance"].update(colour="red"), "colour"),
        (lambda m: m["options"]["relevance"].update(kind="mpl"), "did you mean 'mlp'"),
        (lambda m: m["options"].pop("relevance"), "relevance"),
        (lambda m: m["options"].update(relevance="mlp"), "does not fit Vectorization"),
        (lambda m: m["scaling"].pop("typical"), "damaged at 'scaling.typical'"),
        (lambda m: m["factors"][0].pop("column"), "damaged at 'factors.0.column'"),
        (lambda m: m.update(factors=[]), "wrong bias factors"),
        (lambda m: m["scaling"]["maximum"].__setitem__(0, float("nan")), "damaged at 'scaling"),
        (lambda m: m["options"]["relevance"].update(hidden="abc"), "hidden must be a tuple"),
        (lambda m: m.update(method="vectorisation"), "did you mean 'vectorization'"),
        (lambda m: m.update(format="ultr model 99"), "this version"),
        (lambda m: m.update(factors="none"), "damaged at 'factors'"),
        (lambda m: m.update(choices={"candidates": [{"dimension": 3}]}), "damaged at 'choices.0.log_likelihood'"),
        (lambda m: m.update(surprise=1), "damaged at 'surprise'"),
        (lambda m: m.pop("versions"), "damaged at 'versions'"),
        (lambda m: m["scaling"].update(minimum=m["scaling"]["maximum"], maximum=m["scaling"]["minimum"]), "above its"),
        (lambda m: m["feature_names"].__setitem__(1, m["feature_names"][0]), "two features have one name"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(
    change: Callable[[dict[str, Any]], object], message: str, model: Path
) -> None:
    _edit(model, change)
    with pytest.raises((ModelFileError, OptionError), match=message):
        load(model)


def test_no_flipped_bit_of_a_model_folder_goes_unnoticed(model: Path) -> None:
    generator = np.random.default_rng(1)
    for name in ("manifest.json", "sample.safetensors", "weights.safetensors"):
        whole = (model / name).read_bytes()
        for place in generator.choice(len(whole), size=40, replace=False):
            content = bytearray(whole)
            content[place] ^= 1 << int(generator.integers(8))
            (model / name).write_bytes(content)
            with pytest.raises((DataError, OptionError)):
                load(model)
        (model / name).write_bytes(whole)
    load(model)


def test_a_manifest_laid_out_anew_is_the_same_and_a_changed_one_is_not(model: Path) -> None:
    path = model / "manifest.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content, indent=None))
    load(model)
    content["clicks_per_impression"] *= 2
    path.write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"its digest is another.*remove 'manifest_digest' from it if the change"):
        load(model)


def test_a_folder_of_before_there_were_digests_is_read(model: Path) -> None:
    path = model / "manifest.json"
    content = json.loads(path.read_text())
    del content[DIGEST], content["sample_digest"]
    path.write_text(json.dumps(content))
    assert load(model).sample is not None


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["options"]["relevance"].update(hidden=[10**6, 10**6]),
        lambda m: m["options"]["relevance"].update(hidden=[10**12, 10**12]),
        lambda m: m["options"].update(dimension=10**9),
        lambda m: m["options"].update(base_hidden=[10**9]),
    ],
)
def test_a_size_that_nobody_has_weights_for_is_refused_without_taking_memory(
    change: Callable[[dict[str, Any]], object], model: Path
) -> None:
    _edit(model, change)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelFileError, match="do not fit"):
        load(model)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensor: tensor.to(torch.int64), "of type torch.int64, not torch.float32"),
        (lambda tensor: tensor.to(torch.bool), "of type torch.bool"),
        (lambda tensor: tensor.to(torch.complex64), "of type torch.complex64"),
        (lambda tensor: tensor * torch.nan, "is not finite"),
        (lambda tensor: tensor + torch.inf, "is not finite"),
    ],
)
def test_weights_of_another_type_or_without_a_number_are_refused(
    change: Callable[[torch.Tensor], torch.Tensor], message: str, model: Path
) -> None:
    path = model / "weights.safetensors"
    tensors = load_file(path)
    name = next(name for name in tensors if "weight" in name)
    save_file(tensors | {name: change(tensors[name])}, path)
    digest = blake2b(path.read_bytes(), digest_size=16).hexdigest()
    _edit(model, lambda m: m.update(weights_digest=digest))
    with pytest.raises(ModelFileError, match=message):
        load(model)


@pytest.mark.parametrize("name", ["manifest.json", "weights.safetensors", "sample.safetensors"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(name: str, model: Path) -> None:
    (model / name).unlink()
    os.mkfifo(model / name)
    with pytest.raises(DataError, match="is not a file"):
        load(model)


def test_a_folder_without_manifest_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"has no manifest\.json"):
        load(tmp_path)


def test_a_model_is_not_overwritten_unasked(model: Path) -> None:
    ranker = load(model)
    with pytest.raises(OptionError, match="is not empty"):
        ranker.save(model)
    ranker.save(model, overwrite=True)
    load(model)


def test_a_click_log_and_a_file_are_called_what_they_are(model: Path, tmp_path: Path) -> None:
    log = ClickLog.of(features=[[1.0], [2.0]], documents=[0, 1], offsets=[0, 2], clicks=[1, 0])
    log.save(tmp_path / "log")
    with pytest.raises(ModelFileError, match=r"log is a click log and no model; give the folder of a model"):
        load(tmp_path / "log")
    with pytest.raises(DataError, match=r"is a model and no click log; give a folder that `ultr prepare` or"):
        ClickLog.load(model)
    with pytest.raises(ModelFileError, match=r"manifest.json is a file; give the folder of a model"):
        load(model / "manifest.json")
    (tmp_path / "my clicks.csv").touch()
    with pytest.raises(DataError, match=r"prepare it first: ultr prepare '.*my clicks.csv' --out log"):
        ClickLog.load(tmp_path / "my clicks.csv")

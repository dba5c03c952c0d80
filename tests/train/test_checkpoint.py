from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from ultr.data.click_log import ClickLog
from ultr.errors import ModelFileError
from ultr.methods import ClickBaseline
from ultr.relevance import MLP
from ultr.train import checkpoint as file

STEPS = 6


def _fit(log: ClickLog, path: Path) -> ClickBaseline:
    return ClickBaseline(relevance=MLP(hidden=(4,), steps=STEPS), evaluate_every=2).fit(log, checkpoint=path)


@pytest.fixture
def saved(small_log: ClickLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The checkpoint of a run that was stopped half way."""
    path, whole = tmp_path / "run.checkpoint", file.Checkpoint.save

    def save(self: file.Checkpoint, *state: Any) -> None:
        whole(self, *state)
        if state[-1].step == STEPS - 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(file.Checkpoint, "save", save)
        with pytest.raises(KeyboardInterrupt):
            _fit(small_log, path)
    return path


def _made_up(path: Path, change: Callable[[dict[str, Tensor], dict[str, Any]], object]) -> None:
    """Change tensors and training state as somebody would who knows how the digest is made."""
    tensors = load_file(path)
    with safe_open(path, framework="pt") as opened:
        metadata = dict(opened.metadata())
    del metadata["digest"]
    state = json.loads(metadata["state"])
    change(tensors, state)
    metadata["state"] = json.dumps(state)
    save_file(tensors, path, metadata | {"digest": file.checkpoint_digest(tensors, metadata)})


def test_no_flipped_bit_of_a_checkpoint_is_trained_on(small_log: ClickLog, saved: Path) -> None:
    whole, generator = saved.read_bytes(), np.random.default_rng(1)
    places = {*range(8), *generator.choice(len(whole), size=80, replace=False).tolist()}
    for place in sorted(places):
        content = bytearray(whole)
        content[place] ^= 1 << int(generator.integers(8))
        saved.write_bytes(content)
        with pytest.raises(ModelFileError, match=r"run\.checkpoint (is damaged|is of another version)"):
            _fit(small_log, saved)
    saved.write_bytes(whole)
    _fit(small_log, saved)


@pytest.mark.parametrize(
    "change",
    [
        lambda tensors, state: state.update(stage=99),
        lambda tensors, state: state.update(stage=-1),
        lambda tensors, state: state.update(step=10**9),
        lambda tensors, state: state.update(step="2"),
        lambda tensors, state: state.pop("step"),
        lambda tensors, state: state.update(history=[1]),
        lambda tensors, state: state.update(surprise=1),
        lambda tensors, state: tensors.clear(),
        lambda tensors, state: tensors.update({"model.surprise": torch.zeros(1)}),
        lambda tensors, state: tensors.update({name: value.double() for name, value in tensors.items()}),
        lambda tensors, state: tensors.update({name: value * torch.nan for name, value in tensors.items()}),
        lambda tensors, state: tensors.update({name: torch.zeros(3, 3) for name in tensors}),
        lambda tensors, state: tensors.update({name: torch.zeros(3, 3) for name in tensors if ":" in name}),
        lambda tensors, state: tensors.update({"optimizer.surprise:step": torch.zeros(())}),
    ],
)
def test_a_made_up_checkpoint_that_does_not_fit_is_called_damaged(
    change: Callable[[dict[str, Tensor], dict[str, Any]], object], small_log: ClickLog, saved: Path
) -> None:
    _made_up(saved, change)
    with pytest.raises(ModelFileError, match=r"is damaged .*; remove it to start again"):
        _fit(small_log, saved)


def test_a_checkpoint_of_an_older_format_is_called_so(small_log: ClickLog, saved: Path) -> None:
    with safe_open(saved, framework="pt") as opened:
        metadata = dict(opened.metadata()) | {"format": "ultr checkpoint 3"}
    del metadata["digest"]
    save_file(load_file(saved), saved, metadata)
    with pytest.raises(ModelFileError, match=r"another version of ultr \(ultr checkpoint 3, not ultr checkpoint 4\)"):
        _fit(small_log, saved)


def test_a_pipe_in_the_place_of_a_checkpoint_is_not_waited_for(small_log: ClickLog, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.checkpoint")
    with pytest.raises(ModelFileError, match="is not a file"):
        _fit(small_log, tmp_path / "run.checkpoint")

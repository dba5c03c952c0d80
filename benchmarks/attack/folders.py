"""Attacks on model folders, checkpoints and click-log folders."""

from __future__ import annotations

import json
import shutil
import warnings
from abc import ABC, abstractmethod
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from benchmarks.attack.damage import damage, odd_json, replace_file
from benchmarks.attack.outcome import Outcome, outcome_of
from ultr.clicks import click_model
from ultr.data.click_log import ClickLog
from ultr.datasets.letor_like import letor_like
from ultr.errors import DataError
from ultr.files import read_json, write_json
from ultr.methods import ClickBaseline, Vectorization, load
from ultr.methods.estimator import Estimator
from ultr.relevance import MLP, Trees
from ultr.simulation import simulate
from ultr.train.checkpoint import checkpoint_digest
from ultr.train.progress import Silent


def small_log() -> ClickLog:
    """A log of a few hundred lists."""
    judged = letor_like(train_queries=30, validation_queries=1, test_queries=1, features=16).train
    return simulate(judged, click_model("position-based"), impressions=2_000, seed=0)


class Folder(ABC):
    """A folder of files of ours: a copy of it is damaged, or changed as a stranger would, and read."""

    name: str
    share = 1.0

    def __init__(self, work: Path) -> None:
        self.whole, self.copy = work / f"{self.name} whole", work / f"{self.name} attacked"
        self.make(self.whole)
        self.expected = self.read(self.whole)

    def attempt(self, random: Random) -> tuple[Outcome, str]:
        """Attack one file, or make one up."""
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self.whole, self.copy)
        path = random.choice(sorted(path for path in self.copy.iterdir() if path.is_file()))
        kind, made_up = random.choice(("damage", "damage", "replaced", "made up")), False
        if kind == "damage":
            changed, how = damage(path.read_bytes(), random)
            path.write_bytes(changed)
            how = f"{path.name}: {how}"
        elif kind == "replaced":
            how = replace_file(path, random)
            # What is not there is no damage: an optional file is done without.
            made_up = not path.exists()
        else:
            how, made_up = self.make_up(random), True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome, said = outcome_of(
                lambda: self.read(self.copy), lambda found: found == self.expected, made_up=made_up
            )
        return outcome, f"{how}: {said}"

    @abstractmethod
    def make(self, folder: Path) -> None:
        """Write a good one."""

    @abstractmethod
    def read(self, folder: Path) -> object:
        """Read one and use it; whatever can be compared."""

    @abstractmethod
    def make_up(self, random: Random) -> str:
        """Change the copy as somebody would who knows how digests are made; what was done."""


class Models(Folder):
    """Model folders with a network."""

    name = "model folders"
    estimator: Estimator = Vectorization(relevance=MLP(hidden=(8,), steps=2), base_hidden=(4,), dimension=2)

    def make(self, folder: Path) -> None:
        """Train a small one."""
        self.estimator.fit(small_log()).save(folder)

    def read(self, folder: Path) -> object:
        """Load it, and score its sample."""
        ranker = load(folder)
        kept = ranker.sample
        scores = b"" if kept is None else ranker.score(kept.features, kept.offsets).tobytes()
        return scores, ranker.feature_names, ranker.options, ranker.factors, ranker.clicks_per_impression

    def make_up(self, random: Random) -> str:
        """Change the manifest or the weights, with their digests."""
        manifest = read_json(self.copy / "manifest.json")
        if random.random() < 0.6:
            manifest, how = odd_json(manifest, random)
        else:
            path = self.copy / "weights.safetensors"
            tensors = load_file(path)
            name = random.choice(sorted(tensors))
            tensors[name], how = _odd_tensor(tensors[name], random)
            save_file(tensors, path)
            manifest["weights_digest"] = blake2b(path.read_bytes(), digest_size=16).hexdigest()
            manifest["tensors"][name] = list(tensors[name].shape)
            how = f"{name} {how}"
        _write(self.copy / "manifest.json", manifest)
        return how


class Forests(Models):
    """Model folders with trees."""

    name = "model folders with trees"
    estimator = ClickBaseline(relevance=Trees(rounds=3))


class ClickLogs(Folder):
    """Click-log folders."""

    name = "click logs"

    def make(self, folder: Path) -> None:
        """Save a small one."""
        small_log().save(folder)

    def read(self, folder: Path) -> object:
        """Load it, and use it as training does."""
        log = ClickLog.load(folder)
        kept, held_out = log.split()
        totals = log.totals(log.position)
        return log.fingerprint(), log.splits, kept.fingerprint(), held_out.lists, totals.clicks.tobytes(), repr(log)

    def make_up(self, random: Random) -> str:
        """Change the manifest or an array, and leave out the fingerprint that would tell."""
        manifest = read_json(self.copy / "manifest.json")
        del manifest["fingerprint"]
        if random.random() < 0.5:
            manifest, how = odd_json(manifest, random)
        else:
            path = random.choice(sorted(self.copy.glob("*.npy")))
            array, how = _odd_array(np.load(path), random)
            np.save(path, array)
            how = f"{path.name} {how}"
        _write(self.copy / "manifest.json", manifest)
        return how


class Stopping(Silent):
    """Stops a run one step after its first checkpoint."""

    def step(self, step: int) -> None:
        """After each step."""
        if step == 3:
            raise InterruptedError


class Checkpoints(Folder):
    """Checkpoints of runs that were stopped."""

    name = "checkpoints"

    def make(self, folder: Path) -> None:
        """Keep the checkpoint of a run that was stopped half way."""
        folder.mkdir()
        self.log = small_log()
        with suppress(InterruptedError):
            self._fit(folder, progress=Stopping())

    def _fit(self, folder: Path, *, progress: bool | Silent = False) -> Estimator:
        estimator = ClickBaseline(relevance=MLP(hidden=(4,), steps=4), evaluate_every=2)
        return estimator.fit(self.log, checkpoint=folder / "run.checkpoint", progress=progress)

    def read(self, folder: Path) -> object:
        """Go on from the checkpoint; the weights at the end."""
        path = folder / "run.checkpoint"
        if not path.exists():
            raise DataError("there is no checkpoint, so the run starts anew")
        before = path.read_bytes() if path.is_file() else b""
        fitted = self._fit(folder)
        # The good one is read once more for every attempt.
        path.write_bytes(before)
        return {name: value.numpy().tobytes() for name, value in fitted.ranker_.model.state_dict().items()}

    def make_up(self, random: Random) -> str:
        """Change tensors or the training state, with the digest that belongs to them."""
        path = self.copy / "run.checkpoint"
        tensors = load_file(path)
        with safe_open(path, framework="pt") as opened:
            metadata = {name: text for name, text in opened.metadata().items() if name != "digest"}
        if random.random() < 0.5:
            name = random.choice(sorted(tensors))
            tensors[name], how = _odd_tensor(tensors[name], random)
            how = f"{name} {how}"
        else:
            state, how = odd_json(json.loads(metadata["state"]), random)
            metadata["state"] = json.dumps(state)
        save_file(tensors, path, metadata | {"digest": checkpoint_digest(tensors, metadata)})
        return how


def _write(path: Path, manifest: Any) -> None:
    """Write what a stranger would, with a digest if it can have one."""
    if isinstance(manifest, dict):
        write_json(path, manifest, sealed=True)


def _odd_tensor(tensor: torch.Tensor, random: Random) -> tuple[torch.Tensor, str]:
    kind = random.choice(
        ("int64", "bool", "float64", "float16", "complex64", "nan", "inf", "huge", "longer", "flat", "none")
    )
    if kind in ("int64", "bool", "float64", "float16", "complex64"):
        return tensor.to(getattr(torch, kind)), f"as {kind}"
    if kind in ("nan", "inf", "huge"):
        number = {"nan": torch.nan, "inf": torch.inf, "huge": 3e38}[kind]
        return torch.full_like(tensor, number) if tensor.is_floating_point() else tensor, f"all {kind}"
    shape = {"longer": (*tensor.shape, 2), "flat": (max(tensor.numel(), 1),), "none": (0,)}[kind]
    return torch.zeros(shape, dtype=tensor.dtype), f"of shape {shape}"


def _odd_array(array: Any, random: Random) -> tuple[Any, str]:
    kind = random.choice(("<i1", "<u8", "<f8", "<c8", "S4", "negative", "huge", "short", "long", "square", "bool"))
    if kind in ("<i1", "<u8", "<f8", "<c8", "S4", "bool"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return (array if array.dtype.kind == "U" else array.astype(kind)), f"as {kind}"
    if kind == "short":
        return array[:-1], kind
    if kind == "long":
        return np.concatenate([array, array[-1:]]), kind
    if kind == "square":
        return np.stack([array, array]), kind
    changed = array.copy()
    if changed.size and changed.dtype.kind in "iuf":
        changed.flat[random.randrange(changed.size)] = -5 if kind == "negative" else np.iinfo(np.int32).max
    return changed, kind

"""Model folders: weights as safetensors, everything else in a JSON manifest."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError, model_validator
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from ultr.data.judged import JudgedLists
from ultr.data.provenance import Provenance
from ultr.data.scaling import FeatureScaling
from ultr.errors import ModelFileError
from ultr.files import new_folder, read_json, write_json
from ultr.methods.origin import Origin
from ultr.methods.sample import save_sample
from ultr.train.checkpoint import Record
from ultr.train.team import Team
from ultr.version import __version__

FORMAT = "ultr model 1"
WEIGHTS = "weights.safetensors"
MANIFEST = "manifest.json"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Factor(_Strict):
    """A bias factor that the model knows."""

    name: str
    levels: list[str]


class Scaling(_Strict):
    """The smallest, largest and typical training value of each feature."""

    minimum: list[FiniteFloat]
    maximum: list[FiniteFloat]
    typical: list[FiniteFloat] = []
    """Empty in models of earlier versions."""


class HistoryRecord(_Strict):
    """A line of the learning curve."""

    stage: str
    step: int
    loss: float
    value: float | None


class Manifest(_Strict):
    """What a model is, besides its weights."""

    format: str
    method: str
    options: dict[str, Any]
    """The estimator's options; the seed is one of them."""
    feature_names: list[str]
    scaling: Scaling
    factors: list[Factor]
    clicks_per_impression: FiniteFloat
    data_fingerprint: str
    """Names the exact training data."""
    versions: dict[str, str]
    history: list[HistoryRecord]
    choices: dict[str, Any] = {}
    """What training chose where an option left it open."""
    tensors: dict[str, list[int]] = {}
    """Name and shape of each weight."""
    weights_digest: str = ""
    origin: Origin | None = None
    """None where nobody said."""
    provenance: Provenance | None = None
    """None in models of earlier versions."""

    @model_validator(mode="after")
    def _one_scaling_for_each_feature(self) -> Self:
        scaling = self.scaling
        lengths = {len(scaling.minimum), len(scaling.maximum), len(scaling.typical or scaling.minimum)}
        if lengths != {len(self.feature_names)}:
            raise ValueError("scaling and feature_names differ in length")
        return self

    @classmethod
    def of(
        cls,
        *,
        method: str,
        options: dict[str, Any],
        feature_names: Sequence[str],
        scaling: FeatureScaling,
        factors: Sequence[tuple[str, Sequence[str]]],
        clicks_per_impression: float,
        data_fingerprint: str,
        history: Sequence[Record],
        choices: dict[str, Any] | None = None,
        origin: Origin | None = None,
        provenance: Provenance | None = None,
    ) -> Manifest:
        """The manifest of a ranker; `save` adds what depends on the weights."""
        return cls(
            format=FORMAT,
            method=method,
            options=options,
            feature_names=list(feature_names),
            scaling=Scaling(
                minimum=scaling.minimum.tolist(), maximum=scaling.maximum.tolist(), typical=scaling.typical.tolist()
            ),
            factors=[Factor(name=name, levels=list(levels)) for name, levels in factors],
            clicks_per_impression=clicks_per_impression,
            data_fingerprint=data_fingerprint,
            versions={
                "ultr": __version__,
                "torch": torch.__version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
                "threads": str(torch.get_num_threads()),
                "processes": str(Team.of_environment().size),
            },
            history=[HistoryRecord(**vars(record)) for record in history],
            choices=choices or {},
            origin=origin,
            provenance=provenance,
        )

    def feature_scaling(self) -> FeatureScaling:
        """The scaling as arrays."""
        minimum, maximum, typical = (
            np.array(values, dtype=np.float32)
            for values in (self.scaling.minimum, self.scaling.maximum, self.scaling.typical)
        )
        middle = (minimum / 2 + maximum / 2).astype(np.float32)
        return FeatureScaling(minimum, maximum, typical if len(typical) else middle)


def save(
    folder: str | Path, network: nn.Module, manifest: Manifest, sample: JudgedLists | None, *, overwrite: bool
) -> None:
    """Write weights, manifest and sample as a folder, whole or not at all."""
    tensors = _tensors(network)
    with new_folder(folder, overwrite=overwrite) as draft:
        try:
            save_file(tensors, draft / WEIGHTS)
        except SafetensorError as error:
            raise ModelFileError(f"cannot write the weights of {folder}: {error}") from error
        (draft / WEIGHTS).chmod(0o644)
        if sample is not None:
            save_sample(draft, sample)
        complete = manifest.model_copy(
            update={
                "tensors": {name: list(value.shape) for name, value in tensors.items()},
                "weights_digest": _digest(draft / WEIGHTS),
            }
        )
        write_json(draft / MANIFEST, complete.model_dump())


def weights_digest(network: nn.Module) -> str:
    """The digest that the manifest of this network has."""
    return blake2b(to_bytes(_tensors(network)), digest_size=16).hexdigest()


def load_manifest(folder: str | Path) -> Manifest:
    """The manifest of a model folder."""
    path = Path(folder) / MANIFEST
    if not Path(folder).is_dir():
        raise ModelFileError(f"there is no folder {folder}; give the folder of a saved model")
    if not path.exists():
        raise ModelFileError(f"{folder} is not a model folder: it has no {MANIFEST}")
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not the manifest of a model that this version of ultr reads")
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = f" at {'.'.join(str(part) for part in first['loc'])!r}" if first["loc"] else ""
        raise ModelFileError(f"{path} is damaged{where} ({first['msg']}); save the model again") from error


def load_weights(folder: str | Path, network: nn.Module, manifest: Manifest) -> None:
    """Put the weights of a model folder into a network that must fit them."""
    path = Path(folder) / WEIGHTS
    if not path.exists():
        raise ModelFileError(f"{folder} has no {WEIGHTS}; save the model again")
    if _digest(path) != manifest.weights_digest:
        raise ModelFileError(f"{path} is truncated or not the file that {MANIFEST} belongs to; save the model again")
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise ModelFileError(f"{path} cannot be read ({error}); save the model again") from error
    wanted = {name: list(value.shape) for name, value in network.state_dict().items()}
    if wanted != manifest.tensors or wanted != {name: list(value.shape) for name, value in tensors.items()}:
        raise ModelFileError(f"the weights in {folder} do not fit its {MANIFEST}; save the model again")
    network.load_state_dict(tensors)


def _tensors(network: nn.Module) -> dict[str, Tensor]:
    return {name: value.contiguous() for name, value in network.state_dict().items()}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        digest = blake2b(digest_size=16)
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()

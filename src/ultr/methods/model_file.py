"""Model folders: weights as safetensors, everything else in a JSON manifest."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, FiniteFloat, TypeAdapter, ValidationError, field_validator, model_validator
from safetensors import SafetensorError
from safetensors.torch import load as of_bytes
from safetensors.torch import save as to_bytes
from safetensors.torch import save_file
from torch import Tensor, nn

from ultr.data.provenance import Provenance
from ultr.data.scaling import FeatureScaling
from ultr.errors import ModelFileError, UltrError
from ultr.files import check_is_file, new_folder, read_json, write_json
from ultr.methods.dimension import TriedDimension
from ultr.methods.factors import Factor
from ultr.methods.origin import Origin
from ultr.methods.ranker import Ranker
from ultr.methods.sample import save_sample
from ultr.train.checkpoint import Record
from ultr.train.process_group import ProcessGroup
from ultr.train.weights import check_weights
from ultr.version import __version__

FORMAT = "ultr model 2"
WEIGHTS = "weights.safetensors"
MANIFEST = "manifest.json"
ModelT = TypeVar("ModelT", bound=nn.Module)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Scaling(_Strict):
    """The smallest, largest and typical training value of each feature."""

    minimum: list[FiniteFloat]
    maximum: list[FiniteFloat]
    typical: list[FiniteFloat]
    missing: list[FiniteFloat] | None = None
    """Share of the training documents in which each is missing; None if unknown."""


class Manifest(_Strict):
    """All that is known of a ranker besides its weights."""

    format: str
    method: str
    options: dict[str, Any]
    """Options of the estimator and of its relevance model; the seed is one of them."""
    feature_names: list[str]
    scaling: Scaling
    categories: dict[str, tuple[str, ...]] = {}
    """Values of each categorical feature; the code of a value is its place."""
    factors: list[Factor]
    clicks_per_impression: FiniteFloat
    versions: dict[str, str]
    history: list[Record]
    choices: dict[str, Any]
    """Options that training chose, and what it chose from."""
    tensors: dict[str, list[int]]
    """Name and shape of each weight."""
    weights_digest: str
    sample_digest: str | None = None
    """Digest of the sample's file; None if there is none, or it was saved before there were digests of it."""
    origin: Origin | None = None
    """Command and files that it was trained with; None if unknown."""
    provenance: Provenance | None = None
    """The data that it was trained on, and how they were cut out of larger logs."""

    @model_validator(mode="after")
    def _one_scaling_for_each_feature(self) -> Self:
        scaling = self.scaling
        parts = (scaling.minimum, scaling.maximum, scaling.typical, scaling.missing)
        if {len(part) for part in parts if part is not None} != {len(self.feature_names)}:
            raise ValueError("scaling and feature_names differ in length")
        if any(low > high for low, high in zip(scaling.minimum, scaling.maximum, strict=True)):
            raise ValueError("a minimum of scaling is above its maximum")
        if len(set(self.feature_names)) < len(self.feature_names):
            raise ValueError("two features have one name")
        if not self.categories.keys() <= set(self.feature_names):
            raise ValueError("there are categories of what is no feature")
        return self

    @field_validator("choices")
    @classmethod
    def _tried_dimensions_are_complete(cls, choices: dict[str, Any]) -> dict[str, Any]:
        TypeAdapter(list[TriedDimension]).validate_python(choices.get("candidates", []))
        return choices

    @classmethod
    def of(cls, ranker: Ranker, tensors: Mapping[str, Tensor], sample_digest: str | None) -> Manifest:
        """The manifest of a ranker with these weights, and a sample in a file with this digest."""
        scaling = ranker.scaling
        return cls(
            format=FORMAT,
            method=ranker.method,
            options=dict(ranker.options),
            feature_names=list(ranker.feature_names),
            scaling=Scaling(
                minimum=scaling.minimum.tolist(),
                maximum=scaling.maximum.tolist(),
                typical=scaling.typical.tolist(),
                missing=scaling.missing.tolist(),
            ),
            categories=dict(ranker.categories),
            factors=list(ranker.factors),
            clicks_per_impression=ranker.clicks_per_impression,
            versions={
                "ultr": __version__,
                "torch": torch.__version__,
                "numpy": np.__version__,
                "python": platform.python_version(),
                "threads": str(torch.get_num_threads()),
                "processes": str(ProcessGroup.of_environment().size),
            },
            history=list(ranker.history),
            choices=dict(ranker.choices),
            tensors={name: list(value.shape) for name, value in tensors.items()},
            weights_digest=_digest(tensors),
            sample_digest=sample_digest,
            origin=ranker.origin,
            provenance=ranker.provenance,
        )

    def feature_scaling(self) -> FeatureScaling:
        """The scaling as arrays."""
        values = (self.scaling.minimum, self.scaling.maximum, self.scaling.typical)
        minimum, maximum, typical = (np.array(each, dtype=np.float32) for each in values)
        missing = np.zeros(len(minimum)) if self.scaling.missing is None else np.array(self.scaling.missing)
        return FeatureScaling(minimum, maximum, typical, missing)


def save(folder: str | Path, ranker: Ranker, *, overwrite: bool) -> None:
    """Write weights, manifest and sample as a folder, whole or not at all."""
    tensors = _tensors(ranker.model)
    with new_folder(folder, overwrite=overwrite) as draft:
        try:
            save_file(tensors, draft / WEIGHTS)
        except SafetensorError as error:
            raise ModelFileError(f"cannot write the weights of {folder}: {error}") from error
        (draft / WEIGHTS).chmod(0o644)
        sample_digest = None if ranker.sample is None else save_sample(draft, ranker.sample)
        write_json(draft / MANIFEST, Manifest.of(ranker, tensors, sample_digest).model_dump(), sealed=True)


def weights_digest(model: nn.Module) -> str:
    """The digest that the manifest of this model has."""
    return _digest(_tensors(model))


def load_manifest(folder: str | Path) -> Manifest:
    """The manifest of a model folder."""
    path = Path(folder) / MANIFEST
    if Path(folder).is_file():
        raise ModelFileError(f"{folder} is a file; give the folder of a model, which `ultr train` writes")
    if not Path(folder).is_dir():
        raise ModelFileError(f"there is no folder {folder}; give the folder of a saved model")
    if not path.exists():
        raise ModelFileError(f"{folder} is not a model folder: it has no {MANIFEST}")
    content = read_json(path)
    if isinstance(content, dict) and content.get("format") == "ultr model 1":
        command = (content.get("origin") or {}).get("command")
        again = f": {command}" if command else ""
        raise ModelFileError(f"{folder} was saved by an earlier version of ultr; train the model again{again}")
    if isinstance(content, dict) and str(content.get("format")).startswith("ultr click log"):
        raise ModelFileError(
            f"{folder} is a click log and no model; give the folder of a model, which `ultr train` writes"
        )
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not the manifest of a model that this version of ultr reads")
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = f" at {'.'.join(str(part) for part in first['loc'])!r}" if first["loc"] else ""
        raise ModelFileError(f"{path} is damaged{where} ({first['msg']}); save the model again") from error


def load_weights(folder: str | Path, manifest: Manifest) -> dict[str, Tensor]:
    """The weights of a model folder, if they are those of its manifest."""
    path = Path(folder) / WEIGHTS
    if not path.exists():
        raise ModelFileError(f"{folder} has no {WEIGHTS}; save the model again")
    check_is_file(path)
    content = path.read_bytes()
    if blake2b(content, digest_size=16).hexdigest() != manifest.weights_digest:
        raise ModelFileError(f"{path} is truncated or not the file that {MANIFEST} belongs to; save the model again")
    try:
        tensors = of_bytes(content)
    except SafetensorError as error:
        raise ModelFileError(f"{path} cannot be read ({error}); save the model again") from error
    if {name: list(value.shape) for name, value in tensors.items()} != manifest.tensors:
        raise ModelFileError(f"the weights in {folder} do not fit its {MANIFEST}; save the model again")
    return tensors


def put_weights(folder: str | Path, build: Callable[[], ModelT], tensors: Mapping[str, Tensor]) -> ModelT:
    """The model that `build` makes, with the weights of a folder.

    What the manifest asks for is built without memory first and compared with the weights that are there, so that a
    size that nobody has weights for takes none.
    """
    try:
        check_weights(tensors, _without_memory(build))
        model = build().requires_grad_(False)
        model.load_state_dict(tensors)
    except UltrError:
        raise
    except (ValueError, RuntimeError) as error:
        why = str(error).partition("\n")[0]
        raise ModelFileError(
            f"the weights in {folder} do not fit its {MANIFEST} ({why}); save the model again"
        ) from error
    return model


def _without_memory(build: Callable[[], ModelT]) -> ModelT:
    """The model on torch's device `meta`; a method of another package may do what that device cannot."""
    try:
        with torch.device("meta"):
            return build()
    except (RuntimeError, TypeError):
        return build()


def _tensors(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.contiguous() for name, value in model.state_dict().items()}


def _digest(tensors: Mapping[str, Tensor]) -> str:
    return blake2b(to_bytes(dict(tensors)), digest_size=16).hexdigest()

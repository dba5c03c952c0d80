"""Checkpoints: all that a killed run needs to go on as if nothing had happened."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path

import torch
from pydantic import TypeAdapter
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from safetensors.torch import save_file
from torch import Tensor, nn

from ultr.errors import DataError, ModelFileError
from ultr.files import check_is_file, new_file
from ultr.train.weights import check_weights

FORMAT = "ultr checkpoint 4"


@dataclass(frozen=True)
class Record:
    """One line of the learning curve."""

    stage: str
    step: int
    loss: float | None
    """Mean over the steps since the line before; None where a library trains and does not say."""
    value: float | None
    """The value of validation, if there is any."""


@dataclass
class TrainingState:
    """The place of a run in its stages, and its learning curve so far."""

    stage: int = 0
    step: int = 0
    """Steps of the stage that are done."""
    loss_sum: float = 0.0
    """Sum of the losses since the last record, over `loss_count` steps."""
    loss_count: int = 0
    best_value: float | None = None
    best_step: int = 0
    history: list[Record] = field(default_factory=list)


@dataclass(frozen=True)
class Checkpoint:
    """A file that holds weights, optimiser state, best weights and training state of one run."""

    path: Path
    run: str
    """Names the options and the data; a checkpoint of another run is refused."""

    def save(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        best: dict[str, Tensor] | None,
        state: TrainingState,
    ) -> None:
        """Write the state, whole or not at all."""
        tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in (best or {}).items()}
        for name, parameter in model.named_parameters():
            for key, value in optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer.{name}:{key}"] = value
        tensors = {name: value.contiguous() for name, value in tensors.items()}
        metadata = {"format": FORMAT, "run": self.run, "state": json.dumps(asdict(state))}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(self.path) as draft:
            try:
                save_file(tensors, draft, metadata | {"digest": checkpoint_digest(tensors, metadata)})
            except SafetensorError as error:
                raise ModelFileError(f"cannot write checkpoint {self.path}: {error}") from error

    def load(self, model: nn.Module) -> tuple[TrainingState, dict[str, Tensor] | None, dict[str, Tensor]] | None:
        """Put the saved weights into the model; the training state, the best weights and those of the optimiser.

        None where nothing was saved yet. A file that is not what `save` wrote, to the bit, is a `ModelFileError`.
        """
        if not self.path.exists():
            return None
        try:
            check_is_file(self.path)
            with safe_open(self.path, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError, DataError) as error:
            raise self.damaged(str(error)) from error
        written = metadata.get("format", "")
        if written != FORMAT and written.startswith("ultr checkpoint "):
            raise ModelFileError(
                f"checkpoint {self.path} is of another version of ultr ({written}, not {FORMAT}); go on with that "
                "version, or remove it to start again"
            )
        if metadata.pop("digest", None) != checkpoint_digest(tensors, metadata) or written != FORMAT:
            raise self.damaged("its digest is another")
        if metadata.get("run") != self.run:
            raise ModelFileError(
                f"checkpoint {self.path} belongs to a run with other options or data; remove it to start again"
            )
        weights, best, moments = (_under(f"{part}.", tensors) for part in ("model", "best", "optimizer"))
        try:
            state = TypeAdapter(TrainingState).validate_json(metadata["state"], strict=True)
            if json.dumps(asdict(state)) != metadata["state"]:
                raise ValueError("a training state with other fields")
            for part in (weights, best) if best else (weights,):
                check_weights(part, model)
            _check_moments(moments, model)
            model.load_state_dict(weights)
        except (KeyError, ValueError) as error:
            raise self.damaged("what it holds does not fit") from error
        return state, best or None, moments

    def damaged(self, why: str) -> ModelFileError:
        """The error for a file that cannot be gone on from."""
        return ModelFileError(f"checkpoint {self.path} is damaged ({why}); remove it to start again")


def restore(optimizer: torch.optim.Optimizer, model: nn.Module, saved: dict[str, Tensor]) -> None:
    """Put the state of an optimiser, as `Checkpoint.load` gives it, into one for this model."""
    for name, parameter in model.named_parameters():
        if moments := _under(f"{name}:", saved):
            optimizer.state[parameter] = {
                key: value if key == "step" else value.to(parameter.device) for key, value in moments.items()
            }


def _check_moments(moments: Mapping[str, Tensor], model: nn.Module) -> None:
    """Raise a `ValueError` unless an optimiser of this model can have this state: steps, and tensors of its shapes."""
    parameters = dict(model.named_parameters())
    for name, moment in moments.items():
        owner, _, key = name.rpartition(":")
        wanted = torch.zeros(()) if key == "step" else parameters.get(owner)
        if owner not in parameters or wanted is None or (moment.shape, moment.dtype) != (wanted.shape, wanted.dtype):
            raise ValueError(f"{name} is the state of no weight")


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}


def checkpoint_digest(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """A digest of all that a checkpoint promises: names, types, shapes and values of its tensors, and what it says."""
    digest = blake2b(to_bytes(dict(tensors)), digest_size=16)
    digest.update(json.dumps(metadata, sort_keys=True).encode())
    return digest.hexdigest()

"""Checkpoints: all that a killed run needs to go on as if nothing had happened."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ultr.errors import ModelFileError
from ultr.files import new_file

FORMAT = "ultr checkpoint 3"


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
        metadata = {"format": FORMAT, "run": self.run, "state": json.dumps(asdict(state))}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(self.path) as draft:
            try:
                save_file({name: value.contiguous() for name, value in tensors.items()}, draft, metadata)
            except SafetensorError as error:
                raise ModelFileError(f"cannot write checkpoint {self.path}: {error}") from error

    def load(self, model: nn.Module) -> tuple[TrainingState, dict[str, Tensor] | None, dict[str, Tensor]] | None:
        """Put the saved weights into the model; the training state, the best weights and those of the optimiser.

        None where nothing was saved yet.
        """
        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise ModelFileError(f"checkpoint {self.path} is damaged ({error}); remove it to start again") from error
        if metadata.get("format") != FORMAT or metadata.get("run") != self.run:
            raise ModelFileError(
                f"checkpoint {self.path} belongs to a run with other options or data; remove it to start again"
            )
        model.load_state_dict(_under("model.", tensors))
        content = json.loads(metadata["state"])
        history = [Record(**record) for record in content.pop("history")]
        return (
            TrainingState(**content, history=history),
            _under("best.", tensors) or None,
            _under("optimizer.", tensors),
        )


def restore(optimizer: torch.optim.Optimizer, model: nn.Module, saved: dict[str, Tensor]) -> None:
    """Put the state of an optimiser, as `Checkpoint.load` gives it, into one for this model."""
    for name, parameter in model.named_parameters():
        if moments := _under(f"{name}:", saved):
            optimizer.state[parameter] = {
                key: value if key == "step" else value.to(parameter.device) for key, value in moments.items()
            }


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}

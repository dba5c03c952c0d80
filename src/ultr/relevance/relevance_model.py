"""What every kind of relevance model offers to the methods and to the training loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ultr.relevance.inputs import Documents
from ultr.relevance.recipe import Training


class RelevanceModel(nn.Module, ABC):
    """r(x): what a document is by itself, in one number or several.

    The loop calls it, takes the gradient of a loss, moves the parameters (if there are any) with its optimiser, and
    then calls `step`. A checkpoint and a saved model hold the `state_dict`.
    """

    @abstractmethod
    def forward(self, documents: Documents) -> Tensor:
        """r(x) of these documents, [documents, outputs]; a gradient flows back into the model."""

    @abstractmethod
    def project(self, vector: Tensor) -> RelevanceModel:
        """The model of r(x) . vector, with one output."""

    @abstractmethod
    def graph(self) -> nn.Module:
        """Its piece of an exported graph: preprocessed features [documents, features] -> [documents, outputs]."""

    def step(self) -> None:
        """Learn from the gradient of the last call what is not a parameter; a network has nothing to do."""
        return


@dataclass(frozen=True, kw_only=True)
class Relevance(ABC):
    """The options of one kind of relevance model; `build` makes the model that learns."""

    kind: ClassVar[str]
    """The name on the command line and in files."""

    @abstractmethod
    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""

    @abstractmethod
    def build(self, features: int, outputs: int, *, generator: torch.Generator) -> RelevanceModel:
        """A new model with initial weights from the generator."""

    @abstractmethod
    def training(self) -> Training:
        """How the model is trained, with the defaults filled in."""

    def content(self) -> dict[str, Any]:
        """Kind and options, as a file has them."""
        return {"kind": self.kind} | asdict(self)

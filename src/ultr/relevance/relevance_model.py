"""What every kind of relevance model offers to the methods and to the training loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ultr.arrays import Floats
from ultr.relevance.inputs import Documents
from ultr.relevance.preprocessing import InputLayout
from ultr.relevance.recipe import Training
from ultr.relevance.search_space import SearchSpace


class RelevanceModel(nn.Module, ABC):
    """r(x): what a document is by itself, in one number or several.

    A network is called, and its optimiser moves its parameters along the gradient of a loss. A model without
    parameters, such as trees, learns from all lists at once (`Training.batch_size` is None): `begin` tells it the
    documents, `table` holds their outputs, and `step` gets the gradient and the curvature of the loss in the table.
    A checkpoint and a saved model hold the `state_dict`.
    """

    takes_missing: ClassVar[bool] = False
    """True: a missing feature (NaN) is known to the model; False: it counts as typical."""

    @abstractmethod
    def forward(self, documents: Documents) -> Tensor:
        """r(x) of these documents, [documents, outputs]; a gradient flows back into the model."""

    @abstractmethod
    def project(self, vector: Tensor) -> RelevanceModel:
        """The model of r(x) . vector, with one output."""

    @abstractmethod
    def graph(self) -> nn.Module:
        """Its piece of an exported graph: preprocessed features [documents, features] -> [documents, outputs]."""

    @property
    def table(self) -> Tensor | None:
        """The outputs of all documents that it learns from, [documents, outputs]; None for a network."""
        return None

    def begin(self, documents: Documents) -> None:
        """Get ready to learn from these documents; a network has nothing to do."""
        return

    def step(self, gradient: Tensor, curvature: Tensor) -> None:
        """Learn from the first and the second derivative of the loss in the table, each [documents, outputs]."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Relevance(ABC):
    """The options of one kind of relevance model; `build` makes the model that learns."""

    kind: ClassVar[str]
    """The name on the command line and in files."""
    library: ClassVar[str | None] = None
    """The package besides torch that training needs."""
    on_cpu: ClassVar[bool] = False
    """True: it learns on the CPU only."""

    @abstractmethod
    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""

    def check_features(self, features: Floats, names: Sequence[str]) -> None:
        """Raise an `OptionError` or a `DataError` for features that the model cannot learn from."""
        return

    @abstractmethod
    def build(self, features: InputLayout, outputs: int, *, generator: torch.Generator) -> RelevanceModel:
        """A new model with initial weights from the generator, for preprocessed features of this layout."""

    @abstractmethod
    def training(self) -> Training:
        """How the model is trained, with the defaults filled in."""

    def search_space(self) -> SearchSpace:
        """The values of its options that a search tries; by default none."""
        return {}

    def value_of(self, option: str) -> Any:
        """The value of an option, or that of its training where none is given."""
        value = getattr(self, option)
        return getattr(self.training(), option) if value is None else value

    def content(self) -> dict[str, Any]:
        """Kind and options, as a file has them."""
        return {"kind": self.kind} | asdict(self)

"""The multi-layer perceptron, the relevance model of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ultr import checks
from ultr.errors import OptionError
from ultr.relevance.inputs import Documents
from ultr.relevance.lookup import Lookup
from ultr.relevance.precision import check_precision
from ultr.relevance.preprocessing import InputLayout
from ultr.relevance.recipe import RECIPES, Training
from ultr.relevance.relevance_model import Relevance, RelevanceModel
from ultr.relevance.search_space import Between, OneOf, SearchSpace


class Layers(nn.Module):
    """Linear layers with ELU between them; with `normalise`, layer normalisation before each but the first.

    Inputs come preprocessed; the places of categories are looked up first. The normalisation has no gain and shift of
    its own: the linear layer behind it can express both. Under autocast, everything but the outputs is in the lower
    precision.
    """

    def __init__(
        self,
        inputs: int | InputLayout,
        hidden: Sequence[int],
        outputs: int,
        *,
        normalise: bool,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.normalise = normalise
        self.layout = InputLayout.of(inputs)
        tables = [Lookup(values) for values in self.layout.categories]
        self.tables = nn.ModuleList(tables)
        width = self.layout.numbers + sum(table.width for table in tables)
        self.linear = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise([width, *hidden, outputs]))
        for layer in self.linear:
            assert isinstance(layer, nn.Linear)
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            nn.init.zeros_(layer.bias)
        self._forget_values(tables)

    def forward(self, inputs: Tensor) -> Tensor:
        """[documents, inputs] -> [documents, outputs]."""
        return self.behind_tables(self.looked_up(inputs) if self.tables else inputs)

    def behind_tables(self, inputs: Tensor) -> Tensor:
        """Outputs from inputs that are all numbers, [documents, outputs]."""
        first, *rest = self.linear
        values: Tensor = first(inputs)
        for layer in rest:
            values = functional.elu(values, inplace=True)
            if self.normalise:
                values = functional.layer_norm(values, values.shape[-1:])
            values = layer(values)
        return values.to(inputs.dtype)

    def _forget_values(self, tables: Sequence[Lookup]) -> None:
        """Let a one-hot value begin at nothing, as learned rows do: one that training does not show stays there."""
        start, first = self.layout.numbers, self.linear[0].weight
        assert isinstance(first, nn.Parameter)
        for table in tables:
            if not table.learned:
                nn.init.zeros_(first[:, start : start + table.width])
            start += table.width

    def looked_up(self, inputs: Tensor) -> Tensor:
        """The numbers, and the rows of the tables in the place of the places, [documents, numbers and rows]."""
        count = self.layout.numbers
        places = inputs[:, count:].long().unbind(-1)
        rows = [table(of_feature) for table, of_feature in zip(self.tables, places, strict=True)]
        return torch.cat([inputs[:, :count], *rows], dim=-1)

    @property
    def last(self) -> nn.Linear:
        """The layer that gives the outputs."""
        layer = self.linear[-1]
        assert isinstance(layer, nn.Linear)
        return layer


class Network(RelevanceModel):
    """r(x) by a network of the preprocessed features."""

    def __init__(self, layers: Layers) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, documents: Documents) -> Tensor:
        """r(x) of these documents, [documents, outputs]."""
        outputs: Tensor = self.layers(documents.preprocessed)
        return outputs

    def project(self, vector: Tensor) -> Network:
        """The network of r(x) . vector: v . (W h + b) = (v W) h + v . b, so only its last layer changes."""
        projected = deepcopy(self.layers)
        last = projected.last
        projected.linear[-1] = folded = nn.Linear(last.in_features, 1)
        folded.weight.data = vector[None] @ last.weight.data
        folded.bias.data = vector[None] @ last.bias.data
        return Network(projected)

    def graph(self) -> nn.Module:
        """The layers."""
        return self.layers

    def reset_outputs(self) -> None:
        """Let the network give 0 for every document, until it learns."""
        with torch.no_grad():
            self.layers.last.weight.zero_()
            self.layers.last.bias.zero_()


@dataclass(frozen=True, kw_only=True)
class MLP(Relevance):
    """A multi-layer perceptron with ELU and layer normalisation, and how it is trained."""

    kind: ClassVar[str] = "mlp"

    hidden: tuple[int, ...] = (512, 256, 128)
    """Sizes of the hidden layers."""
    recipe: str = "fast"
    """`fast`: click rates of whole lists, Adam with small batches, a falling learning rate and weight decay.
    `collapsed` and `collapsed-adagrad`: click rates of whole lists with plain Adam and with AdaGrad. `paper`: sampled
    sessions with AdaGrad."""
    steps: int | None = None
    """Steps of the first stage; by default the recipe's."""
    learning_rate: float | None = None
    """Learning rate; by default the recipe's."""
    batch_size: int | None = None
    """Lists per step; by default the recipe's."""
    weight_decay_epochs: float | None = None
    """Weight decay as a time constant in passes over the documents, the fewer the stronger; by default the recipe's."""
    precision: str = "float32"
    """Precision of the matrix products in training; `bfloat16` is 1.5 to 2 times as fast where the processor has it."""

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        checks.sizes("hidden", self.hidden)
        checks.one_of("recipe", self.recipe, RECIPES)
        check_precision(self.precision)
        for name in ("steps", "batch_size"):
            value = getattr(self, name)
            if value is not None:
                checks.integer(name, value, at_least=1)
        for name in ("learning_rate", "weight_decay_epochs"):
            if (number := getattr(self, name)) is not None:
                checks.positive(name, number)
        if self.weight_decay_epochs is not None and RECIPES[self.recipe].optimizer != "adam":
            raise OptionError(f"recipe {self.recipe!r} trains by AdaGrad, without weight_decay_epochs; leave it out")

    def build(self, features: InputLayout, outputs: int, *, generator: torch.Generator) -> Network:
        """A network with Xavier's initial weights."""
        return Network(Layers(features, self.hidden, outputs, normalise=True, generator=generator))

    def training(self) -> Training:
        """The recipe with the options that were given in its place."""
        names = ("steps", "learning_rate", "batch_size", "weight_decay_epochs")
        given = {name: getattr(self, name) for name in names}
        changed = {name: value for name, value in given.items() if value is not None}
        return replace(RECIPES[self.recipe], precision=self.precision, **changed)

    def search_space(self) -> SearchSpace:
        """Sizes of the hidden layers, steps, learning rate, and weight decay where there is any."""
        space: dict[str, Between | OneOf] = {
            "hidden": OneOf(((32, 16), (64, 32), (128, 64), (256, 128), (512, 256, 128))),
            "steps": Between(500, 6_000, whole=True),
            "learning_rate": Between(0.001, 0.03),
        }
        decays = math.isfinite(self.training().weight_decay_epochs)
        return space | {"weight_decay_epochs": Between(1, 100)} if decays else space

"""The multi-layer perceptron that all methods share."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional


class MLP(nn.Module):
    """Linear layers with ELU between them; with `normalise`, layer normalisation before each but the first.

    Inputs come normalised (`train.inputs`). The normalisation has no gain and shift of its own: the linear layer
    behind it can express both. Under autocast, all but the outputs is in the lower precision.
    """

    def __init__(
        self, inputs: int, hidden: Sequence[int], outputs: int, *, normalise: bool, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.normalise = normalise
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise([inputs, *hidden, outputs]))
        for layer in self.layers:
            assert isinstance(layer, nn.Linear)
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            nn.init.zeros_(layer.bias)

    def forward(self, inputs: Tensor) -> Tensor:
        """[documents, inputs] -> [documents, outputs]."""
        first, *rest = self.layers
        values: Tensor = first(inputs)
        for layer in rest:
            values = functional.elu(values, inplace=True)
            if self.normalise:
                values = functional.layer_norm(values, values.shape[-1:])
            values = layer(values)
        return values.to(inputs.dtype)

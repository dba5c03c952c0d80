"""The observation model: a vector for each value of the bias factors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from ultr import checks
from ultr.arrays import Floats
from ultr.methods.factors import Factor

COMBINATIONS = ("product", "sum")


class Observation(nn.Module):
    """Observation embeddings `o(t)` in R^d of any number of categorical bias factors.

    Each factor has a vector for each of its levels, and those of one document are combined element by element:
    by `product`, so that a device can stretch or flatten the curve of the positions, or by `sum`. They start at
    `start`, all ones in the paper: before training, nothing depends on the bias factors.
    """

    def __init__(
        self, factors: Sequence[Factor], dimension: int, *, combine: str = "product", start: float = 1.0
    ) -> None:
        super().__init__()
        self.combine = checks.one_of("combine", combine, COMBINATIONS)
        self.factors = tuple(factors)
        neutral = 1.0 if combine == "product" else 0.0
        starts = [start] + [neutral] * (len(factors) - 1)
        self.tables = nn.ParameterList(
            torch.full((len(factor.levels), dimension), value) for factor, value in zip(factors, starts, strict=True)
        )

    def forward(self, levels: Tensor) -> Tensor:
        """Levels of all factors of the log, int [documents, factors] -> embeddings [documents, dimension]."""
        # functional.embedding sums its gradient in a fixed order; indexing with [] does not.
        vectors = [
            functional.embedding(levels[:, factor.column], table)
            for factor, table in zip(self.factors, self.tables, strict=True)
        ]
        combined = vectors[0]
        for vector in vectors[1:]:
            combined = combined * vector if self.combine == "product" else combined + vector
        return combined

    def embeddings(self) -> dict[str, Floats]:
        """The embeddings of each factor by its name, [levels, dimension]."""
        tables = [table.detach().cpu().numpy() for table in self.tables]
        return {factor.name: table for factor, table in zip(self.factors, tables, strict=True)}

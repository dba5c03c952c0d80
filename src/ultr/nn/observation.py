"""The observation model: a vector for what a user could see of a document."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from ultr import checks

COMBINATIONS = ("product", "sum")


class Observation(nn.Module):
    """Observation embeddings `o(t)` in R^d of any number of categorical bias factors.

    Each factor has a vector for each of its levels, and those of one document are combined element by element:
    by `product`, so that a device can stretch or flatten the curve of the positions, or by `sum`. All ones at
    the start, as in the paper: before training, nothing depends on the bias factors.
    """

    def __init__(self, levels: Sequence[int], dimension: int, *, combine: str = "product") -> None:
        super().__init__()
        self.combine = checks.one_of("combine", combine, COMBINATIONS)
        neutral = 1.0 if combine == "product" else 0.0
        starts = [1.0] + [neutral] * (len(levels) - 1)
        self.tables = nn.ParameterList(
            torch.full((count, dimension), start) for count, start in zip(levels, starts, strict=True)
        )

    def forward(self, factors: Tensor) -> Tensor:
        """Levels of each factor, int [documents, factors] -> embeddings [documents, dimension]."""
        # functional.embedding sums its gradient in a fixed order; indexing with [] does not.
        vectors = [functional.embedding(factors[:, number], table) for number, table in enumerate(self.tables)]
        combined = vectors[0]
        for vector in vectors[1:]:
            combined = combined * vector if self.combine == "product" else combined + vector
        return combined

"""The observation model: a vector for each value of the bias factors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ultr import checks
from ultr.arrays import Floats
from ultr.data.bias_factor import midpoints
from ultr.methods.factors import Factor

COMBINATIONS = ("product", "sum")
KNOTS = 6
"""Values that the curve of a numeric factor goes through; it needs at least twice as many bins."""


class Observation(nn.Module):
    """Observation embeddings `o(t)` in R^d of any number of bias factors.

    Each factor has a vector for each of its levels, and those of one document are combined element by element:
    by `product`, so that a device can stretch or flatten the curve of the positions, or by `sum`. They start at
    `start`, all ones in the paper: before training, nothing depends on the bias factors.

    If `smooth`, the vectors of a numeric factor lie on a natural cubic spline through a few of its bins, which are
    what is learned: neighbouring bins share what they know. The bins of others are free.
    """

    def __init__(
        self,
        factors: Sequence[Factor],
        dimension: int,
        *,
        combine: str = "product",
        start: float = 1.0,
        smooth: bool = True,
    ) -> None:
        super().__init__()
        self.combine = checks.one_of("combine", combine, COMBINATIONS)
        self.factors = tuple(factors)
        neutral = 1.0 if combine == "product" else 0.0
        starts = [start] + [neutral] * (len(factors) - 1)
        self._curves: list[str | None] = []
        sizes = []
        for number, factor in enumerate(factors):
            basis = spline_basis(factor) if smooth else None
            self._curves.append(None if basis is None else f"basis_{number}")
            sizes.append(len(factor.levels) if basis is None else basis.shape[1])
            if basis is not None:
                # It follows from the edges, so it is not saved.
                self.register_buffer(f"basis_{number}", basis, persistent=False)
        self.tables = nn.ParameterList(
            torch.full((size, dimension), value) for size, value in zip(sizes, starts, strict=True)
        )

    def vectors(self) -> list[Tensor]:
        """The vectors of each factor, [levels, dimension]."""
        return [
            table if curve is None else self.get_buffer(curve) @ table
            for curve, table in zip(self._curves, self.tables, strict=True)
        ]

    def forward(self, levels: Tensor) -> Tensor:
        """Levels of all factors of the log, int [documents, factors] -> embeddings [documents, dimension]."""
        # functional.embedding sums its gradient in a fixed order; indexing with [] does not.
        vectors = [
            functional.embedding(levels[:, factor.column], table)
            for factor, table in zip(self.factors, self.vectors(), strict=True)
        ]
        combined = vectors[0]
        for vector in vectors[1:]:
            combined = combined * vector if self.combine == "product" else combined + vector
        return combined

    def embeddings(self) -> dict[str, Floats]:
        """The embeddings of each factor by its name, [levels, dimension]."""
        tables = [table.detach().cpu().numpy() for table in self.vectors()]
        return {factor.name: table for factor, table in zip(self.factors, tables, strict=True)}


def drop(bias: Tensor, noise: Tensor, dropout: float) -> Tensor:
    """Inverted dropout: 0 where the noise is below `dropout`, else bias / (1 - dropout), so that the mean is kept."""
    return bias * (noise >= dropout).to(bias.dtype) / (1 - dropout)


def spline_basis(factor: Factor) -> Tensor | None:
    """The matrix from values at the knots to all bins of a numeric factor, [levels, knots]; None if bins are few.

    Constant and linear functions are their own splines, so they are reproduced exactly.
    """
    from scipy.interpolate import CubicSpline

    if len(factor.edges) + 1 < 2 * KNOTS:
        return None
    middles = midpoints(factor.edges)
    knots = middles[np.linspace(0, len(middles) - 1, KNOTS).round().astype(np.int64)]
    return torch.from_numpy(CubicSpline(knots, np.eye(KNOTS), bc_type="natural")(middles)).float()

"""Bias factors: the causes of bias of each shown document, the position first of all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr.arrays import Integers
from ultr.errors import DataError


@dataclass(frozen=True, eq=False)
class BiasFactor:
    """A cause of bias and its level for each shown document: categorical, or numeric in bins."""

    name: str
    values: Integers
    """int32 [shown documents], an index into `levels`."""
    levels: tuple[str, ...]
    edges: tuple[float, ...] = ()
    """Bounds between the levels of a numeric factor, ascending; empty = categorical.

    Level 0 lies below the first edge, level i from edge i - 1 (included) up to edge i, the last one above all edges.
    """

    def __post_init__(self) -> None:
        if self.values.ndim != 1 or self.values.dtype.kind not in "iu":
            raise DataError(f"the values of bias factor {self.name!r} must be a flat array of integers")
        if len(self.values) and not 0 <= self.values.min() <= self.values.max() < len(self.levels):
            raise DataError(f"the values of bias factor {self.name!r} must index its {len(self.levels)} levels")
        if self.edges and (len(self.edges) + 1 != len(self.levels) or any(np.diff(self.edges) <= 0)):
            raise DataError(f"bias factor {self.name!r} needs ascending edges, one fewer than its levels")


def position_factor(positions: Integers, *, count: int | None = None) -> BiasFactor:
    """The bias factor `position` from positions as shown, which start at 1."""
    if len(positions) and positions.min() < 1:
        raise DataError(f"positions start at 1, got {positions.min()}")
    count = int(positions.max(initial=1)) if count is None else count
    return BiasFactor("position", (positions - 1).astype(np.int32), tuple(str(i + 1) for i in range(count)))


def categorical_factor(name: str, values: object) -> BiasFactor:
    """A bias factor whose levels are the texts of its values, sorted."""
    levels, numbers = np.unique(np.asarray(values, dtype=np.str_), return_inverse=True)
    return BiasFactor(name, numbers.astype(np.int32), tuple(levels.tolist()))

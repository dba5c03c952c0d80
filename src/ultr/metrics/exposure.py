"""The shift of exposure between two orders of the same documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles
from ultr.errors import DataError


@dataclass(frozen=True)
class ExposureShift:
    """By what factors the exposure of documents moves from one order to another."""

    growth: float
    """The largest factor by which the exposure of a document grows; 1 if none does."""
    fall: float
    """The largest factor by which the exposure of a document shrinks; 1 if none does."""
    median: float
    """The median over documents of the factor by which exposure moves, up or down."""

    def sentence(self, of: str, to: str) -> str:
        """The shift in words, exposure being 1 / rank.

        >>> ExposureShift(4.0, 2.0, 1.5).sentence("model", "raw").partition("; ")[0]
        'With model against raw, half of the results get at most 1.5 times as much or as little attention (1 / rank)'
        """
        return (
            f"With {of} against {to}, half of the results get at most {self.median:.1f} times as much or as little "
            f"attention (1 / rank); the one that rises most gets {self.growth:.1f} times as much, the one that falls "
            f"most 1/{self.fall:.1f}."
        )


def exposure_shift(before: Doubles, after: Doubles, weights: Doubles | None = None) -> ExposureShift:
    """The shift from one exposure of each document to another, [documents], all above 0.

        growth = max_d after_d / before_d,   fall = max_d before_d / after_d,   each at least 1
        median = the weighted median over d of max( after_d / before_d, before_d / after_d )

    >>> exposure_shift(np.array([1.0, 1 / 2, 1 / 3]), np.array([1 / 2, 1.0, 1 / 3]))
    ExposureShift(growth=2.0, fall=2.0, median=2.0)
    """
    weights = np.ones(len(before)) if weights is None else weights
    if not before.shape == after.shape == weights.shape:
        raise DataError(f"{len(before)} exposures before, but {len(after)} after and {len(weights)} weights")
    if not len(before):
        return ExposureShift(1.0, 1.0, 1.0)
    if not (before > 0).all() or not (after > 0).all():
        raise DataError("every document must have an exposure above 0 in both orders, or its factor is not known")
    ratios = after / before
    factors = np.maximum(ratios, 1 / ratios)
    order = np.argsort(factors)
    reached = np.cumsum(weights[order])
    middle = order[np.searchsorted(reached, reached[-1] / 2)]
    return ExposureShift(max(float(ratios.max()), 1.0), max(float(1 / ratios.min()), 1.0), float(factors[middle]))

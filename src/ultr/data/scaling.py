"""Feature scaling, fitted on training data and kept with the model."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ultr.arrays import Doubles, Floats
from ultr.data.missing_values import missing_counts
from ultr.errors import DataError

ROWS = 2**16
"""The typical value is that of at most about so many rows."""


@dataclass(frozen=True, eq=False)
class FeatureScaling:
    """Min-max scaling of every feature to [-1, 1] over the training documents; a constant feature becomes 0.

    >>> scaling = FeatureScaling.fit(np.array([[0, 7], [10, 7]], dtype=np.float32))
    >>> scaling.apply(np.array([[5, 7], [10, 7]], dtype=np.float32)).tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """

    minimum: Floats
    maximum: Floats
    typical: Floats
    """The median of each feature, which all but trees take for a missing value (NaN); of categories, the most
    frequent code."""
    missing: Doubles
    """The share of the training documents in which each feature is missing."""

    @classmethod
    def fit(cls, features: Floats, *, categorical: Collection[int] = ()) -> FeatureScaling:
        """The scaling of these documents, some columns of which are codes of categories."""
        if not len(features):
            raise DataError("cannot scale features without a document")
        minimum, maximum = (np.asarray(least.reduce(features, axis=0)) for least in (np.fmin, np.fmax))
        bad = np.flatnonzero(np.isinf(minimum) | np.isinf(maximum))
        if len(bad):
            raise DataError(f"feature column {bad[0] + 1} holds infinite values; remove or fill them")
        some = features[:: -(-len(features) // ROWS)]
        # With a NaN among them the median is NaN, and the slower one is taken; a column of nothing else is 0.
        with np.errstate(over="ignore"):
            typical = np.median(some, axis=0)
        # The sum of the two values in the middle may be more than a float32 holds.
        if (large := np.isinf(typical)).any():
            typical[large] = np.median(some[:, large].astype(np.float64), axis=0)
        if np.isnan(typical).any():
            minimum, maximum = (np.where(np.isnan(each), 0, each) for each in (minimum, maximum))
            typical = np.nanmedian(np.where(np.isnan(some).all(axis=0), minimum, some), axis=0)
        for column in categorical:
            codes, counts = np.unique(some[~np.isnan(some[:, column]), column], return_counts=True)
            typical[column] = codes[counts.argmax()] if len(codes) else 0
        lowest, highest, usual = (each.astype(np.float32) for each in (minimum, maximum, typical))
        return cls(lowest, highest, usual, missing_counts(features) / len(features))

    @cached_property
    def centre(self) -> Floats:
        """`apply` is `(features - centre) * factor`; subtracting first keeps the digits of large, close values."""
        return ((self.minimum.astype(np.float64) + self.maximum) / 2).astype(np.float32)

    @cached_property
    def factor(self) -> Floats:
        """`apply` is `(features - centre) * factor`."""
        spread = self.maximum.astype(np.float64) - self.minimum
        return np.divide(2.0, spread, out=np.zeros_like(spread), where=spread > 1e-30).astype(np.float32)

    def fill(self, features: Floats) -> Floats:
        """The features with the typical value for those that are missing (NaN)."""
        return np.where(np.isnan(features), self.typical, features)

    def apply(self, features: Floats) -> Floats:
        """The scaled features, a missing one as typical; values outside the training range land outside [-1, 1]."""
        scaled = self.fill(features) - self.centre
        scaled *= self.factor
        return scaled

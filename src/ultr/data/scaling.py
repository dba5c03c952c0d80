"""Feature scaling, fitted on training data and kept with the model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ultr.arrays import Floats
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
    """The median of each feature; an exported ranker takes it for a missing value."""

    @classmethod
    def fit(cls, features: Floats) -> FeatureScaling:
        """The scaling of these documents."""
        if not len(features):
            raise DataError("cannot scale features without a document")
        minimum, maximum = np.asarray(features.min(axis=0)), np.asarray(features.max(axis=0))
        bad = np.flatnonzero(~(np.isfinite(minimum) & np.isfinite(maximum)))
        if len(bad):
            raise DataError(f"feature column {bad[0] + 1} holds NaN or infinite values; remove or fill them")
        return cls(minimum, maximum, np.median(features[:: -(-len(features) // ROWS)], axis=0).astype(np.float32))

    @cached_property
    def centre(self) -> Floats:
        """`apply` is `(features - centre) * factor`; subtracting first keeps the digits of large, close values."""
        return ((self.minimum.astype(np.float64) + self.maximum) / 2).astype(np.float32)

    @cached_property
    def factor(self) -> Floats:
        """`apply` is `(features - centre) * factor`."""
        spread = self.maximum.astype(np.float64) - self.minimum
        return np.divide(2.0, spread, out=np.zeros_like(spread), where=spread > 1e-30).astype(np.float32)

    def apply(self, features: Floats) -> Floats:
        """The scaled features; values outside the training range land outside [-1, 1]."""
        scaled = features - self.centre
        scaled *= self.factor
        return scaled

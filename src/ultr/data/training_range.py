"""The values that a ranker saw in training, and candidates that have others."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from ultr.arrays import Floats, Mask
from ultr.data.categories import Categories, category_columns
from ultr.data.column_names import listed

Flags = npt.NDArray[np.int8]
"""[candidates, features], a `Flag` of each value."""
_NAMED = 5
"""Most features that are named in a line."""


class Flag(IntEnum):
    """Difference of a value from those of the training documents."""

    INSIDE = 0
    BELOW = 1
    ABOVE = 2
    MISSING = 3
    """Missing, and the feature never was in training."""
    NEVER_SEEN = 4
    """A value of a categorical feature that training did not have."""


@dataclass(frozen=True, eq=False)
class TrainingRange:
    """Smallest and largest value of each feature in training, whether it was missing at times, its categories."""

    names: tuple[str, ...]
    minimum: Floats
    maximum: Floats
    was_missing: Mask
    categories: Categories

    def flags(self, features: Floats, never_seen: Mask | None = None) -> Flags:
        """The flag of each value; `never_seen` marks values whose codes do not show that they were never seen.

        >>> seen = TrainingRange(("age",), np.zeros(1), np.ones(1), np.array([False]), {})
        >>> seen.flags(np.array([[-1.0], [0.5], [2.0], [np.nan]])).tolist()
        [[1], [0], [2], [3]]
        """
        flags: Flags = np.zeros(features.shape, dtype=np.int8)
        flags[features < self.minimum] = Flag.BELOW
        flags[features > self.maximum] = Flag.ABOVE
        for column, values in category_columns(self.names, self.categories).items():
            codes = features[:, column]
            flags[:, column] = np.where((codes < 0) | (codes >= len(values)), Flag.NEVER_SEEN, Flag.INSIDE)
        flags[np.isnan(features) & ~self.was_missing] = Flag.MISSING
        if never_seen is not None:
            flags[never_seen] = Flag.NEVER_SEEN
        return flags

    def remarks(self, flags: Flags, features: Floats) -> list[str]:
        """The unusual values of one candidate, from its flags and features [features].

        >>> seen = TrainingRange(("age", "price"), np.zeros(2), np.ones(2), np.array([False, False]), {})
        >>> candidate = np.array([np.nan, 7.5])
        >>> seen.remarks(seen.flags(candidate[None])[0], candidate)
        ['age is missing', 'price 7.5 > 1']
        """
        return [self._remark(int(column), Flag(flags[column]), features[column]) for column in np.flatnonzero(flags)]

    def _remark(self, column: int, flag: Flag, value: float) -> str:
        name = self.names[column]
        match flag:
            case Flag.BELOW:
                return f"{name} {value:.4g} < {self.minimum[column]:.4g}"
            case Flag.ABOVE:
                return f"{name} {value:.4g} > {self.maximum[column]:.4g}"
            case Flag.MISSING:
                return f"{name} is missing"
            case _:
                return f"{name} was never seen"

    def in_words(self, flags: Flags) -> str:
        """One sentence on candidates with values that training did not have; empty if there are none.

        >>> seen = TrainingRange(("age", "price"), np.zeros(2), np.ones(2), np.array([False, False]), {})
        >>> seen.in_words(seen.flags(np.array([[0.5, 7.5], [0.5, 0.5]])))
        '1 of 2 candidates have values that training did not have: price (1)'
        """
        counts = np.count_nonzero(flags, axis=0)
        columns = [column for column in np.argsort(-counts, kind="stable") if counts[column]]
        if not columns:
            return ""
        named = listed([f"{self.names[column]} ({counts[column]:,})" for column in columns], most=_NAMED)
        candidates = int(np.count_nonzero(flags.any(axis=1)))
        return f"{candidates:,} of {len(flags):,} candidates have values that training did not have: {named}"

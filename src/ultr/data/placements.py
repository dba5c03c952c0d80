"""Placements by exploration: the probability of where each document was shown, and where it stood before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Integers, Mask, is_whole
from ultr.errors import DataError


@dataclass(frozen=True, eq=False)
class Placements:
    """The logged propensity of each placement, and the position that the document had before exploration."""

    propensities: Doubles
    """float64 [shown documents], the probability that the document was shown where it was; NaN = not logged."""
    bases: Integers
    """int32 [shown documents], the position before exploration, from 1; 0 = not logged."""

    def __post_init__(self) -> None:
        if self.propensities.ndim != 1 or self.propensities.dtype != np.float64:
            raise DataError("placement propensities of a click log must be a flat array of float64")
        if self.bases.ndim != 1 or not is_whole(self.bases) or len(self.bases) != len(self.propensities):
            raise DataError("base positions of a click log must be integers, one for each placement propensity")
        wrong = (self.propensities <= 0) | (self.propensities > 1)
        if wrong.any():
            raise DataError(
                f"a placement propensity must be above 0 and at most 1, got {self.propensities[wrong][0]:g}; "
                "it is the probability that the document was shown at its position"
            )
        if len(self.bases) and self.bases.min() < 0:
            raise DataError("base positions of a click log must be from 1, or 0 where they were not logged")

    @classmethod
    def of(cls, propensities: object, bases: object | None = None) -> Placements:
        """Placements from anything numpy understands.

        >>> Placements.of([0.95, 0.05], [1, 3]).explored.tolist()
        [True, True]
        """
        try:
            chances = np.asarray(propensities, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError("placement propensities of a click log must be numbers") from error
        # One NaN for all that are not known, so that equal rows have equal bits.
        chances = np.where(np.isnan(chances), np.nan, chances)
        given = np.zeros(chances.shape, dtype=np.int32) if bases is None else np.asarray(bases)
        return cls(chances, given.astype(np.int32) if is_whole(given) else given)

    @classmethod
    def unknown(cls, count: int) -> Placements:
        """The placements of so many documents of a log that does not tell them."""
        return cls(np.full(count, np.nan), np.zeros(count, dtype=np.int32))

    @classmethod
    def joined(cls, parts: Iterable[tuple[Placements | None, int]]) -> Placements | None:
        """Those of several logs, each with the number of its shown documents; None if no log has any."""
        given = list(parts)
        if all(part is None for part, _ in given):
            return None
        known = [cls.unknown(count) if part is None else part for part, count in given]
        return cls(
            np.concatenate([part.propensities for part in known]), np.concatenate([part.bases for part in known])
        )

    @property
    def explored(self) -> Mask:
        """[shown documents], true for those that exploration might have shown elsewhere."""
        return np.asarray(self.propensities < 1)

    @property
    def keys(self) -> tuple[Integers, Integers]:
        """Integers that are the same where placements are."""
        return self.propensities.view(np.int64), self.bases

"""Positions at which a log shows documents: a place that is always an advertisement's is not one of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Integers, Mask
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.gathering import computed
from ultr.data.log_checks import trusted
from ultr.errors import DataError


@dataclass(frozen=True, eq=False)
class UsedPositions:
    """The positions that have documents; only these can be compared, and the others lie between or beside them."""

    shown: Mask
    """[positions], true if a document was shown there."""

    @classmethod
    def of_log(cls, log: ClickLog) -> UsedPositions:
        """Those of a log."""
        shown = np.zeros(len(log.position.levels), dtype=np.bool_)
        for part in ragged.slices(len(log.documents)):
            shown[log.position.values[part]] = True
        return cls(shown)

    @property
    def count(self) -> int:
        """The number of positions that are used."""
        return int(self.shown.sum())

    @property
    def all(self) -> bool:
        """True if every position is used."""
        return bool(self.shown.all())

    def numbers(self, positions: Integers) -> Integers:
        """Positions from 0, numbered among those that are used."""
        return positions if self.all else computed(lambda some: (np.cumsum(self.shown) - 1)[some], positions)

    def within(self, log: ClickLog) -> ClickLog:
        """A log with its positions numbered among those that are used."""
        if self.all:
            return log
        levels = tuple(level for level, shown in zip(log.position.levels, self.shown, strict=True) if shown)
        position = trusted(log.position, values=self.numbers(log.position.values), levels=levels)
        return trusted(log, factors=(position, *log.factors[1:]))

    def filled(self, curve: Doubles) -> Doubles:
        """[..., positions], a curve over the used positions, [..., used], with the others between their neighbours.

        What is between two is so in logarithms, as position bias is a matter of ratios; beyond the ends, the nearest.

        >>> UsedPositions(np.array([True, False, True, True, False])).filled(np.array([1.0, 0.25, 0.2])).tolist()
        [1.0, 0.5, 0.25, 0.2, 0.2]
        """
        if self.all:
            return curve
        places, used = np.arange(len(self.shown)), np.flatnonzero(self.shown)
        with np.errstate(divide="ignore"):
            rows = np.log(curve).reshape(-1, len(used))
        filled: Doubles = np.exp([np.interp(places, used, row) for row in rows])
        filled[:, used] = curve.reshape(rows.shape)
        return filled.reshape(*curve.shape[:-1], len(places))

    def spread(self, curve: Doubles) -> Doubles:
        """[positions], a curve over the used positions with NaN at the others, of which nothing is known."""
        spread = np.full(len(self.shown), np.nan)
        spread[self.shown] = curve
        return spread

    @contextmanager
    def named(self) -> Iterator[None]:
        """Say of errors about positions that they are numbered among those that are used."""
        try:
            yield
        except DataError as error:
            if self.all:
                raise
            raise DataError(self.sentence(error)) from error

    def sentence(self, error: DataError) -> str:
        """An error in words, with one on positions that are not used."""
        if self.all:
            return str(error)
        empty = ", ".join(str(place + 1) for place in np.flatnonzero(~self.shown))
        return f"{error} (positions are counted without {empty}, where the log shows no document)"

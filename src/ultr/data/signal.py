"""Signals of a click log beside the click: what users did next."""

from __future__ import annotations

from dataclasses import dataclass

from ultr.arrays import Integers, is_whole
from ultr.errors import DataError

CLICK = "click"
"""The signal that every log has, as `ClickLog.clicks`."""


@dataclass(frozen=True, eq=False)
class Signal:
    """A signal such as `cart` or `purchase`, counted for each shown document."""

    name: str
    totals: Integers
    """int64 [shown documents], the sum over the impressions of the list: 1 for each that had it, or a count."""

    def __post_init__(self) -> None:
        if self.totals.ndim != 1 or not is_whole(self.totals):
            raise DataError(f"the totals of signal {self.name!r} must be a flat array of integers")
        if len(self.totals) and self.totals.min() < 0:
            raise DataError(f"signal {self.name!r} has a total below 0")

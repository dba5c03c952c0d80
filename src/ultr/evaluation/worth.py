"""The value of what users did with documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Integers
from ultr.data.click_log import ClickLog
from ultr.data.signal import CLICK
from ultr.errors import DataError
from ultr.methods.value_option import squared_weights


@dataclass(frozen=True, eq=False)
class Worth:
    """The value of what users did with candidates, by weights of the signals of a log."""

    totals: Doubles
    """[candidates], the sum of weights."""
    squares: Doubles
    """[candidates], the sum of their squares, which says how many actions of equal weight would be as sure."""
    per_click: float = 0.0
    """The value per click on all candidates, which is taken for those without a click."""

    @classmethod
    def of_rows(cls, log: ClickLog, value: Mapping[str, float]) -> Worth:
        """The same for each shown document of a log."""
        totals = sum(weight * log.signal(name).astype(np.float64) for name, weight in value.items())
        return cls(np.asarray(totals), squared_weights(log, value))

    def some(self, candidates: Integers | slice) -> Worth:
        """The value of some of the candidates."""
        return Worth(self.totals[candidates], self.squares[candidates], self.per_click)


def check_signals(log: ClickLog, value: Mapping[str, float]) -> None:
    """Raise a `DataError` for a log without the signals of a value."""
    known = [CLICK, *(signal.name for signal in log.signals)]
    for name in value:
        if name not in known:
            raise DataError(f"the log has no signal {name!r} to compare by; its signals are {', '.join(known)}")

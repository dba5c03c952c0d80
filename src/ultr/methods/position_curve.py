"""One propensity for each position by what a log and a ranker offer: swaps, the ranker's own model, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles
from ultr.bias import SwapTable
from ultr.bias.swaps import all_pairs
from ultr.bias.used_positions import UsedPositions
from ultr.data.click_log import ClickLog
from ultr.errors import DataError
from ultr.methods.factors import POSITION
from ultr.methods.ranker import Ranker

FEWEST_CLICKS = 30
"""Fewer clicks on swapped documents at a position do not tell its propensity."""
SMALLEST = 0.05
"""Propensities below this share of the largest are raised to it, so that no click outweighs all others."""
_MOST = 5_000
"""Lists that a ranker's own curve is averaged over."""


@dataclass(frozen=True, eq=False)
class PositionCurve:
    """Propensities by position from the first, and where they come from."""

    values: Doubles
    """[positions], relative to the first."""
    source: str
    """`given`, `swaps`, `model` or `unknown`."""

    @classmethod
    def of(cls, log: ClickLog, ranker: Ranker, given: Sequence[float] | None = None) -> PositionCurve:
        """The given curve, or that of the log's swaps, or else of the ranker's click model, or else a flat one."""
        positions = len(log.position.levels)
        if given is not None:
            if len(given) < positions:
                raise DataError(
                    f"the log shows {positions} positions, but {len(given)} propensities are given; "
                    "give one for each position"
                )
            values = np.array(given[:positions], dtype=np.float64)
            if (wrong := ~((values > 0) & np.isfinite(values))).any():
                raise DataError(f"propensities must be numbers above 0, got {values[wrong][0]:g}")
            return cls(values / values[0], "given")
        if (curve := _of_swaps(log)) is not None:
            return cls(curve, "swaps")
        if POSITION in ranker.learned_factors:
            return cls(_of_model(log, ranker, positions), "model")
        return cls(np.ones(positions), "unknown")

    @property
    def clipped(self) -> Doubles:
        """The propensities to divide clicks by, none of them too small."""
        raised: Doubles = np.maximum(self.values, SMALLEST * self.values.max())
        return raised

    def sentence(self, method: str) -> str:
        """The source of the propensities in words."""
        return {
            "given": "Propensities are those that were given.",
            "swaps": "Propensities come from documents that the log shows at several positions.",
            "model": f"The log has too few swaps to tell propensities, so they are those that {method} has learned: as "
            "right as its click model.",
            "unknown": f"Propensities are not known: the log has too few swaps, and {method} learns none. Clicks count "
            "alike at all positions, which favours the logged order; give propensities, or log some swaps.",
        }[self.source]


def _of_swaps(log: ClickLog) -> Doubles | None:
    """The curve of all pairs of positions, if each has clicks on documents shown elsewhere, too."""
    used = UsedPositions.of_log(log)
    table = SwapTable.of_log(used.within(log))
    if (table.clicks.sum(axis=1) < FEWEST_CLICKS).any():
        return None
    try:
        return used.filled(all_pairs(table))
    except DataError:
        return None


def _of_model(log: ClickLog, ranker: Ranker, positions: int) -> Doubles:
    """The mean over documents of the clicks that a ranker predicts at each position over those at the first."""
    step = -(-log.lists // _MOST)
    part = log.part(np.arange(0, log.lists, step), log.splits) if step > 1 else log
    ratios = ranker.click_ratios(part, POSITION)
    curve: Doubles = np.average(ratios, axis=0, weights=np.repeat(part.impressions, part.lengths))
    # Positions that the ranker has not seen count as the last that it has.
    return np.pad(curve, (0, max(positions - len(curve), 0)), mode="edge")[:positions]

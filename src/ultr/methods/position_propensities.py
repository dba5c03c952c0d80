"""Propensities by position that are fixed before training: given, or estimated from the log."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ultr import checks
from ultr.arrays import Doubles
from ultr.bias import SWAP_ESTIMATORS, ExploredCells, SwapTable, click_rate_curve
from ultr.bias.swaps import with_exploration
from ultr.bias.used_positions import UsedPositions
from ultr.data.totals import totals
from ultr.errors import DataError, OptionError
from ultr.train.lists import TrainingLists

CLICK_RATE = "click-rate"
ESTIMATORS = (*SWAP_ESTIMATORS, CLICK_RATE)


def check_given(given: tuple[float, ...] | None) -> None:
    """Raise an `OptionError` for a propensity that is not above 0."""
    for value in given or ():
        checks.positive("each of the propensities", value)


def check_enough(given: tuple[float, ...] | None, positions: int) -> None:
    """Raise an `OptionError` if fewer propensities are given than the log has positions."""
    if given is not None and len(given) < positions:
        raise OptionError(
            f"the log shows {positions} positions, but {len(given)} propensities are given; give one for each position"
        )


def given_or_estimated(
    given: tuple[float, ...] | None, estimator: str, lists: TrainingLists, positions: int
) -> Doubles:
    """The given propensities in their own unit, or those of one of the `ESTIMATORS`, [positions]."""
    if given is not None:
        return np.array(given[:positions], dtype=np.float64)
    used = UsedPositions.of(lists.factors[0], count=positions)
    dense = lists if used.all else replace(lists, factors=(used.numbers(lists.factors[0]), *lists.factors[1:]))
    with used.named():
        return used.filled(_estimated(estimator, dense, used.count))


def _estimated(estimator: str, lists: TrainingLists, positions: int) -> Doubles:
    """The propensities of lists that have documents at all of so many positions."""
    if estimator == CLICK_RATE:
        return click_rate_curve(
            totals(lists.factors[0], lists.offsets, lists.impressions, lists.clicks, count=positions)
        )
    if positions == 1:
        raise DataError(
            "every list of the log shows one document, at position 1, so there are no two positions to compare and no "
            "two documents to rank; give a log with longer lists"
        )
    explored = ExploredCells.of(
        lists.placements, lists.factors[0], lists.offsets, lists.impressions, lists.clicks, count=positions
    )
    swaps = SwapTable.of(lists.cells(positions, fewest_positions=2))
    return SWAP_ESTIMATORS[estimator](with_exploration(swaps, explored))

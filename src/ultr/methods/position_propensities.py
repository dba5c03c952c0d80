"""Propensities by position that are fixed before training: given, or estimated from the log."""

from __future__ import annotations

import numpy as np

from ultr import checks
from ultr.arrays import Doubles
from ultr.bias import SWAP_ESTIMATORS, estimate_propensities
from ultr.bias.resampled import CLICK_RATE
from ultr.bias.used_positions import UsedPositions
from ultr.data.click_log import ClickLog
from ultr.errors import DataError, OptionError

ESTIMATORS = (*SWAP_ESTIMATORS, CLICK_RATE)


def check_given(given: tuple[float, ...] | None) -> None:
    """Raise an `OptionError` unless these are numbers above 0."""
    # Arrays, which estimates are, have no truth value and cannot be saved among the options.
    if not isinstance(given, tuple | list | None):
        raise OptionError(
            f"propensities must be a tuple of numbers, one for each position, got {checks.shown(given)}; "
            "make a tuple of an array"
        )
    for value in given or ():
        checks.positive("each of the propensities", value)


def check_enough(given: tuple[float, ...] | None, positions: int) -> None:
    """Raise an `OptionError` if fewer propensities are given than the log has positions."""
    if given is not None and len(given) < positions:
        raise OptionError(
            f"the log shows {positions} positions, but {len(given)} propensities are given; give one for each position"
        )


def given_or_estimated(given: tuple[float, ...] | None, estimator: str, log: ClickLog) -> Doubles:
    """The given propensities in their own unit, or those of one of the `ESTIMATORS`, [positions]."""
    if given is not None:
        return np.array(given[: len(log.position.levels)], dtype=np.float64)
    used = UsedPositions.of_log(log)
    if used.count == 1 and estimator != CLICK_RATE:
        with used.named():
            raise DataError(
                "every list of the log shows one document, at position 1, so there are no two positions to compare and "
                "no two documents to rank; give a log with longer lists"
            )
    return estimate_propensities(log, estimator)

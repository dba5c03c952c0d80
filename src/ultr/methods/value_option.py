"""The option `value`: weights of the signals of a log, and whether the log has enough of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import numpy as np

from ultr import checks
from ultr.arrays import Doubles
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.signal import CLICK
from ultr.errors import DataError, OptionError, UltrWarning

FEWEST = 1_000
"""Fewer of a signal get a warning: so many tell a mean value up to 3 %."""
MOST_UNCLICKED = 0.01
"""A larger share of a signal on documents that were not clicked gets a warning."""
NO_VALUE = "it has no click model that could free a value of bias"
"""The reason why some methods refuse the option."""


def in_words(weights: Mapping[str, float]) -> str:
    """The value and what is assumed of it, as a line for the screen.

    >>> in_words({"click": 1, "purchase": 20})
    'value: 1 click + 20 purchase; bias is learned from clicks, what follows them is assumed not to depend on the place'
    """
    assumed = "bias is learned from clicks, what follows them is assumed not to depend on the place"
    return f"value: {as_sum(weights)}; {assumed}"


def as_sum(weights: Mapping[str, float]) -> str:
    """The value as a sum, such as `1 click + 20 purchase`."""
    return " + ".join(f"{weight:g} {name}" for name, weight in weights.items() if weight)


def check_weights(weights: object) -> None:
    """Raise an `OptionError` unless these are weights of signals by name, none below 0 and not all 0."""
    if not isinstance(weights, Mapping) or not all(isinstance(name, str) for name in weights):
        raise OptionError(f'value must be weights of signals by name such as {{"purchase": 1}}, got {weights!r}')
    for name, weight in weights.items():
        checks.not_negative(f"the weight of {name!r} in value", weight)
    if not any(weights.values()):
        raise OptionError(f"value must have a weight above 0, got {dict(weights)!r}")


def check_signals(weights: Mapping[str, float], log: ClickLog, validation: ClickLog | None) -> None:
    """Raise a `DataError` for a log without these signals; warn of few of them, and of some without a click."""
    used = [name for name, weight in weights.items() if weight]
    for what, each in (("training", log), ("validation", validation)):
        if each is None:
            continue
        known = [CLICK, *(signal.name for signal in each.signals)]
        for name in weights:
            if name not in known:
                raise DataError(f"the {what} log has no signal {name!r}; its signals are {', '.join(known)}")
        if not any(each.signal(name).any() for name in used):
            raise DataError(f"the {what} log has no {' and no '.join(used)}, so there is no value to learn from")
    for name in used:
        count, unclicked = int(log.signal(name).sum()), _without_click(log, name)
        # Of an amount such as a price, what it is the sum of.
        if (often := int(np.minimum(log.signal(name), np.maximum(log.clicks, 1)).sum())) < FEWEST:
            message = f"signal {name!r} occurs {often:,} times in the training log, too few to tell much of its value"
            warnings.warn(message, UltrWarning, stacklevel=5)
        if unclicked > MOST_UNCLICKED * count:
            message = (
                f"{unclicked:,} of {count:,} {name!r} are on documents that were not clicked; "
                "they are taken for what follows a click, with its bias"
            )
            warnings.warn(message, UltrWarning, stacklevel=5)


def squared_weights(log: ClickLog, weights: Mapping[str, float]) -> Doubles:
    """[shown documents], the sum of the squared weights of what users did, as far as the log tells.

    A signal with more than the clicks, T > c, is taken for an amount such as a price that each click brought alike:
    c (T / c)^2 in the place of T. A log has no more of it, since only sums were kept.
    """
    squares = np.zeros(len(log.documents))
    for name, weight in weights.items():
        totals = log.signal(name).astype(np.float64)
        squares += weight**2 * totals * np.maximum(1.0, totals / np.maximum(log.clicks, 1))
    return squares


def _without_click(log: ClickLog, name: str) -> int:
    """How many of a signal the log has where no impression of the list clicked the document."""
    totals = log.signal(name)
    return sum(int(totals[rows][log.clicks[rows] == 0].sum()) for rows in ragged.slices(len(totals)))

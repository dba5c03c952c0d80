"""The fit of predicted clicks to a held-out log.

The counts are those of a collapsed log: `clicks` out of `impressions` for each shown document, where the
impressions of a list are repeated for each of its documents. A collapsed row gives the same value as its
separate impressions. Predicted probabilities are clipped to [1e-6, 1 - 1e-6], because a single click that was
predicted with probability 0 would otherwise make the likelihood of a whole log minus infinity.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ultr.arrays import Doubles, Integers
from ultr.errors import DataError

Probabilities: TypeAlias = npt.NDArray[np.floating[Any]]

CLIP = 1e-6
"""The smallest probability of a click or of no click that is believed."""
_ROUNDING = 1e-4
"""A softmax in float32 may end up this far above 1."""


def log_likelihoods(probabilities: Probabilities, clicks: Integers, impressions: Integers) -> Doubles:
    """The Bernoulli log-likelihood of each shown document, summed over its impressions; 0 is perfect.

    c log p + (n - c) log(1 - p),   c clicks out of n impressions

    >>> log_likelihoods(np.array([0.5, 0.5]), np.array([3, 0]), np.array([4, 1])).round(4).tolist()
    [-2.7726, -0.6931]
    """
    if not probabilities.shape == clicks.shape == impressions.shape:
        raise DataError(
            f"probabilities, clicks and impressions must have one shape, got {probabilities.shape}, "
            f"{clicks.shape} and {impressions.shape}"
        )
    outside = ~((probabilities >= 0) & (probabilities <= 1))
    if outside.any():
        raise DataError(f"probabilities must lie in [0, 1], got {probabilities[outside][0]}")
    if (clicks < 0).any() or (clicks > impressions).any():
        raise DataError("a document cannot have fewer than no clicks or more clicks than impressions")
    if not impressions.any():
        raise DataError("the likelihood of clicks needs at least one impression")
    believed = np.clip(probabilities.astype(np.float64), CLIP, 1 - CLIP)
    return clicks * np.log(believed) + (impressions - clicks) * np.log1p(-believed)


def list_log_likelihoods(shares: Probabilities, clicks: Integers) -> Doubles:
    """The log-probability of all clicks on each shown document among the documents of its list.

    Shares of 0 are raised to the smallest float, because the difference of two models that are both surprised by a
    click would otherwise not be a number.

    >>> list_log_likelihoods(np.array([0.8, 0.2]), np.array([2, 1])).round(4).tolist()
    [-0.4463, -1.6094]
    """
    if shares.shape != clicks.shape:
        raise DataError(f"shares of shape {shares.shape} do not fit clicks of shape {clicks.shape}")
    # NaN is not within the bounds either, so this refuses it too.
    outside = ~((shares >= 0) & (shares <= 1 + _ROUNDING))
    if outside.any():
        raise DataError(f"the shares of a list's clicks must lie in [0, 1], got {shares[outside][0]}")
    if (clicks < 0).any():
        raise DataError("a document cannot have fewer than no clicks")
    return clicks.astype(np.float64) * np.log(np.maximum(shares.astype(np.float64), np.finfo(np.float64).tiny))

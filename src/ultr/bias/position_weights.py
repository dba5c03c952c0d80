"""The weight of a click by its position, for losses that the first positions would decide alone."""

from __future__ import annotations

import numpy as np

from ultr.arrays import Doubles


def click_weights(shown: Doubles, clicked: Doubles, power: float) -> Doubles:
    """The weight of a click at each position, (its click rate)^-power times what keeps the weight of all clicks.

    >>> click_weights(np.array([100.0, 100.0]), np.array([40.0, 10.0]), 1.0)
    array([0.625, 2.5  ])
    """
    rates = np.where(clicked > 0, clicked / np.maximum(shown, 1), 1.0)
    weights: Doubles = rates**-power
    kept: Doubles = weights * (clicked.sum() / (weights @ clicked))
    return kept

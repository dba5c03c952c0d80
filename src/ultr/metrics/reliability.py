"""Reliability: how much of a quantity is the same when it is measured again."""

from __future__ import annotations

import numpy as np

from ultr.arrays import Doubles

_SMALLEST = 1e-12


def correlations(products: Doubles) -> Doubles:
    """Correlations of centred quantities by their mean products, [quantities, quantities]; 0 with a constant one.

    >>> correlations(np.array([[4.0, 1.0], [1.0, 1.0]])).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    scale = inverse_spreads(products)
    return products * np.outer(scale, scale)


def inverse_spreads(products: Doubles) -> Doubles:
    """One over the standard deviation of each quantity; 0 for a constant one."""
    spread = np.sqrt(np.diag(products))
    return np.where(spread > _SMALLEST, 1 / np.maximum(spread, _SMALLEST), 0.0)


def partial_correlation(together: float, first: float, second: float) -> float:
    """The correlation of two quantities in what a third does not say; 0 where it says all of one of them.

    `together` is their correlation, `first` and `second` are theirs with the third.

    >>> round(partial_correlation(0.5, 0.0, 0.8), 3), round(partial_correlation(0.5, 0.6, 0.8), 3)
    (0.833, 0.042)
    """
    unexplained = np.sqrt(max(1 - first**2, 0.0) * max(1 - second**2, 0.0))
    return float((together - first * second) / unexplained) if unexplained > _SMALLEST else 0.0


def reliability_of_mean(correlation: float) -> float:
    """The reliability of the mean of two measurements that correlate so, 2 rho / (1 + rho); 0 if they do not.

    A measurement is truth plus noise that is independent in the two. The reliability is the share of the variance of
    their mean that is truth, and the slope of the best linear prediction of the truth (Spearman, Brown 1910).

    >>> reliability_of_mean(1.0), reliability_of_mean(0.5), reliability_of_mean(-0.2)
    (1.0, 0.6666666666666666, 0.0)
    """
    positive = max(correlation, 0.0)
    return 2 * positive / (1 + positive)

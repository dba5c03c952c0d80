"""Student's distribution, which tells how far the mean of few numbers may be from the truth."""

from __future__ import annotations

import math
from functools import cache
from statistics import NormalDist

import numpy as np


@cache
def student_quantile(level: float, freedom: int) -> float:
    """The t that |T| stays below with probability `level`, T having Student's distribution; inf without any freedom.

    >>> round(student_quantile(0.95, 9), 3)
    2.262
    """
    if freedom < 1:
        return math.inf
    # With t = sinh(u), a grid over u reaches far into the tails: the density of |T| is that of t times cosh(u).
    u = np.linspace(0, 40, 40_001)
    density = np.cosh(u) * np.exp(-(freedom + 1) / 2 * np.log1p(np.sinh(u) ** 2 / freedom))
    below = np.cumsum(density[1:] + density[:-1])
    return float(np.interp(level * below[-1], below, np.sinh(u[1:])))


def percentile_tail(level: float, count: int) -> float:
    """The share of bootstrap draws to cut off at either end, for an interval as wide as Student's.

    Draws from `count` numbers spread by a factor sqrt((count - 1) / count) too little and have a normal distribution in
    the place of Student's (Hesterberg 2015), so that less is cut off than (1 - level) / 2.

    >>> round(percentile_tail(0.95, 30), 4), round(percentile_tail(0.95, 100_000), 4)
    (0.0188, 0.025)
    """
    if count < 2:
        return 0.0
    return NormalDist().cdf(-math.sqrt(count / (count - 1)) * student_quantile(level, count - 1))

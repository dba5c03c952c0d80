"""Intervals for numbers that are looked at several times while their data grow."""

from __future__ import annotations

from statistics import NormalDist

from ultr import checks
from ultr.metrics.intervals import Interval


def for_looks(interval: Interval, looks: int, *, level: float = 0.95) -> Interval:
    """The interval so wide that all of so many looks hold the truth at once with the probability `level`.

    Whoever looks every day and stops at the first winner has a chance of error at each look, of (1 - level) / looks if
    all of them together may have 1 - level (Bonferroni): whatever is added between two looks, and however much. Either
    end moves away from the mean by the quotient of the two normal quantiles, because few resamples reach so far out.

    >>> for_looks(Interval(0.10, 0.05, 0.15), 10).text()
    '0.100 .028-.172'
    """
    checks.integer("looks", looks, at_least=1)
    quantile = NormalDist().inv_cdf
    wider = quantile((1 - level) / (2 * looks)) / quantile((1 - level) / 2)
    mean = interval.mean
    return Interval(mean, mean - wider * (mean - interval.low), mean + wider * (interval.high - mean))

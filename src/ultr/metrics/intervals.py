"""Confidence intervals of means over queries, and a test of whether two rankers differ by more than chance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Mask
from ultr.errors import DataError
from ultr.seeding import generator

_CHUNK = 2**22
"""The most random numbers that are held at once: 32 MB of indices, whatever the number of queries."""


@dataclass(frozen=True)
class Interval:
    """A mean over queries with its confidence interval.

    >>> Interval(0.71, 0.7, 0.72).text()
    '0.710 .700-.720'
    >>> Interval(8.13, 6.35, 10.2).text()
    '8.130 6.350-10.200'
    """

    mean: float
    low: float
    high: float

    def text(self, separator: str = " ") -> str:
        """The mean and, behind the separator, the interval."""
        low, high = (f"{bound:.3f}".removeprefix("0") for bound in (self.low, self.high))
        return f"{self.mean:.3f}{separator}{low}-{high}"


@dataclass(frozen=True)
class PairedTest:
    """The mean difference of two rankers over the same queries, its confidence interval and p-value."""

    difference: float
    low: float
    high: float
    p_value: float


def bootstrap_interval(values: Doubles, *, level: float = 0.95, samples: int = 5_000, seed: int = 0) -> Interval:
    """The mean over queries and its percentile bootstrap interval (Efron 1979).

    Each sample draws as many queries as there are, with replacement; the interval holds the middle `level` of
    the means of the samples. Queries with the value NaN are left out.

    >>> bootstrap_interval(np.array([0.5, np.nan, 0.5]))
    Interval(mean=0.5, low=0.5, high=0.5)
    """
    known = values[~np.isnan(values)]
    low, high = _bootstrap(known, level=level, samples=samples, seed=seed)
    return Interval(float(known.mean()), low, high)


def bootstrap_ratio(
    numerators: Doubles, denominators: Doubles, *, level: float = 0.95, samples: int = 2_000, seed: int = 0
) -> Interval:
    """The sum of the numerators over that of the denominators, and its percentile bootstrap interval over queries.

    A mean over impressions is such a ratio: each query brings a sum and its number of impressions. A sample without
    any denominator says nothing and is left out.

    >>> bootstrap_ratio(np.array([1.0, 3.0]), np.array([2.0, 6.0]))
    Interval(mean=0.5, low=0.5, high=0.5)
    """
    if numerators.shape != denominators.shape:
        raise DataError(f"a ratio needs the same queries twice, got {len(numerators)} and {len(denominators)} values")
    if not (denominators >= 0).all() or not denominators.any():
        raise DataError("the denominators of a ratio must be at least 0, and one of them above it")
    low, high = _bootstrap(numerators, denominators, level=level, samples=samples, seed=seed)
    return Interval(float(numerators.sum() / denominators.sum()), low, high)


def paired_test(a: Doubles, b: Doubles, *, level: float = 0.95, samples: int = 10_000, seed: int = 0) -> PairedTest:
    """The mean of `a - b` over queries, its bootstrap interval and the p-value of a randomisation test.

    If the rankers are exchangeable, each difference has either sign with equal chance (Smucker et al. 2007).
    Over random signs s_q = -1 or +1, two-sided and with the observed signs counted as one sample more,

    p = (1 + number of samples with |sum of s_q d_q| >= |sum of d_q|) / (1 + samples)

    >>> paired_test(np.array([0.2, 0.7]), np.array([0.2, 0.7])).p_value
    1.0
    """
    if a.shape != b.shape:
        raise DataError(f"a paired test needs the same queries twice, got {len(a)} and {len(b)} values")
    if (np.isnan(a) != np.isnan(b)).any():
        query = np.flatnonzero(np.isnan(a) != np.isnan(b))[0]
        raise DataError(f"a paired test needs the same queries twice, but query {query} is NaN in only one")
    differences = (a - b)[~np.isnan(a)]
    low, high = _bootstrap(differences, level=level, samples=samples, seed=seed)
    # Sums of the same numbers in another order differ by rounding, which must not decide what is a tie.
    observed = abs(differences.sum()) - 1e-12 * np.abs(differences).sum()
    extreme = sum(
        int(np.count_nonzero(np.abs(2 * (signs @ differences) - differences.sum()) >= observed))
        for signs in _signs(len(differences), samples=samples, seed=seed)
    )
    return PairedTest(float(differences.mean()), low, high, (1 + extreme) / (1 + samples))


def _bootstrap(
    values: Doubles, denominators: Doubles | None = None, *, level: float, samples: int, seed: int
) -> tuple[float, float]:
    """The percentile interval of the mean of the values, or of their sum over that of the denominators."""
    checks.share("level", level)
    checks.integer("samples", samples, at_least=1)
    if not len(values):
        raise DataError("an interval needs at least one query with a value; check that relevant documents exist")
    random = generator(seed, "bootstrap")
    means = []
    for rows in _chunks(samples, width=len(values)):
        # Drawing queries gives the counts of a multinomial draw and is four times as fast.
        drawn = random.integers(len(values), size=(rows, len(values)))
        below = np.full(rows, float(len(values))) if denominators is None else denominators[drawn].sum(axis=1)
        means.append(values[drawn].sum(axis=1)[below > 0] / below[below > 0])
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _signs(count: int, *, samples: int, seed: int) -> Iterator[Mask]:
    """Random signs in chunks of rows, True for plus."""
    random = generator(seed, "sign flips")
    for rows in _chunks(samples, width=count):
        bits = np.frombuffer(random.bytes(-(-rows * count // 8)), dtype=np.uint8)
        yield np.unpackbits(bits, count=rows * count).reshape(rows, count).astype(np.bool_)


def _chunks(samples: int, *, width: int) -> Iterator[int]:
    rows = max(1, _CHUNK // width)
    for start in range(0, samples, rows):
        yield min(rows, samples - start)

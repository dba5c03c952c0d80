"""Confidence intervals of means over queries, and a test of whether two rankers differ by more than chance."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Mask
from ultr.errors import DataError
from ultr.metrics.student import student_quantile
from ultr.seeding import generator

RESAMPLES = 2_000
_CHUNK = 2**22
"""The most random numbers that are held at once: 32 MB of indices, whatever the number of queries."""


@dataclass(frozen=True)
class Interval:
    """A mean over queries with its confidence interval.

    >>> Interval(0.71, 0.7, 0.72).text()
    '0.710 .700-.720'
    >>> Interval(8.13, 6.35, 10.2).text()
    '8.130 6.350-10.200'
    >>> Interval(0.71, math.nan, math.nan).text()
    '0.710'
    """

    mean: float
    low: float
    """NaN, and so is `high`, if there is a single query, which tells nothing about others."""
    high: float

    def text(self, separator: str = " ") -> str:
        """The mean and, behind the separator, the interval if there is one."""
        if math.isnan(self.low):
            return f"{self.mean:.3f}"
        low, high = (f"{bound:.3f}".removeprefix("0") for bound in (self.low, self.high))
        return f"{self.mean:.3f}{separator}{low}-{high}"


@dataclass(frozen=True)
class PairedTest:
    """The mean difference of two rankers over the same queries, its confidence interval and p-value."""

    difference: float
    low: float
    high: float
    p_value: float


def bootstrap_interval(values: Doubles, *, level: float = 0.95, samples: int = RESAMPLES, seed: int = 0) -> Interval:
    """The mean over queries and its interval; see `bootstrap_ratio`. Queries with the value NaN are left out.

    >>> bootstrap_interval(np.array([0.5, np.nan, 0.5]))
    Interval(mean=0.5, low=0.5, high=0.5)
    """
    known = values[~np.isnan(values)]
    return _interval(known, np.ones_like(known), level=level, samples=samples, seed=seed)


def bootstrap_ratio(
    numerators: Doubles, denominators: Doubles, *, level: float = 0.95, samples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """The sum of the numerators over that of the denominators, and its confidence interval over queries.

    A mean over impressions is such a ratio: each query brings a sum and its number of impressions. Queries without
    either say nothing and are left out. The interval reaches as far as the wider of two at each end, which few queries
    call for: Student's, which skewed values slip out of, and the bootstrap of Student's t (Efron 1979), which is too
    narrow where most values are 0. With one query it is unknown.

    >>> bootstrap_ratio(np.array([1.0, 3.0]), np.array([2.0, 6.0]))
    Interval(mean=0.5, low=0.5, high=0.5)
    """
    if numerators.shape != denominators.shape:
        raise DataError(f"a ratio needs the same queries twice, got {len(numerators)} and {len(denominators)} values")
    if not (denominators >= 0).all() or not denominators.any():
        raise DataError("the denominators of a ratio must be at least 0, and one of them above it")
    known = (numerators != 0) | (denominators != 0)
    return _interval(numerators[known], denominators[known], level=level, samples=samples, seed=seed)


def paired_test(a: Doubles, b: Doubles, *, level: float = 0.95, samples: int = 10_000, seed: int = 0) -> PairedTest:
    """The mean of `a - b` over queries, its interval (`bootstrap_ratio`) and the p-value of a randomisation test.

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
    checks.integer("samples", samples, at_least=1)
    differences = (a - b)[~np.isnan(a)]
    found = _interval(differences, np.ones_like(differences), level=level, samples=RESAMPLES, seed=seed)
    # Sums of the same numbers in another order differ by rounding, which must not decide what is a tie.
    observed = abs(differences.sum()) - 1e-12 * np.abs(differences).sum()
    extreme = sum(
        int(np.count_nonzero(np.abs(2 * (signs @ differences) - differences.sum()) >= observed))
        for signs in _signs(len(differences), samples=samples, seed=seed)
    )
    return PairedTest(found.mean, found.low, found.high, (1 + extreme) / (1 + samples))


def _interval(values: Doubles, sizes: Doubles, *, level: float, samples: int, seed: int) -> Interval:
    """The sum of the values over that of the sizes, with the wider of two intervals at each end."""
    checks.share("level", level)
    checks.integer("samples", samples, at_least=1)
    if not len(values):
        raise DataError("an interval needs at least one query with a value; check that relevant documents exist")
    count, ratio = len(values), float(values.sum() / sizes.sum())
    others = sizes.sum() - sizes
    if not others.all():
        # One query has all the size there is.
        return Interval(ratio, math.nan, math.nan)
    rests = values - ratio * sizes
    # By the ratio without each query in turn, r_q - r = -rest_q / (size of the others): the jackknife.
    apart = rests / others
    error = math.sqrt((count - 1) / count) * float(np.linalg.norm(apart - apart.mean()))
    student = student_quantile(level, count - 1) * error
    plain = math.sqrt(count / (count - 1)) * np.linalg.norm(rests) / sizes.sum()
    low, high = plain * np.quantile(_bootstrap_t(rests, sizes, samples, seed), [(1 - level) / 2, (1 + level) / 2])
    return Interval(ratio, ratio - max(student, float(high)), ratio + max(student, float(-low)))


def _bootstrap_t(rests: Doubles, sizes: Doubles, samples: int, seed: int) -> Doubles:
    """Student's t of the ratio in each resample of the queries that has a spread, and 0.

    With e = sum(rests) / sum(sizes) of a resample: t = e / s, s^2 = n / (n - 1) sum (rest - e size)^2 / sum(sizes)^2.
    """
    random, count = generator(seed, "bootstrap"), len(rests)
    columns = np.stack([rests, sizes, rests**2, rests * sizes, sizes**2], axis=1)
    found = [np.zeros(1)]
    for rows in _chunks(samples, width=count):
        # Drawing queries and counting them is a multinomial draw, and four times as fast.
        drawn = random.integers(count, size=(rows, count)) + count * np.arange(rows)[:, None]
        times = np.bincount(drawn.ravel(), minlength=rows * count).reshape(rows, count)
        rest, size, squares, products, size_squares = (times.astype(np.float64) @ columns).T
        with np.errstate(divide="ignore", invalid="ignore"):
            off = rest / size
            spread = squares - 2 * off * products + off**2 * size_squares
            t = off * size / np.sqrt(count / (count - 1) * spread)
        # Resamples of one query, many times over, have no spread but that of rounding.
        found.append(t[spread > 1e-9 * squares])
    return np.concatenate(found)


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

r"""Intervals and tests that hold however often one looks while the data grow, and may be stopped at any look.

By Ville's inequality, a nonnegative martingale that begins at 1 ever reaches $1 / \alpha$ with a probability of at most
$\alpha$, whatever the number of looks. A mixture of likelihood ratios is such a martingale (Robbins, Statistical
methods related to the law of the iterated logarithm, Ann. Math. Stat. 1970), and so is one of fair bets.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np

from ultr import checks
from ultr.arrays import Doubles
from ultr.errors import DataError
from ultr.metrics.intervals import Interval

PRIOR = 50.0
"""The parameter a of the mixture over shares, Beta(a, a): intervals are narrowest at about 16 a = 800 votes."""
BEST_AT = 800
"""Number of values at which the interval of a mean is the narrowest."""
_MOST = 1e7
"""More votes than anybody has; the steps are fine enough for as many."""
_STEPS = 2**14
_TINY, _EPS = 1e-300, 2.0**-53


def log_e_value(votes: Doubles, counts: Doubles, *, share: float = 0.5, prior: float = PRIOR) -> Doubles:
    r"""Logarithm of the evidence against a mean vote of `share`, [...].

    Votes are between 0 and 1, [votes], and there are `counts` of each, [..., votes]. Of wins (1) and losses (0) alone,
    the mean is the share that is won.

    $$E = \int \prod_i \left( x_i \frac{p}{s} + (1 - x_i) \frac{1 - p}{1 - s} \right) \mathrm{Beta}(p; a, a)\, dp$$

    for votes $x_i$. Each factor has the mean 1 if its vote has the mean $s$, however votes are distributed otherwise: a
    fair bet (Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting, J. R. Stat. Soc. B
    2024). Of wins and losses it is the likelihood under a mixture of shares over that under $s$, and at 1/2 the
    e-process of a mixture sequential probability ratio test (mSPRT).

    >>> round(math.exp(log_e_value(np.array([0.0, 1.0]), np.array([60.0, 90.0]))), 3)
    3.865
    """
    from scipy.special import logsumexp

    s = min(max(share, _TINY), 1 - _EPS)
    # A sum over midpoints is all but exact, since the integrand is smooth and far wider than a step.
    p = (np.arange(_STEPS) + 0.5) / _STEPS
    factors = np.log(np.outer(votes, p / s) + np.outer(1 - votes, (1 - p) / (1 - s)))
    density = (prior - 1) * np.log(p * (1 - p))
    found: Doubles = logsumexp(counts @ factors + density, axis=-1) - logsumexp(density)
    return found


def vote_interval(votes: Doubles, counts: Doubles, *, level: float = 0.95, prior: float = PRIOR) -> Interval:
    r"""The mean of votes between 0 and 1, with an interval that holds at all looks together: $\{s: E(s) < 1/\alpha\}$.

    With probability `level` it contains the mean at every moment (a confidence sequence: Howard, Ramdas, McAuliffe and
    Sekhon, Time-uniform, nonparametric, nonasymptotic confidence sequences, Ann. Stat. 2021).

    >>> vote_interval(np.array([0.0, 1.0]), np.array([400.0, 600.0])).text()
    '0.600 .546-.653'
    """
    checks.share("level", level)
    if counts.min(initial=0) < 0 or not counts.sum():
        raise DataError("a mean needs at least one vote")
    if votes.min() < 0 or votes.max() > 1:
        raise DataError("votes are between 0 and 1")
    enough, mean = -math.log(1 - level), float(votes @ counts / counts.sum())

    def is_outside(share: float) -> bool:
        return bool(log_e_value(votes, counts, share=share, prior=prior) >= enough)

    return Interval(mean, _edge(is_outside, 0.0, mean), _edge(is_outside, 1.0, mean))


def votes_needed(votes: Doubles, counts: Doubles, *, level: float = 0.95, prior: float = PRIOR) -> float:
    """Number of votes after which 1/2 is outside of the interval, if they stay as these are; inf for none.

    >>> votes_needed(np.array([0.0, 1.0]), np.array([45.0, 55.0])), votes_needed(np.array([0.0, 1.0]), np.ones(2))
    (921, inf)
    """
    enough, shares = -math.log(1 - level), counts / counts.sum()

    def is_enough(count: int) -> bool:
        return bool(log_e_value(votes, count * shares, prior=prior) >= enough)

    high = 1
    while not is_enough(high):
        high *= 2
        if high > _MOST:
            return math.inf
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def mean_interval(count: int, mean: float, variance: float, *, level: float = 0.95) -> Interval:
    r"""A mean of independent values, with an interval that holds at all looks together once the values are many.

    $$\bar x \pm \sigma \sqrt{\frac{2 (n \rho^2 + 1)}{n^2 \rho^2} \log \frac{\sqrt{n \rho^2 + 1}}{\alpha}}$$

    It is a confidence sequence in the limit, as intervals by the normal distribution are intervals in the limit
    (Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, Time-uniform central limit theory and asymptotic confidence
    sequences, Ann. Stat. 2024, theorem 2.2); rho is such that it is narrowest at `BEST_AT` values.

    >>> mean_interval(1_000, 0.05, 0.25).text()
    '0.050 .002-.098'
    """
    checks.share("level", level)
    if count < 2:
        return Interval(mean, math.nan, math.nan)
    alpha = 1 - level
    known = -2 * math.log(alpha)
    grown = count * (known + math.log(known + 1)) / BEST_AT
    half = math.sqrt(variance * 2 * (grown + 1) / (count * grown) * math.log(math.sqrt(grown + 1) / alpha))
    return Interval(mean, mean - half, mean + half)


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


def _edge(is_outside: Callable[[float], bool], outer: float, inner: float) -> float:
    """The point between `outer` and `inner` from which on `is_outside` is false; `outer` if it is false there."""
    if not is_outside(outer):
        return outer
    for _ in range(50):
        middle = (outer + inner) / 2
        outer, inner = (middle, inner) if is_outside(middle) else (outer, middle)
    return outer

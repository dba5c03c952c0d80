r"""Intervals and tests that hold however often one looks while the data grow, and may be stopped at any look.

By Ville's inequality, a nonnegative martingale that begins at 1 ever reaches $1 / \alpha$ with a probability of at most
$\alpha$, whatever the number of looks. A mixture of likelihood ratios is such a martingale (Robbins, Statistical
methods related to the law of the iterated logarithm, Ann. Math. Stat. 1970).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ultr import checks
from ultr.errors import DataError
from ultr.metrics.intervals import Interval

PRIOR = 50.0
"""The parameter a of the mixture over shares, Beta(a, a): intervals are narrowest at about 16 a = 800 lists."""
BEST_AT = 800
"""Number of values at which the interval of a mean is the narrowest."""
_MOST = 1e12


def log_e_value(wins: float, losses: float, *, share: float = 0.5, prior: float = PRIOR) -> float:
    r"""Logarithm of the evidence against each contest being won with the probability `share`.

    $$E = \frac{B(a + w, a + l)}{B(a, a)\, s^w (1 - s)^l}$$

    for $w$ wins and $l$ losses: the likelihood under a Beta(a, a) mixture of shares over that under $s$. At 1/2 it is
    the e-process of a mixture sequential probability ratio test (mSPRT).

    >>> round(math.exp(log_e_value(90, 60)), 3)
    3.865
    """
    evidence = _log_beta(prior + wins, prior + losses) - _log_beta(prior, prior)
    for count, chance in ((wins, share), (losses, 1 - share)):
        if count:
            evidence -= count * math.log(chance) if chance > 0 else -math.inf
    return evidence


def share_interval(wins: int, losses: int, *, level: float = 0.95, prior: float = PRIOR) -> Interval:
    r"""The share of contests that are won, with an interval that holds at all looks together: $\{s: E(s) < 1/\alpha\}$.

    With probability `level` it contains the share at every moment (a confidence sequence: Howard, Ramdas, McAuliffe and
    Sekhon, Time-uniform, nonparametric, nonasymptotic confidence sequences, Ann. Stat. 2021).

    >>> share_interval(600, 400).text()
    '0.600 .546-.653'
    """
    checks.share("level", level)
    if wins < 0 or losses < 0 or not wins + losses:
        raise DataError("a share needs at least one contest that was won or lost")
    enough, mean = -math.log(1 - level), wins / (wins + losses)

    def is_outside(share: float) -> bool:
        return log_e_value(wins, losses, share=share, prior=prior) >= enough

    return Interval(mean, _edge(is_outside, 0.0, mean), _edge(is_outside, 1.0, mean))


def contests_needed(share: float, *, level: float = 0.95, prior: float = PRIOR) -> float:
    """Number of contests after which 1/2 is outside of the interval, if this share of them is won; inf for none.

    >>> contests_needed(0.55), contests_needed(0.5)
    (921, inf)
    """
    enough = -math.log(1 - level)

    def is_enough(count: float) -> bool:
        return log_e_value(share * count, (1 - share) * count, prior=prior) >= enough

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


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _edge(is_outside: Callable[[float], bool], outer: float, inner: float) -> float:
    """The point between `outer` and `inner` from which on `is_outside` is false; `outer` if it is false there."""
    if not is_outside(outer):
        return outer
    for _ in range(60):
        middle = (outer + inner) / 2
        outer, inner = (middle, inner) if is_outside(middle) else (outer, middle)
    return outer

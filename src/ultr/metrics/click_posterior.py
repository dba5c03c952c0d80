"""The click rate of one document from a prior and its own clicks, with its interval: Gamma and Poisson.

Clicks C on a document that was exposed E times (impressions times propensities) are Poisson with mean E gamma. The rate
gamma, clicks an impression at the first position, is Gamma distributed around the prior mean f that features give:

    gamma ~ Gamma(a f, a),   gamma | C ~ Gamma(a f + C, a + E),   E[gamma | C] = (a f + C) / (a + E)

so that the prior counts like `a` exposures with a click rate of f. Where every impression is exposed (E is a count),
the posterior mean is the same as of a Beta prior with clicks that are Binomial; the Gamma interval is the wider one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr import checks
from ultr.arrays import Doubles
from ultr.errors import DataError


@dataclass(frozen=True, eq=False)
class ClickPosterior:
    """The click rates of documents after their clicks were seen, [documents] each."""

    mean: Doubles
    low: Doubles
    high: Doubles


def click_posterior(
    prior: Doubles, clicks: Doubles, exposure: Doubles, strength: float, *, level: float = 0.95
) -> ClickPosterior:
    """The posterior of each document: prior mean, clicks and exposures, [documents], and the strength `a` of the prior.

    100 clicks of 100 do not beat 9,000 of 10,000 where most documents are clicked half of the time:

    >>> found = click_posterior(np.array([0.5, 0.5]), np.array([100.0, 9_000.0]), np.array([100.0, 10_000.0]), 50.0)
    >>> found.mean.round(3).tolist()
    [0.833, 0.898]
    """
    from scipy.special import gammaincinv

    _check(prior, clicks, exposure, strength)
    checks.share("level", level)
    shape, rate = strength * prior + clicks, strength + exposure
    low, high = (gammaincinv(shape, tail) / rate for tail in ((1 - level) / 2, (1 + level) / 2))
    return ClickPosterior(shape / rate, low, high)


def log_marginal(prior: Doubles, clicks: Doubles, exposure: Doubles, strength: float) -> Doubles:
    """The log-probability of each document's clicks with its rate integrated out, negative binomial, [documents].

    log P(C) = log G(a f + C) - log G(a f) - log C! + a f log( a / (a + E) ) + C log( E / (a + E) )
    """
    from scipy.special import gammaln, xlogy

    _check(prior, clicks, exposure, strength)
    shape, rate = strength * prior, strength + exposure
    found: Doubles = (
        gammaln(shape + clicks)
        - gammaln(shape)
        - gammaln(clicks + 1)
        + shape * np.log(strength / rate)
        + xlogy(clicks, exposure / rate)
    )
    return found


def _check(prior: Doubles, clicks: Doubles, exposure: Doubles, strength: float) -> None:
    checks.positive("the strength of a prior", strength)
    if not prior.shape == clicks.shape == exposure.shape:
        raise DataError(f"{len(prior)} prior rates, but {len(clicks)} clicks and {len(exposure)} exposures")
    if not ((prior > 0).all() and (clicks >= 0).all() and (exposure >= 0).all()):
        raise DataError("prior rates must be above 0, clicks and exposures at least 0")

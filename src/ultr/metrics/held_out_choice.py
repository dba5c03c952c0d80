"""The choice among models of growing size, by how well they predict the same held-out clicks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ultr.arrays import Doubles
from ultr.errors import DataError

LEVEL = 0.05
"""The chance that the best of several leads counts though none is one."""
ERRORS = 1.64
"""A larger model must lead by this many standard errors. One-sided, a level of 5 % for each comparison."""


@dataclass(frozen=True)
class Lead:
    """The lead of one model over another on the same queries, and its standard error."""

    mean: float
    error: float

    @property
    def beyond_noise(self) -> bool:
        """True if it is ahead by more than chance."""
        return self.mean > ERRORS * self.error

    def beyond_noise_of(self, tried: int) -> bool:
        """True if the best of so many leads is ahead by more than the best of them would be by chance (Bonferroni).

        >>> [Lead(2.0, 1.0).beyond_noise_of(tried) for tried in (1, 2, 3)]
        [True, True, False]
        """
        return self.mean > -NormalDist().inv_cdf(LEVEL / tried) * self.error


def paired_lead(first: Doubles, second: Doubles, sizes: Doubles) -> Lead:
    """The lead of `first` over `second`, summed over queries of different sizes and divided by the sizes.

    With d_q the difference of query q, n_q its size (such as its clicks) and r = sum d_q / sum n_q, the lead is r and
    its squared error

        Q / (Q - 1) sum (d_q - r n_q)^2 / (sum n_q)^2

    >>> paired_lead(np.array([3.0, 1.0]), np.array([1.0, 1.0]), np.array([1.0, 1.0]))
    Lead(mean=1.0, error=1.0)
    """
    if not first.shape == second.shape == sizes.shape:
        raise DataError(f"a lead needs the same queries, got {len(first)}, {len(second)} and {len(sizes)} of them")
    count = int(np.count_nonzero(sizes))
    if count < 2:
        raise DataError("a lead needs at least two queries with a size above 0, to tell it from chance")
    differences = first - second
    mean = differences.sum() / sizes.sum()
    squares = np.square(differences - mean * sizes).sum()
    return Lead(float(mean), float(np.sqrt(count / (count - 1) * squares) / sizes.sum()))


def smallest_not_beaten(totals: Sequence[Doubles], sizes: Doubles, *, least: float = 0.0) -> int:
    """The number of the first model that none behind it beats beyond noise; `totals` start with the smallest model's.

    Leads of `least` or less do not count, however sure they are.

    >>> smallest_not_beaten([np.array([0.0, 0.0]), np.array([2.0, 1.9]), np.array([2.1, 1.8])], np.ones(2))
    1
    """
    return next(
        number
        for number, total in enumerate(totals)
        if not any(
            lead.beyond_noise and lead.mean > least
            for lead in (paired_lead(larger, total, sizes) for larger in totals[number + 1 :])
        )
    )

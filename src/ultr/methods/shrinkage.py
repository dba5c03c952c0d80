"""The share of a correction of raw clicks to keep: as much as two halves of the queries agree on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ultr.arrays import Doubles
from ultr.metrics.reliability import correlations, inverse_spreads, partial_correlation, reliability_of_mean


@dataclass(frozen=True)
class Shrinkage:
    """The share of a correction that is kept, and the weights of the scores that it leads to."""

    agreement: float
    """Correlation of what two halves of the queries, debiased apart, say beside raw clicks; 1: they say the same."""
    kept: float
    """Share of the correction that is kept, from 0 (raw clicks alone) to 1 (debiased clicks alone)."""
    weights: tuple[float, ...]
    """Factors of the scores by raw clicks, then of the debiased ones of all queries and of each half."""

    @classmethod
    def of(cls, products: Doubles) -> Shrinkage:
        """The shrinkage by the mean products of scores within lists, [4, 4]: raw clicks, all queries, each half.

        In units of each fit's own spread, let a be the score by raw clicks, v_1 and v_2 those of the halves and v the
        mean of all debiased ones. A debiased score is u + e with u what endless clicks would give and e noise, which is
        independent in the halves, since they have no query in common. Given a, u has the mean beta a, and the rest
        of v is the correction v - beta a. Its reliability follows from the partial correlation rho of the halves
        given a:

            score = beta a + kept (v - beta a),    kept = k^2,    k = 2 rho / (1 + rho).

        k is the reliability of the correction, and with kept = k the score would be the best linear prediction of u.
        But u is not the truth: halves also agree on errors that they share. With T the truth in the correction, C the
        shared error and E the noise of a half, all as variances, rho = (T + C) / (T + C + E), and the best linear
        prediction of the truth keeps

            T / (T + C + E / 2) = k^2    if    C = k E / 2,

        if the shared error is about as large as the noise that is left in the mean of two halves.

        Raw clicks are fitted on both halves, so that their noise is that of the halves: what a takes off v_1 and v_2
        makes the rest of them disagree. Where that matters, rho and the share that is kept are too small, never too
        large.

        >>> halves_agree = np.array([[1, 0, 0, 0], [0, 1, 0.9, 0.9], [0, 0.9, 1, 0.8], [0, 0.9, 0.8, 1]])
        >>> round(Shrinkage.of(halves_agree).kept, 2)
        0.79
        """
        found = correlations(products)
        with_raw = found[0, 1:]
        agreement = partial_correlation(float(found[2, 3]), float(with_raw[1]), float(with_raw[2]))
        kept = reliability_of_mean(agreement) ** 2
        if not kept:
            return replace(NOTHING_KEPT, agreement=agreement)
        beta = max(float(with_raw.mean()), 0.0)
        weights = inverse_spreads(products) * np.array([(1 - kept) * beta, kept / 3, kept / 3, kept / 3])
        return cls(agreement, kept, tuple(weights.tolist()))


NOTHING_KEPT = Shrinkage(agreement=0.0, kept=0.0, weights=(1.0, 0.0, 0.0, 0.0))
"""Raw clicks alone."""

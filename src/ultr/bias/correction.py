"""The correction that debiasing makes to a ranking by raw clicks, and the share of it that is more than noise.

Linear rankers are fitted in a moment: one on raw clicks, and one for each half of the queries on clicks whose position
is accounted for. What the halves agree on beside raw clicks is what debiasing has to offer, whatever model learns it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Integers
from ultr.bias.linear_inputs import centred, sampled_lists, standardised
from ultr.bias.position_weights import click_weights
from ultr.bias.readers_left import ReadersLeft
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.errors import DataError
from ultr.metrics.reliability import correlations, partial_correlation, reliability_of_mean
from ultr.seeding import generator

WEIGHT_POWER = 0.5
"""A click counts (click rate of its position)^-WEIGHT_POWER where its position is accounted for."""
FARTHEST = 3.0
"""The largest change of a coefficient in one step."""
STEPS, NEAR = 20, 1e-4
"""Most Newton steps, and how small the last one must be."""


@dataclass(frozen=True)
class Correction:
    """The distance of debiased clicks from raw ones, as far as it is reliable."""

    agreement: float
    """Correlation of the two halves of the queries, debiased apart, in what raw clicks do not say."""
    reliable: float
    """Share of the correction that is more than noise, by this agreement; 0 to 1."""
    known: float
    """Correlation of debiased scores with those of raw clicks, within lists."""
    halves: float
    """Correlation of the two halves in all that they say, raw clicks included."""
    queries: int
    """Queries that this rests on."""
    clicks: int
    """Clicks that this rests on."""

    @property
    def new(self) -> float:
        """Share of the variance of debiased scores that is reliable and that raw clicks do not say, 0 to 1."""
        return self.reliable * (1 - min(abs(self.known), 1.0) ** 2)


def correction(log: ClickLog, *, stopping: float = 0.0, seed: int = 0) -> Correction:
    """Compare linear rankers on raw clicks and on clicks whose position is accounted for, as are users who stop.

    With X the features within a list and p its positions, clicks are shared out by softmax(X w) or softmax(X w + h_p),
    where w has a normal prior with which scores have a standard deviation of about 1. Agreement and reliability are
    those of the method `auto`. `stopping` is the share of users who look at nothing further after a click.
    """
    queries = np.unique(log.queries)
    if len(queries) < 4:
        counted = "one query" if len(queries) == 1 else f"{len(queries)} queries"
        raise DataError(f"{counted} cannot be halved to see what they agree on; log more of them")
    if not log.features.shape[1]:
        raise DataError("the log has no features")
    lists = _chosen(log, seed=seed)
    rows, lengths = ragged.rows_of(lists, log.offsets), log.lengths[lists]
    features = standardised(log.features, log.documents[rows])
    if (varying := np.count_nonzero(np.ptp(features, axis=0))) < 2:
        raise DataError(
            "by one feature a linear ranker orders documents in one way, or in the opposite one, so that linear "
            "rankers do not tell; a network or trees may change the order"
            if varying
            else "no feature differs between documents; there is nothing to rank by"
        )
    positions, clicks = log.position.values[rows].astype(np.int64), log.clicks[rows].astype(np.float64)
    impressions = np.repeat(log.impressions[lists], lengths).astype(np.float64)
    offsets = ragged.from_lengths(lengths)
    shuffled = generator(seed, "halves").permutation(len(queries))
    half = np.repeat(shuffled[np.searchsorted(queries, log.queries[lists])] % 2 == 0, lengths)
    left = np.ones(len(rows))
    if stopping:
        lists_shown = (positions, offsets, clicks, log.impressions[lists])
        left = ReadersLeft.fit(stopping, *lists_shown, position_count=int(positions.max()) + 1).at(*lists_shown)
    shown, remaining = (np.bincount(positions, values).astype(np.float64) for values in (impressions, clicks / left))
    weighted = clicks / left * click_weights(shown, remaining, WEIGHT_POWER)[positions]
    levels = np.eye(int(positions.max()) + 1)[:, 1:][positions]
    raw = features @ _fit(features, offsets, clicks)
    apart = [features @ _fit(features, offsets, np.where(part, weighted, 0.0), levels) for part in (half, ~half)]
    scores = np.stack([centred(each, offsets) for each in (raw, *apart)])
    found = correlations(scores @ scores.T)
    agreement = partial_correlation(float(found[1, 2]), float(found[0, 1]), float(found[0, 2]))
    # The correlation of raw clicks with the mean of the halves.
    known = float(found[0, 1:].mean() / np.sqrt(max((1 + found[1, 2]) / 2, 1e-12)))
    reliable, halves = reliability_of_mean(agreement), float(found[1, 2])
    return Correction(agreement, reliable, known, halves, len(queries), int(clicks.sum()))


def _chosen(log: ClickLog, *, seed: int) -> Integers:
    """The lists with a choice and a click, or some of them."""
    lists = sampled_lists(log.offsets, log.features.shape[1] + len(log.position.levels), purpose="lists", seed=seed)
    starts = ragged.from_lengths(log.lengths[lists])[:-1]
    chosen: Integers = lists
    if len(lists):
        chosen = lists[np.add.reduceat(log.clicks[ragged.rows_of(lists, log.offsets)], starts) > 0]
    if len(chosen) < 2:
        raise DataError("fewer than two lists have a click and another document; there is nothing to learn from")
    return chosen


def _fit(features: Doubles, offsets: Integers, clicks: Doubles, levels: Doubles | None = None) -> Doubles:
    """Coefficients of the features in a softmax regression of the clicks of each list, by Newton's steps."""
    width = features.shape[1]
    columns = features if levels is None else np.hstack([features, levels])
    penalty = np.where(np.arange(columns.shape[1]) < width, width, 0.01)
    starts, lengths = offsets[:-1], np.diff(offsets)
    totals = np.add.reduceat(clicks, starts)
    coefficients: Doubles = np.zeros(columns.shape[1])
    for _ in range(STEPS):
        logits = columns @ coefficients
        shares = np.exp(logits - np.repeat(np.maximum.reduceat(logits, starts), lengths))
        shares /= np.repeat(np.add.reduceat(shares, starts), lengths)
        expected = shares * np.repeat(totals, lengths)
        means = np.add.reduceat(columns * shares[:, None], starts, axis=0)
        # The Hessian is the covariance of the columns within each list, summed over its clicks.
        hessian = columns.T @ (columns * expected[:, None]) - means.T @ (means * totals[:, None]) + np.diag(penalty)
        step = np.linalg.solve(hessian, columns.T @ (clicks - expected) - penalty * coefficients)
        coefficients += step * min(1.0, FARTHEST / max(float(np.abs(step).max()), 1e-12))
        if np.abs(step).max() < NEAR:
            break
    return coefficients[:width]

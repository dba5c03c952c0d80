"""Click probabilities by group and position as a product of non-negative factors, fitted to counts.

    P_gp = sum_k a_gk b_kp, a and b >= 0, all P <= 1

With one term, this is the examination hypothesis: relevance times observation. Trust bias has two terms. The fit is
maximum likelihood of binomial counts: c_gp clicks of n_gp impressions.

The update of a is multiplicative. With the others fixed, log P and log(1 - P) are concave, so Jensen's inequality with
the weights w_gpk = a_gk b_kp / P_gp splits the likelihood into one concave function of each u_gk = a_gk new / a_gk old:

    f(u) = C log u + sum_p w_p (n_p - c_p) log(1 - P_p u), C = sum_p w_p c_p

Its maximum lies beyond the u that solves f'(u) = 0 with every 1 / (1 - P_p u) replaced by its largest growth, that of
the largest P_p = Q:

    u = C / (Q C + (1 - Q) D), D = sum_p w_p (n_p - c_p) P_p / (1 - P_p)

So the likelihood never falls, and no P passes 1. Where all P are small, this is the well-known C / D of Poisson counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ultr.arrays import Doubles, ratio

_SMALLEST = 1e-300
_LARGEST = 1 - 1e-12


class Factorization(NamedTuple):
    """Some fits at once, one for each of the tables they were fitted to."""

    rows: Doubles
    """[tables, groups, rank], a."""
    columns: Doubles
    """[tables, rank, positions], b."""
    log_likelihood: Doubles
    """[tables], without the binomial coefficients, which do not depend on the fit."""

    @property
    def rates(self) -> Doubles:
        """[tables, groups, positions], P."""
        return self.rows @ self.columns


def log_likelihood(clicks: Doubles, impressions: Doubles, rates: Doubles) -> Doubles:
    """The binomial log-likelihood of each table [..., groups, positions], without the binomial coefficients."""
    clicked = clicks * np.log(np.maximum(rates, _SMALLEST))
    skipped = (impressions - clicks) * np.log1p(-np.minimum(rates, _LARGEST))
    total: Doubles = (clicked + skipped).sum(axis=(-2, -1))
    return total


def fit_rank_one(
    clicks: Doubles, impressions: Doubles, *, rounds: int = 2_000, tolerance: float = 1e-4
) -> Factorization:
    """The best fit with one term to each table [tables, groups, positions].

    It stops when ten rounds gain less than `tolerance` of log-likelihood on every table.
    """
    by_group = ratio(clicks.sum(axis=2), impressions.sum(axis=2))
    by_position = ratio(clicks.sum(axis=1), impressions.sum(axis=1))
    # The start must have all P below 1, and the margins are rates: a product of two rates scaled to the mean rate.
    peaks = np.maximum(by_position.max(axis=1), _SMALLEST)[:, None]
    rows, columns = by_group[:, :, None], (by_position / peaks)[:, None, :]
    return _climb(clicks, impressions, rows, columns, rounds=rounds, tolerance=tolerance)


def fit_one_more(
    clicks: Doubles,
    impressions: Doubles,
    fit: Factorization,
    random: np.random.Generator,
    *,
    starts: int = 2,
    rounds: int = 500,
    tolerance: float = 1e-3,
) -> Factorization:
    """The best fit with one term more than `fit`, found from several starts; never worse than `fit`.

    The first start splits the largest term along the largest misfit of `fit`, the others along random directions.
    """
    best = Factorization(
        np.concatenate([fit.rows, np.zeros_like(fit.rows[:, :, :1])], axis=2),
        np.concatenate([fit.columns, np.zeros_like(fit.columns[:, :1])], axis=1),
        fit.log_likelihood,
    )
    for start in range(starts):
        if start:
            up, down = random.uniform(-1, 1, fit.rows.shape[:2]), random.uniform(-1, 1, fit.columns[:, 0].shape)
        else:
            up, down = _misfit(clicks, impressions, fit.rates)
        found = _climb(clicks, impressions, *_split(fit, up, down), rounds=rounds, tolerance=tolerance)
        better = found.log_likelihood > best.log_likelihood
        best = Factorization(
            np.where(better[:, None, None], found.rows, best.rows),
            np.where(better[:, None, None], found.columns, best.columns),
            np.where(better, found.log_likelihood, best.log_likelihood),
        )
    return best


def _climb(
    clicks: Doubles, impressions: Doubles, rows: Doubles, columns: Doubles, *, rounds: int, tolerance: float
) -> Factorization:
    """Update rows and columns in turn; tables that gain no more are left as they are."""
    rows, columns = rows.copy(), columns.copy()
    reached = log_likelihood(clicks, impressions, rows @ columns)
    skips = impressions - clicks
    moving = np.arange(len(clicks))
    for _ in range(0, rounds, 10):
        # With the tables last, every operation runs along them: [groups, positions, tables] and [..., rank, tables].
        c, s, a = (np.ascontiguousarray(each[moving].transpose(1, 2, 0)) for each in (clicks, skips, rows))
        b = np.ascontiguousarray(columns[moving].transpose(2, 1, 0))
        for _ in range(10):
            a = a * _growth(c, s, a, b)
            b = b * _growth(c.swapaxes(0, 1), s.swapaxes(0, 1), b, a)
        rows[moving], columns[moving] = a.transpose(2, 0, 1), b.transpose(2, 1, 0)
        now = log_likelihood(clicks[moving], impressions[moving], rows[moving] @ columns[moving])
        gain = now - reached[moving]
        reached[moving] = now
        moving = moving[gain > tolerance]
        if not len(moving):
            break
    return Factorization(rows, columns, reached)


def _growth(clicks: Doubles, skips: Doubles, rows: Doubles, columns: Doubles) -> Doubles:
    """The factor u of each entry of `rows`, see above. The weight of a term is a factor of it, so it cancels."""
    rates = np.einsum("gkt,pkt->gpt", rows, columns)
    np.clip(rates, _SMALLEST, _LARGEST, out=rates)
    gained = np.einsum("gpt,pkt->gkt", clicks / rates, columns)
    peak = rates.max(axis=1, keepdims=True)
    np.subtract(1, rates, out=rates)
    lost = np.einsum("gpt,pkt->gkt", np.divide(skips, rates, out=rates), columns)
    whole = peak * gained + (1 - peak) * lost
    return ratio(gained, whole, otherwise=1.0)


def _misfit(clicks: Doubles, impressions: Doubles, rates: Doubles) -> tuple[Doubles, Doubles]:
    """The leading singular vectors of the standardised residuals, each scaled to 1."""
    variance = np.maximum(impressions * rates * (1 - rates), 0)
    residual = ratio(clicks - impressions * rates, np.sqrt(variance))
    left, _, right = np.linalg.svd(residual, full_matrices=False)
    up, down = left[:, :, 0], right[:, 0]
    return up / np.abs(up).max(axis=1, keepdims=True), down / np.abs(down).max(axis=1, keepdims=True)


def _split(fit: Factorization, up: Doubles, down: Doubles) -> tuple[Doubles, Doubles]:
    """The largest term in two halves that lean to opposite sides."""
    sizes = fit.rows.sum(axis=1) * fit.columns.sum(axis=2)
    tables, largest = np.arange(len(sizes)), sizes.argmax(axis=1)
    a, b = fit.rows[tables, :, largest], fit.columns[tables, largest]
    rows = np.concatenate([fit.rows, (a * np.exp(-up))[:, :, None]], axis=2)
    columns = np.concatenate([fit.columns, (b * np.exp(-down))[:, None]], axis=1)
    rows[tables, :, largest] = a * np.exp(up)
    columns[tables, largest] = b * np.exp(down)
    # What is 0 can never grow by a factor.
    rows = np.maximum(rows, 1e-6 * rows.max(axis=(1, 2), keepdims=True))
    columns = np.maximum(columns, 1e-6 * columns.max(axis=(1, 2), keepdims=True))
    # Halves that lean together are larger than the whole; no P of the start may be above 0.99.
    halves = rows @ columns
    total, peak = halves.sum(axis=(1, 2)), halves.max(axis=(1, 2))
    scale = np.minimum(fit.rates.sum(axis=(1, 2)) / np.maximum(total, _SMALLEST), 0.99 / np.maximum(peak, _SMALLEST))
    return rows * scale[:, None, None], columns

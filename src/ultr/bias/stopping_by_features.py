"""Users who stop after a click, by what position and features explain of the clicks below others."""

from __future__ import annotations

import numpy as np

from ultr.arrays import Doubles, Floats
from ultr.bias.below_clicks import BelowClicks
from ultr.bias.linear_inputs import standardised

MOST_FEATURES = 64
"""Of more features, as many principal components stand for them."""
STEPS, NEAR = 30, 1e-4
"""Most steps of Fisher scoring, and how small the last one must be."""
RIDGE = 0.01
"""Keeps what no click tells from making a step endless."""


def stopping_by_features(features: Floats, rows: BelowClicks) -> tuple[float, float] | None:
    """The share s of users who stop after a click, and its standard error over queries.

    With h_p for each place p and weights w of the features x,

        E[clicks] = n exp(h_p + x w) (1 - s A),

    where A is the clicks above per impression of the list. None if there are fewer queries than places and features.
    """
    known, query = np.unique(rows.query, return_inverse=True)
    used, levels = np.unique(rows.place, return_inverse=True)
    width = len(used) + min(features.shape[1], MOST_FEATURES)
    if len(known) <= width + 1:
        return None
    at = np.eye(len(used))[levels]
    causes = np.hstack([at, _components(standardised(features, rows.document))])
    rates = (at.T @ rows.clicked + 0.5) / (at.T @ rows.shown + 1)
    coefficients = np.append(np.log(rates), np.zeros(width - len(used)))
    # Features have a normal prior, so that many of them do not explain few clicks.
    prior = np.append(np.where(np.arange(width) < len(used), 0.0, width), 0.0)
    share, influence = _fit(causes, coefficients, prior, rows.shown, rows.clicked, rows.above)
    # What the coefficients fit of the queries is not seen in the rest: as in the variance of a linear regression.
    return share, float(np.sqrt((np.bincount(query, influence) ** 2).sum() * len(known) / (len(known) - width - 1)))


def _components(features: Doubles) -> Doubles:
    """The features, or the principal components of many."""
    if features.shape[1] <= MOST_FEATURES:
        return features
    _, directions = np.linalg.eigh(features.T @ features)
    components = features @ directions[:, -MOST_FEATURES:]
    unit: Doubles = components / np.maximum(components.std(axis=0), 1e-12)
    return unit


def _fit(
    columns: Doubles, coefficients: Doubles, prior: Doubles, shown: Doubles, clicked: Doubles, above: Doubles
) -> tuple[float, Doubles]:
    """The share s by Fisher scoring, and the influence of each row on it."""
    share = 0.0
    for _ in range(STEPS):
        left = 1 - share * above
        expected = shown * np.exp(np.clip(columns @ coefficients, -15, 1)) * left
        # The derivative of log(1 - s A) in s is that of one more column.
        slopes = np.column_stack([columns, -above / left])
        inverse = np.linalg.inv(slopes.T @ (slopes * expected[:, None]) + np.diag(prior + RIDGE))
        step = inverse @ (slopes.T @ (clicked - expected) - prior * np.append(coefficients, share))
        step = np.clip(step, -1, 1)
        coefficients = coefficients + step[:-1]
        share = float(np.clip(share + step[-1], -1, 1))
        if np.abs(step).max() < NEAR:
            break
    influence: Doubles = slopes @ inverse[-1] * (clicked - expected)
    return share, influence

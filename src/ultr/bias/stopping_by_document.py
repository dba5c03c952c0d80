"""Users who stop after a click, by documents that were shown below many clicks and below few."""

from __future__ import annotations

import numpy as np

from ultr.bias.below_clicks import BelowClicks

STEPS, NEAR = 50, 1e-4
"""Most Newton steps, and how small the last one must be."""
RIDGE = 0.01
"""Keeps what no click tells from making a step endless."""


def stopping_by_document(rows: BelowClicks) -> tuple[float, float] | None:
    """The share s of users who stop after a click, and its standard error over queries.

    Each document d of a query has a relevance g_d of its own, so that nothing has to be known of it:

        E[clicks] = n g_d exp(h_p) (1 - s A),

    with A the clicks above it per impression of its list. Given all clicks on a document, those where it stood are
    multinomial, which takes g_d out. What stands above does not depend on how the document itself is clicked. None
    if fewer queries have documents that moved than there are places.
    """
    _, document = np.unique(np.stack([rows.query, rows.document]), axis=1, return_inverse=True)
    moved = ((np.bincount(document, rows.clicked) > 0) & (np.bincount(document) > 1))[document.ravel()]
    _, document = np.unique(document.ravel()[moved], return_inverse=True)
    known, query = np.unique(rows.query[moved], return_inverse=True)
    used, place = np.unique(rows.place[moved], return_inverse=True)
    shown, clicked, above, width = rows.shown[moved], rows.clicked[moved], rows.above[moved], len(used)
    if len(known) <= width + 1 or not above.any():
        return None
    at = np.eye(width)[place][:, 1:]
    totals = np.bincount(document, clicked)
    heights, share = np.zeros(width - 1), 0.0
    for _ in range(STEPS):
        left = 1 - share * above
        weights = shown * np.exp(np.clip(at @ heights, -15, 15)) * left
        sums = np.bincount(document, weights)
        expected = weights * (totals / sums)[document]
        # The derivative of log(1 - s A) in s is that of one more place, and all are compared within a document.
        slopes = np.column_stack([at, -above / left])
        means = np.stack([np.bincount(document, weights * column) for column in slopes.T], axis=1) / sums[:, None]
        slopes -= means[document]
        inverse = np.linalg.inv(slopes.T @ (slopes * expected[:, None]) + RIDGE * np.eye(width))
        step = np.clip(inverse @ (slopes.T @ (clicked - expected)), -1, 1)
        heights = heights + step[:-1]
        share = float(np.clip(share + step[-1], -1, 1))
        if np.abs(step).max() < NEAR:
            break
    influence = np.bincount(query, slopes @ inverse[-1] * (clicked - expected))
    # What the places fit of the queries is not seen in the rest: as in the variance of a linear regression.
    return share, float(np.sqrt((influence**2).sum() * len(known) / (len(known) - width - 1)))

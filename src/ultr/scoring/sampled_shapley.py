"""Shapley values of any scores by sampled permutations, for models that are neither trees nor have gradients.

The game is that of `tree_shapley`: document i against each document k of its list. Features go over from k to i one
after the other, in random order; each gets what the score changes by when it does. However few orders are drawn, these
changes add up to the score of i less the list's mean, and on average they are the Shapley values.

Strumbelj, Kononenko: Explaining prediction models and individual predictions with feature contributions, KAIS 2014.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ultr.arrays import Doubles, Floats, Integers

FEWEST = 64
"""Fewest orders that are drawn for a document, and at least two for each other document of its list."""
AT_ONCE = 2**14
"""Mixed documents that are scored at once."""


def orders_drawn(documents: int) -> int:
    """The number of orders for each pair of documents of a list.

    >>> orders_drawn(100), orders_drawn(4)
    (2, 22)
    """
    return max(2, -(-FEWEST // max(documents - 1, 1)))


def sampled_shapley(
    score: Callable[[Floats], Floats | Doubles], features: Floats, rows: Integers, *, random: np.random.Generator
) -> tuple[Doubles, Doubles]:
    """Shapley values of some documents of a list and their standard errors, each [rows, features].

    `score` gives the score of each document by itself; `features` are those of the whole list.
    """
    documents, width = features.shape
    drawn = orders_drawn(documents)
    found, errors = np.zeros((2, len(rows), width))
    step = max(AT_ONCE // ((width + 1) * drawn), 1)
    for place, row in enumerate(rows.tolist()):
        others = np.delete(np.arange(documents), row)
        for start in range(0, len(others), step):
            against = features[others[start : start + step]]
            changes = _changes(score, features[row], against, random.random((len(against), drawn, width)))
            found[place] += changes.mean(axis=1).sum(axis=0)
            errors[place] += changes.var(axis=1, ddof=1).sum(axis=0) / drawn
    return found / documents, np.sqrt(errors) / documents


def _changes(score: Callable[[Floats], Floats | Doubles], document: Floats, others: Floats, keys: Doubles) -> Doubles:
    """Change of the score by each feature when it goes over from another document, [others, orders, features].

    The orders are those of the random keys [others, orders, features].
    """
    width = len(document)
    places = keys.argsort(axis=-1)
    gone_over = places[..., None, :] < np.arange(width + 1)[:, None]
    mixed = np.where(gone_over, document, others[:, None, None, :])
    scores = np.asarray(score(mixed.reshape(-1, width)), dtype=np.float64).reshape(mixed.shape[:-1])
    return np.take_along_axis(np.diff(scores, axis=-1), places, axis=-1)

"""The lists that a ranker shows: the best documents of each query, with or without swaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers, ratio
from ultr.data import ragged
from ultr.errors import DataError, OptionError
from ultr.seeding import generator


@dataclass(frozen=True, eq=False)
class ShownLists:
    """Shown lists: the documents of list `i` are `documents[offsets[i]:offsets[i + 1]]`, from the top."""

    documents: Integers
    """int64 [shown documents], rows of the candidates."""
    offsets: Integers
    """int64 [lists + 1]."""
    queries: Integers
    """int64 [lists], the number of the query of each list."""

    @property
    def positions(self) -> Integers:
        """The position of each shown document, from 1."""
        return ragged.ranks(self.offsets) + 1


def shown_lists(
    scores: Doubles, offsets: Integers, *, positions: int = 10, rankings: int = 1, noise: float = 0.0, seed: int = 0
) -> ShownLists:
    """The top documents of each query by score, `rankings` times over.

    A query without documents shows nothing. Equal scores keep the order of the rows. With `noise`, each
    ranking adds Gumbel noise of that scale to the scores standardised within the query, which samples a
    Plackett-Luce ranking: the larger the noise, the more swaps.

    >>> shown = shown_lists(np.array([0.1, 0.9, 0.5, 0.3]), np.array([0, 3, 4]), positions=2)
    >>> shown.documents.tolist(), shown.offsets.tolist()
    ([1, 2, 3], [0, 2, 3])
    """
    checks.integer("positions", positions, at_least=1)
    checks.integer("rankings", rankings, at_least=1)
    if not 0 <= noise < float("inf"):
        raise OptionError(f"noise must be a number of at least 0, got {noise!r}")
    scores = np.asarray(scores, dtype=np.float64)
    ragged.check_offsets(offsets, len(scores), what="scored documents")
    if scores.ndim != 1 or not np.isfinite(scores).all():
        raise DataError("scores must be one finite number for each document")
    query = ragged.list_numbers(offsets)
    base = _standardised(scores, offsets) if noise else scores
    ranks = np.arange(len(scores)) - offsets[:-1][query]
    documents = []
    for ranking in range(rankings):
        keys = base
        if noise:
            keys = base + generator(seed, "shown lists", ranking).gumbel(scale=noise, size=len(scores))
        documents.append(np.lexsort((-keys, query))[ranks < positions])
    lengths = np.minimum(np.diff(offsets), positions)
    shown = np.flatnonzero(lengths)
    return ShownLists(
        documents=np.concatenate(documents),
        offsets=ragged.from_lengths(np.tile(lengths[shown], rankings)),
        queries=np.tile(shown, rankings),
    )


def _standardised(scores: Doubles, offsets: Integers) -> Doubles:
    """Scores with mean 0 and deviation 1 within each query, 0 where they are all equal."""
    query, lengths = ragged.list_numbers(offsets), np.maximum(np.diff(offsets), 1)
    centred = scores - (np.bincount(query, scores, minlength=len(lengths)) / lengths)[query]
    deviation = np.sqrt(np.bincount(query, centred**2, minlength=len(lengths)) / lengths)[query]
    return ratio(centred, deviation)

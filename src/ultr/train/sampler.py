"""Which lists each step trains on."""

from __future__ import annotations

import numpy as np

from ultr.arrays import Doubles, Integers
from ultr.seeding import generator
from ultr.train.shuffle import Shuffle

BLOCK = 64
"""Of so many lists the sum of the weights is kept in memory; those of single lists are read when they are needed."""
STRETCH = 2**14
"""So many lists are drawn at once."""


class ListSampler:
    """The lists of each step: in every pass, each list in proportion to its weight.

    Systematic sampling: a pass over n lists draws n, and a list of average weight comes exactly once, one of twice
    that weight exactly twice. With equal weights a pass is a permutation. The lists of a step depend on the seed
    and the step alone, so a resumed run continues with the same ones.
    """

    def __init__(self, weights: Integers, batch_size: int, *, seed: int, purpose: str) -> None:
        self._weights, self._lists = weights, len(weights)
        blocks = np.add.reduceat(weights, np.arange(0, self._lists, BLOCK), dtype=np.int64)
        self._ends = np.cumsum(blocks).astype(np.float64)
        self._batch_size = batch_size
        self._seed, self._purpose = seed, purpose
        self._cached: tuple[tuple[int, int], Integers] | None = None

    def __call__(self, step: int) -> Integers:
        """The numbers of the lists of a step."""
        start, parts, count = step * self._batch_size, [], 0
        while count < self._batch_size:
            number, within = divmod(start + count, self._lists)
            stretch, first = divmod(within, STRETCH)
            part = self._stretch(number, stretch)[first : first + self._batch_size - count]
            parts.append(part)
            count += len(part)
        return np.concatenate(parts)

    def _stretch(self, number: int, stretch: int) -> Integers:
        """The lists of one stretch of a pass."""
        if self._cached is None or self._cached[0] != (number, stretch):
            random = generator(self._seed, self._purpose, number)
            shift, order = random.random(), Shuffle(self._lists, random)
            places = order(np.arange(stretch * STRETCH, min((stretch + 1) * STRETCH, self._lists)))
            self._cached = (number, stretch), self._at((places + shift) / self._lists * self._ends[-1])
        return self._cached[1]

    def _at(self, ticks: Doubles) -> Integers:
        """The lists at these sums of the weights before them."""
        blocks = np.minimum(np.searchsorted(self._ends, ticks, side="right"), len(self._ends) - 1)
        members = blocks[:, None] * BLOCK + np.arange(BLOCK)
        weights = np.where(members < self._lists, self._weights[np.minimum(members, self._lists - 1)], 0)
        ends = (self._ends[blocks] - weights.sum(axis=1))[:, None] + np.cumsum(weights, axis=1)
        found: Integers = np.minimum(blocks * BLOCK + (ends <= ticks[:, None]).sum(axis=1), self._lists - 1)
        return found

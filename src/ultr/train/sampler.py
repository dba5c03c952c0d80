"""Which lists each step trains on."""

from __future__ import annotations

import numpy as np

from ultr.arrays import Integers
from ultr.seeding import generator


class ListSampler:
    """The lists of each step: in every pass, each list in proportion to its weight.

    Systematic sampling: a pass over n lists draws n, and a list of average weight comes exactly once, one of twice
    that weight exactly twice. With equal weights a pass is a permutation. The lists of a step depend on the seed
    and the step alone, so a resumed run continues with the same ones.
    """

    def __init__(self, weights: Integers, batch_size: int, *, seed: int, purpose: str) -> None:
        self._ends = np.cumsum(weights, dtype=np.float64)
        self._batch_size = batch_size
        self._seed, self._purpose = seed, purpose
        self._cached: tuple[int, Integers] | None = None

    def __call__(self, step: int) -> Integers:
        """The numbers of the lists of a step."""
        start, parts, count = step * self._batch_size, [], 0
        while count < self._batch_size:
            number, within = divmod(start + count, len(self._ends))
            part = self._pass(number)[within : within + self._batch_size - count]
            parts.append(part)
            count += len(part)
        return np.concatenate(parts)

    def _pass(self, number: int) -> Integers:
        if self._cached is None or self._cached[0] != number:
            random = generator(self._seed, self._purpose, number)
            ticks = (np.arange(len(self._ends)) + random.random()) / len(self._ends) * self._ends[-1]
            drawn = np.minimum(np.searchsorted(self._ends, ticks, side="right"), len(self._ends) - 1)
            self._cached = number, random.permutation(drawn)
        return self._cached[1]

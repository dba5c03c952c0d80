"""Which levels of several bias factors occur together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ultr.arrays import Integers
from ultr.data import ragged
from ultr.data.gathering import new_array


def combinations(factors: Sequence[Integers]) -> tuple[Integers, Integers]:
    """The combinations of levels that occur, [combinations, factors], in order; and which each row has.

    They are numbered anew after each factor, so that the numbers stay small however many levels there are.

    >>> levels, numbers = combinations([np.array([1, 0, 1]), np.array([0, 5, 0])])
    >>> levels.tolist(), numbers.tolist()
    ([[0, 5], [1, 0]], [1, 0, 1])
    """
    levels = np.empty((1, 0), dtype=np.int64)
    numbers = new_array(len(factors[0]), np.int64)
    numbers[:] = 0
    for values in factors:
        size, found = int(values.max(initial=0)) + 1, np.empty(0, dtype=np.int64)
        for part in ragged.slices(len(numbers)):
            numbers[part] = numbers[part] * size + values[part]
            found = np.union1d(found, numbers[part])
        for part in ragged.slices(len(numbers)):
            numbers[part] = np.searchsorted(found, numbers[part])
        levels = np.concatenate([levels[found // size], found[:, None] % size], axis=1)
    return levels, numbers

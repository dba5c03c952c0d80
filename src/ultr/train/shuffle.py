"""A random order that takes no memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ultr.arrays import Integers

ROUNDS = 4


class Shuffle:
    """The numbers below `count` in a random order, computed where it is asked for.

    A Feistel network permutes all numbers of so many bits: each round leaves one half of the bits and changes the other
    by a hash of the first, which can be undone, so no two numbers meet. What lands at `count` or above goes through it
    again until it lands below.

    >>> order = Shuffle(5, np.random.default_rng(0))
    >>> sorted(order(np.arange(5)).tolist())
    [0, 1, 2, 3, 4]
    """

    def __init__(self, count: int, random: np.random.Generator) -> None:
        self._count = np.uint64(count)
        self._bits = np.uint64(max(1, -(-(count - 1).bit_length() // 2)))
        self._low = np.uint64(2 ** int(self._bits) - 1)
        self._keys = random.integers(2**64, size=ROUNDS, dtype=np.uint64)

    def __call__(self, places: Integers) -> Integers:
        """The numbers at these places of the order."""
        numbers = self._permute(places.astype(np.uint64))
        outside = np.flatnonzero(numbers >= self._count)
        while len(outside):
            numbers[outside] = self._permute(numbers[outside])
            outside = outside[numbers[outside] >= self._count]
        return numbers.astype(np.int64)

    def _permute(self, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        left, right = numbers >> self._bits, numbers & self._low
        for key in self._keys:
            left, right = right, left ^ (_hash(right + key) & self._low)
        return (left << self._bits) | right


def _hash(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The end of splitmix64, which makes every bit depend on all."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))

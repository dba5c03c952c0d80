"""The lists that linear models look at."""

from __future__ import annotations

import numpy as np

from ultr.arrays import Integers
from ultr.seeding import generator

MOST_LISTS, MOST_VALUES = 20_000, 2**23
"""Most lists, and most values of features and positions, that are looked at; of larger logs, some lists are drawn."""


def sampled_lists(offsets: Integers, columns: int, *, purpose: str, seed: int) -> Integers:
    """The lists of more than one document, or some of them where so many columns make them too large."""
    lengths = np.diff(offsets)
    lists: Integers = np.flatnonzero(lengths > 1)
    by_values = MOST_VALUES / (columns * lengths[lists].mean()) if len(lists) else 0
    most = max(int(min(MOST_LISTS, by_values)), 2)
    if len(lists) > most:
        lists = np.sort(generator(seed, purpose).choice(lists, most, replace=False))
    return lists

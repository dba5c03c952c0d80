"""Judged lists small enough to check by hand or large enough to count."""

from __future__ import annotations

import numpy as np

from ultr.data import ragged
from ultr.data.judged import JudgedLists


def separable(queries: int = 40, *, features: int = 4, seed: int = 0) -> JudgedLists:
    """Grades 0..4 that a fixed direction orders without a mistake, with lists of 3 to 14 documents."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(3, 15, size=queries)
    direction = generator.normal(size=features)
    rows = generator.normal(size=(lengths.sum(), features))
    # Every document is moved along the direction to a value that depends on its grade alone.
    labels = generator.integers(0, 5, size=len(rows))
    rows += np.outer(labels - rows @ direction, direction) / (direction @ direction)
    return JudgedLists.of(features=rows, labels=labels, offsets=ragged.from_lengths(lengths), max_label=4)

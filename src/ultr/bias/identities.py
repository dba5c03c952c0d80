"""Documents with the same features, which no model can tell apart."""

from __future__ import annotations

import numpy as np

from ultr.arrays import Floats, Integers
from ultr.data import row_blocks
from ultr.data.gathering import new_array

_VALUES = 2**22
"""So many features are looked at at once."""
_MIXERS = tuple(
    (np.uint64(start), np.uint64(factor))
    for start, factor in ((0x243F6A8885A308D3, 0x9E3779B97F4A7C15), (0x13198A2E03707344, 0xC2B2AE3D27D4EB4F))
)
"""The start of each of the two digests of a row, and the odd number that it is multiplied by."""


def same_features(features: Floats) -> Integers:
    """A number for each row of the features, the same for equal rows: that of the first of them.

    Rows are compared by 127 bits that are made from theirs, so that two different rows of a billion count as the same
    with a chance of about 10^-20.
    """
    first, second = (new_array(len(features), np.int64) for _ in range(2))
    step = max(_VALUES // max(features.shape[1], 1), 1)
    for part in (slice(start, start + step) for start in range(0, len(features), step)):
        first[part], second[part] = _digests(features[part])
    numbers = new_array(len(features), np.int64)
    for rows in row_blocks.row_blocks(first):
        rows = rows[np.lexsort((second[rows], first[rows]))]
        above, below = rows[:-1], rows[1:]
        new = (first[above] != first[below]) | (second[above] != second[below])
        heads = np.append(0, np.flatnonzero(new) + 1)[: len(rows)]
        numbers[rows] = np.repeat(rows[heads], np.diff(heads, append=len(rows)))
    return numbers


def _digests(features: Floats) -> tuple[Integers, Integers]:
    """Two numbers for each row: 63 and 64 bits that follow from all of its values."""
    # Adding 0 makes -0 and 0 the same bits; a missing value (NaN) is the same as another, whatever its bits.
    values = np.ascontiguousarray(features, dtype=np.float32) + np.float32(0)
    words = np.where(np.isnan(values), np.float32("nan"), values).view(np.uint32)
    mixed = [np.full(len(words), start, dtype=np.uint64) for start, _ in _MIXERS]
    for column in words.T:
        for state, (_, factor) in zip(mixed, _MIXERS, strict=True):
            state ^= column.astype(np.uint64)
            state *= factor
            state ^= state >> np.uint64(32)
    return (mixed[0] >> np.uint64(1)).view(np.int64), mixed[1].view(np.int64)

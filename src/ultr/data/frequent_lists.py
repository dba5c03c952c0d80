"""The lists of a click log that were shown most."""

from __future__ import annotations

import numpy as np

from ultr.arrays import Integers
from ultr.data.click_log import ClickLog


def frequent_lists(log: ClickLog, *, most: int) -> Integers:
    """The list of each query with the most impressions, of the `most` queries with the most, those of one document
    left out.
    """
    order = np.lexsort((-log.impressions, log.queries))
    firsts = order[np.unique(log.queries[order], return_index=True)[1]]
    chosen = firsts[np.argsort(-log.impressions[firsts], kind="stable")][:most]
    return chosen[log.lengths[chosen] > 1].astype(np.int64)

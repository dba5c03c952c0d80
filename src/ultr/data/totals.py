"""How often documents were shown and clicked, summed by cells, a span of lists at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ultr.arrays import Counts, Doubles, Integers, ratio
from ultr.data import ragged
from ultr.data.gathering import new_array


class Totals(NamedTuple):
    """Sums over shown documents, one for each cell, or [groups, cells]."""

    impressions: Doubles
    """How many documents were shown, each as often as its list."""
    clicks: Doubles

    @property
    def rates(self) -> Doubles:
        """Clicks over impressions; NaN where nothing was shown."""
        return ratio(self.clicks, self.impressions, otherwise=np.nan)


def totals(
    cells: Integers | None,
    offsets: Integers,
    impressions: Integers,
    clicks: Counts,
    *,
    count: int = 1,
    groups: Integers | None = None,
    group_count: int = 1,
    weights: Counts | None = None,
) -> Totals:
    """The totals of some lists: those of `ClickLog.totals`, for arrays that are not a log's.

    >>> totals(np.array([0, 1, 0]), np.array([0, 2, 3]), np.array([10, 5]), np.array([4, 1, 2]), count=2)
    Totals(impressions=array([15., 10.]), clicks=array([6., 1.]))
    """
    shape = (*(() if groups is None else (group_count,)), *(() if cells is None else (count,)))
    shown, clicked = (new_array(int(np.prod(shape, dtype=np.int64)), np.float64) for _ in range(2))
    shown[:] = clicked[:] = 0
    for span in ragged.spans(offsets):
        number = np.zeros(span.rows.stop - span.rows.start, dtype=np.int64)
        if cells is not None:
            number += cells[span.rows]
        if groups is not None:
            group = span.spread(groups).astype(np.int64)
            number = np.where((number < 0) | (group < 0), -1, group * count + number)
        often, taken = span.spread(impressions).astype(np.float64), clicks[span.rows].astype(np.float64)
        if weights is not None:
            times = span.spread(weights).astype(np.float64)
            often, taken = often * times, taken * times
        kept = number >= 0
        if not kept.all():
            number, often, taken = number[kept], often[kept], taken[kept]
        _add(shown, number, often)
        _add(clicked, number, taken)
    return Totals(shown.reshape(shape), clicked.reshape(shape))


def _add(sums: Doubles, cells: Integers, values: Doubles) -> None:
    if len(sums) > ragged.SPAN:
        np.add.at(sums, cells, values)
    else:
        sums += np.bincount(cells, values, minlength=len(sums))

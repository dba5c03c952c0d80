"""The bias factors that a ranker knows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr.arrays import Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists

POSITION = "position"


@dataclass(frozen=True)
class Factor:
    """A bias factor of the log that a ranker was trained on."""

    name: str
    levels: tuple[str, ...]
    column: int
    """Its place among the bias factors of the log."""
    by_page: bool = False
    """True if it is the same for all documents of each shown list, as a device is.

    What such a factor adds to all logits of a list cancels in a softmax over the list, so no list-wise loss tells it.
    """


def factors_of(data: ClickLog | JudgedLists) -> tuple[Factor, ...]:
    """The bias factors of a log; judged lists have none."""
    if isinstance(data, JudgedLists):
        return ()
    return tuple(
        Factor(factor.name, factor.levels, column, by_page=column > 0 and _same_in_lists(factor.values, data.offsets))
        for column, factor in enumerate(data.factors)
    )


def same_levels(data: ClickLog | JudgedLists, factors: tuple[Factor, ...]) -> bool:
    """True if a log has exactly these bias factors and levels."""
    given = data.factors if isinstance(data, ClickLog) else ()
    return [(factor.name, factor.levels) for factor in given] == [(factor.name, factor.levels) for factor in factors]


def _same_in_lists(values: Integers, offsets: Integers) -> bool:
    for span in ragged.spans(offsets):
        filled = span.lengths > 0
        firsts = values[offsets[:-1][span.lists][filled]]
        if (values[span.rows] != np.repeat(firsts, span.lengths[filled])).any():
            return False
    return True

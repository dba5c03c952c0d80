"""The bias factors that a ranker knows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

from ultr.data import ragged
from ultr.data.bias_factor import check_edges
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.errors import DataError, UltrWarning

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
    edges: tuple[float, ...] = ()
    """Bounds between the levels of a numeric factor; see `BiasFactor`."""
    usual: int = field(default=0, compare=False)
    """The level that was shown most often in training; it stands in for levels that were not there."""

    def __post_init__(self) -> None:
        check_edges(self.name, self.levels, self.edges)
        if not 0 <= self.usual < len(self.levels):
            raise DataError(f"the usual level of bias factor {self.name!r} must be one of {len(self.levels)}")


def factors_of(data: ClickLog | JudgedLists) -> tuple[Factor, ...]:
    """The bias factors of a log; judged lists have none."""
    if isinstance(data, JudgedLists):
        return ()
    return tuple(
        Factor(
            factor.name,
            factor.levels,
            column,
            by_page=column > 0 and ragged.same_in_lists(factor.values, data.offsets),
            edges=factor.edges,
            usual=int(data.totals(factor).impressions.argmax()),
        )
        for column, factor in enumerate(data.factors)
    )


def warn_of_others(method: str, factors: Sequence[Factor], learned: Sequence[Factor]) -> None:
    """Warn of the bias factors that a method leaves out of what it learns, if it learns any."""
    others = [factor for factor in factors if factor not in learned]
    if not learned or not others:
        return
    names = " and ".join(repr(factor.name) for factor in others)
    why = "it learns the position only"
    if all(factor.by_page for factor in others):
        why = "what is the same for all documents of a list cancels in its list-wise loss"
    what = "bias factor" if len(others) == 1 else "bias factors"
    warnings.warn(f"{method} leaves out the {what} {names}: {why}", UltrWarning, stacklevel=4)

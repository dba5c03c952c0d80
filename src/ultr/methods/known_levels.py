"""The bias factors of a log in the levels that a ranker knows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from ultr.arrays import Doubles, Integers, Mask
from ultr.data import ragged
from ultr.data.bias_factor import OTHER, BiasFactor, midpoints
from ultr.data.click_log import ClickLog
from ultr.data.gathering import new_array
from ultr.errors import DataError, UltrWarning
from ultr.methods.factors import POSITION, Factor

NAMED = 3
"""Most levels that a warning names."""


def check_factors(log: ClickLog, factors: Sequence[Factor]) -> None:
    """Raise a `DataError` unless a log has all of these bias factors, as numbers where they are numeric."""
    given = {factor.name: factor for factor in log.factors}
    if missing := [repr(factor.name) for factor in factors if factor.name not in given]:
        raise DataError(
            f"the log has no bias factor {' and '.join(missing)}, which the ranker was trained with; "
            "prepare the log with it"
        )
    for factor in factors:
        other = given[factor.name]
        if bool(other.edges) > bool(factor.edges) or (factor.edges and np.isnan(_middles(other)).any()):
            kinds = ("numeric", "categorical") if factor.edges else ("categorical", "numeric")
            raise DataError(
                f"bias factor {factor.name!r} was {kinds[0]} in training, but is {kinds[1]} in the log; "
                "prepare both in the same way"
            )


def known_levels(log: ClickLog, factors: Sequence[Factor], *, learned: Collection[str]) -> tuple[Integers, ...]:
    """The levels of each factor that a ranker was trained on, [shown documents], whatever those of the log are.

    Categorical levels are matched by name, numeric ones by their place between the edges, and positions by number.
    For a level that was not there in training stands `other` if it was, else the level most often shown in training;
    for a position below all that were there, the lowest of them. A warning says so once, with counts. A factor that is
    missing is refused, and an additional one left out. None of this concerns factors that the ranker did not learn.
    """
    used = [factor for factor in factors if factor.name in learned]
    check_factors(log, used)
    given = {factor.name: factor for factor in log.factors}
    levels: list[Integers] = []
    remarks: list[str] = []
    for factor in factors:
        if factor.name not in given or (factor not in used and factor.name != POSITION):
            levels.append(np.broadcast_to(np.int32(factor.usual), log.documents.shape))
            continue
        numbers, foreign = _match(given[factor.name], factor)
        levels.append(_mapped(given[factor.name], numbers))
        if factor in used and foreign.any():
            remarks += _remarks(log, given[factor.name], factor, numbers, foreign)
    added = [repr(name) for name in given if name not in {factor.name for factor in factors}]
    if learned and added:
        remarks.append(f"left out: {' and '.join(added)}")
    if remarks:
        # From one place, so that Python's filters show it once however often a log is looked at.
        warnings.warn(
            f"the log has other bias factors or levels than the ranker was trained on: {'; '.join(remarks)}",
            UltrWarning,
            stacklevel=1,
        )
    return tuple(levels)


def _match(given: BiasFactor, known: Factor) -> tuple[Integers, Mask]:
    """For each level of a log's factor, the ranker's level in its place, and True if that is another one."""
    numbers = np.arange(len(given.levels))
    if known.name == POSITION:
        last = len(known.levels) - 1
        return np.minimum(numbers, last), numbers > last
    if known.edges:
        return np.searchsorted(known.edges, _middles(given), side="right"), _cut(given.edges, known.edges, numbers)
    places = {level: number for number, level in enumerate(known.levels)}
    found = np.array([places.get(level, -1) for level in given.levels], dtype=np.int64)
    return np.where(found < 0, places.get(OTHER, known.usual), found), found < 0


def _middles(factor: BiasFactor) -> Doubles:
    """A value of each level: the middle of its bin, or the number that its name is; NaN if that is none."""
    return midpoints(factor.edges) if factor.edges else np.array([_number(level) for level in factor.levels])


def _number(level: str) -> float:
    try:
        return float(level)
    except ValueError:
        return math.nan


def _cut(edges: Sequence[float], known: Sequence[float], levels: Integers) -> Mask:
    """True for bins between some edges that have one of the known edges inside; a single value has none."""
    if not edges:
        return np.zeros(len(levels), dtype=np.bool_)
    bounds = np.array([-math.inf, *edges, math.inf])
    below = np.searchsorted(known, bounds[1:], side="left")
    return below > np.searchsorted(known, bounds[:-1], side="right")


def _mapped(factor: BiasFactor, numbers: Integers) -> Integers:
    """The levels of a factor by their new numbers; those of a large log go to a file."""
    if (numbers == np.arange(len(numbers))).all():
        return factor.values
    levels = new_array(len(factor.values), np.int32)
    for part in ragged.slices(len(levels)):
        levels[part] = numbers[factor.values[part]]
    return levels


def _remarks(log: ClickLog, given: BiasFactor, known: Factor, numbers: Integers, foreign: Mask) -> Iterator[str]:
    """For each level that stands in for others: which, and how often they were shown."""
    shown = log.totals(given).impressions
    for level in np.unique(numbers[foreign & (shown > 0)]):
        others = np.flatnonzero(foreign & (shown > 0) & (numbers == level))
        names = ", ".join(given.levels[each] for each in others[:NAMED])
        more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
        yield (
            f"{known.name} {names}{more} ({shown[others].sum():,.0f} of {shown.sum():,.0f} shown documents) "
            f"taken as {known.levels[level]}"
        )

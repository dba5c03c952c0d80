"""Bias factors: the causes of bias of each shown document, the position first of all."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers, is_whole
from ultr.data.column_names import check_texts
from ultr.errors import DataError, OptionError, UltrWarning

OTHER = "other"
"""The level that rare values share."""
BINS = 20
"""Bins of a numeric factor whose edges are not given."""
MOST_NUMBERS = 100
"""A column of numbers with more different values than this is numeric, one with fewer is categorical."""
MOST_POSITIONS = 10_000
"""A position below this place is a mistake: each position is a level of a bias factor."""
_SLACK = 0.1
"""How far an edge may be from its quantile, in bins, to be a round number."""


@dataclass(frozen=True, eq=False)
class BiasFactor:
    """A cause of bias and its level for each shown document: categorical, or numeric in bins."""

    name: str
    values: Integers
    """int32 [shown documents], an index into `levels`."""
    levels: tuple[str, ...]
    edges: tuple[float, ...] = ()
    """Bounds between the levels of a numeric factor, ascending; empty = categorical.

    Level 0 lies below the first edge, level i from edge i - 1 (included) up to edge i, the last one above all edges.
    """

    def __post_init__(self) -> None:
        if self.values.ndim != 1 or not is_whole(self.values):
            raise DataError(f"the values of bias factor {self.name!r} must be a flat array of integers")
        if len(self.values) and not 0 <= self.values.min() <= self.values.max() < len(self.levels):
            raise DataError(f"the values of bias factor {self.name!r} must index its {len(self.levels)} levels")
        check_edges(self.name, self.levels, self.edges)


def check_edges(name: str, levels: Sequence[str], edges: Sequence[float]) -> None:
    """Raise a `DataError` unless edges are none, or lie between the levels of a numeric factor."""
    if edges and (len(edges) + 1 != len(levels) or any(np.diff(edges) <= 0)):
        raise DataError(f"bias factor {name!r} needs ascending edges, one fewer than its levels")


def position_factor(positions: Integers, *, count: int | None = None) -> BiasFactor:
    """The bias factor `position` from positions as shown, which start at 1."""
    if len(positions) and positions.min() < 1:
        raise DataError(f"positions start at 1, got {positions.min()}")
    count = int(positions.max(initial=1)) if count is None else count
    check_positions(count)
    return BiasFactor("position", (positions - 1).astype(np.int32), tuple(str(i + 1) for i in range(count)))


def check_positions(last: int) -> None:
    """Raise a `DataError` if lists reach further down than any list does, before there is a level for each place."""
    if last > MOST_POSITIONS:
        raise DataError(
            f"a document stands at position {last:,}, but positions end at {MOST_POSITIONS:,}; cut such lists off or "
            "leave them out"
        )


def categorical_factor(name: str, values: object) -> BiasFactor:
    """A bias factor whose levels are the texts of its values, numbers first and by size."""
    texts, numbers = np.unique(np.asarray(values, dtype=np.str_), return_inverse=True)
    levels = ordered_levels(texts.tolist())
    places = np.empty(len(levels), dtype=np.int32)
    places[np.searchsorted(texts, levels)] = np.arange(len(levels))
    return BiasFactor(name, places[numbers], tuple(levels))


def numeric_factor(name: str, values: object, *, edges: Iterable[float] | None = None, bins: int = BINS) -> BiasFactor:
    """A bias factor of numbers, such as pixels from the top, in bins between these edges.

    By default, the edges are round numbers near the quantiles of the values, so that `bins` bins hold about as many
    each; fewer where many values are the same. A missing value (NaN) belongs into no bin, and no level of its own could
    be put in order with the others, so it is refused.

    >>> numeric_factor("pixels", [0, 90, 130, 500], edges=[120, 340]).levels
    ('<120', '120-340', '>=340')
    """
    found = np.asarray(values, dtype=np.float64)
    if not np.isfinite(found).all():
        count = int((~np.isfinite(found)).sum())
        raise DataError(
            f"bias factor {name!r} has {count:,} missing or infinite values of {found.size:,}; "
            "fill them in, leave their lists out, or give it as texts, each of which is a level"
        )
    bounds = quantile_edges(found, bins=bins) if edges is None else checked_edges(name, edges)
    if not bounds:
        return categorical_factor(name, values)
    levels = np.searchsorted(bounds, found, side="right").astype(np.int32)
    return BiasFactor(name, levels, level_names(bounds), bounds)


def factor_of(name: str, values: object) -> BiasFactor:
    """A bias factor from a column, or from a factor that was made of one.

    More than `MOST_NUMBERS` different numbers are put into bins, and a warning says so; fewer, and all texts, are
    categories.
    """
    if isinstance(values, BiasFactor):
        return replace(values, name=name)
    if isinstance(values, list | tuple):
        check_texts((value for value in values if isinstance(value, str)), what=f"levels of {name!r}")
    column = np.asarray(values)
    if column.dtype.kind not in "iuf" or (count := len(np.unique(column))) <= MOST_NUMBERS:
        return categorical_factor(name, column)
    factor = numeric_factor(name, column)
    first, last = factor.levels[0], factor.levels[-1]
    warnings.warn(
        f"bias factor {name!r} has {count:,} different numbers, so it is kept in {len(factor.levels)} bins from "
        f"{first} to {last}; numeric_factor takes other edges, and texts are a level each",
        UltrWarning,
        stacklevel=4,
    )
    return factor


def ordered_levels(levels: Iterable[str]) -> list[str]:
    """Levels of a categorical factor in their order: numbers by size, then texts.

    >>> ordered_levels(["other", "10", "9"])
    ['9', '10', 'other']
    """
    return sorted(levels, key=lambda level: (_number(level), level))


def level_names(edges: Iterable[float]) -> tuple[str, ...]:
    """The names of the bins between some edges.

    >>> level_names([0.5, 10])
    ('<0.5', '0.5-10', '>=10')
    """
    texts = [np.format_float_positional(edge, trim="-") for edge in edges]
    dash = " to " if any(text.startswith("-") for text in texts) else "-"
    between = (f"{low}{dash}{high}" for low, high in pairwise(texts))
    return (f"<{texts[0]}", *between, f">={texts[-1]}")


def midpoints(edges: Sequence[float]) -> Doubles:
    """The middle of each bin between some edges; those at the ends count as wide as the bins next to them.

    >>> midpoints([10, 30, 40]).tolist()
    [0.0, 20.0, 35.0, 45.0]
    """
    bounds = np.asarray(edges, dtype=np.float64)
    widths = np.diff(bounds) if len(bounds) > 1 else np.ones(1)
    ends = np.concatenate([bounds[:1] - widths[0], bounds, bounds[-1:] + widths[-1]])
    middles: Doubles = (ends[1:] + ends[:-1]) / 2
    return middles


def checked_edges(name: str, edges: Iterable[float | str]) -> tuple[float, ...]:
    """`edges` as floats, or an error that says why they are none."""
    try:
        bounds = tuple(float(edge) for edge in edges)
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"the edges of bias factor {name!r} must be numbers such as 0, 300 and 600, got {edges!r}"
        ) from error
    if not bounds or not np.isfinite(bounds).all() or any(np.diff(bounds) <= 0):
        raise OptionError(f"the edges of bias factor {name!r} must be ascending numbers, at least one, got {bounds}")
    return bounds


def quantile_edges(values: Doubles, *, bins: int = BINS) -> tuple[float, ...]:
    """Round numbers near the quantiles of some values, ascending; no bin between them is without a value.

    >>> quantile_edges(np.arange(1000.0), bins=4)
    (250.0, 500.0, 750.0)
    """
    checks.integer("bins", bins, at_least=2)
    if not values.size:
        return ()
    inner = np.arange(1, bins)
    lows, highs = (np.quantile(values, (inner + shift) / bins) for shift in (-_SLACK, _SLACK))
    edges = {_roundest(low, high) for low, high in zip(lows.tolist(), highs.tolist(), strict=True)}
    counts = np.bincount(np.searchsorted(sorted(edges), values, side="right"), minlength=len(edges) + 1)
    # An edge that nothing lies below, down to the next one, would begin an empty bin.
    return tuple(edge for edge, below in zip(sorted(edges), counts, strict=False) if below)


def _roundest(low: float, high: float) -> float:
    """The number from low to high with the fewest digits, and of these the one nearest to the middle."""
    if low >= high:
        return high
    first = math.ceil(math.log10(max(abs(low), abs(high))))
    for exponent in range(first, math.floor(math.log10(high - low)) - 1, -1):
        step = 10.0**exponent
        for number in (round((low + high) / 2 / step), math.floor(high / step)):
            candidate = round(number * step, max(-exponent, 0))
            if low <= candidate <= high:
                return candidate
    return high


def _number(level: str) -> float:
    """The number that a level is, or infinity."""
    try:
        number = float(level)
    except ValueError:
        return math.inf
    return number if math.isfinite(number) else math.inf

"""What must hold for a click log, checked a span of lists at a time, so that no check takes memory for all of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ultr.arrays import Integers, is_whole
from ultr.data import ragged
from ultr.data.bias_factor import check_positions
from ultr.data.column_names import check_names, check_texts
from ultr.data.signal import CLICK
from ultr.errors import DataError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from ultr.data.click_log import ClickLog


Checked = TypeVar("Checked", bound="DataclassInstance")
LARGEST_SUM = 2**60
"""Sums of several such totals still fit into 64 bits."""


def trusted(value: Checked, **changes: object) -> Checked:
    """`dataclasses.replace` without a new check, for changes that keep what was checked when the value was made."""
    copy = object.__new__(type(value))
    # Fields only: what was cached of the old value may not hold for the new one.
    vars(copy).update({field.name: getattr(value, field.name) for field in fields(value)} | changes)
    return copy


def check_log(log: ClickLog) -> None:
    """Raise a `DataError` unless the arrays of a log fit together."""
    _check_shapes(log)
    if not all(_downwards(log)):
        raise DataError("the documents of a list must stand from the top down, one at a position")
    if len(log.documents) and not 0 <= log.documents.min() <= log.documents.max() < len(log.features):
        raise DataError(f"documents must be rows of the {len(log.features)} feature vectors")
    if log.lists and not 0 <= log.queries.min() <= log.queries.max() < len(log.query_ids):
        raise DataError(f"queries must index the {len(log.query_ids)} query ids")
    if log.lists and log.impressions.min() < 1:
        raise DataError("a list must have at least one impression")
    if not all(_possible_clicks(log)):
        raise DataError("a document cannot have fewer than no clicks or more clicks than impressions")
    if log.features.dtype.kind != "f" or log.query_ids.dtype.kind != "U":
        raise DataError(
            f"features must be floating-point numbers and query_ids texts, got {log.features.dtype} and "
            f"{log.query_ids.dtype}"
        )
    if log.features.ndim != 2 or log.features.shape[1] != len(log.feature_names):
        raise DataError(f"{log.features.shape} features, but {len(log.feature_names)} feature names")
    _check_texts(log)
    _check_sums(log)
    if log.pair_clicks is not None:
        _check_pairs(log, log.pair_clicks)
    _check_periods(log)
    _check_signals(log)
    _check_categories(log)
    if log.placements is not None and len(log.placements.propensities) != len(log.documents):
        placed = len(log.placements.propensities)
        raise DataError(f"{len(log.documents)} shown documents, but {placed} placement propensities")
    if log.grades is not None and len(log.grades.values) != len(log.features):
        raise DataError(f"{len(log.features)} documents, but {len(log.grades.values)} grades")


def whole_numbers(name: str, values: object, *, of: str = "a click log") -> Integers:
    """Values as int64; a `DataError` for those that are no whole numbers of this size."""
    given = np.asarray(values)
    try:
        with np.errstate(invalid="ignore"):
            numbers: Integers = given.astype(np.int64)
        if not given.size or np.array_equal(numbers, given):
            return numbers
    except (OverflowError, TypeError, ValueError):
        pass
    where = ""
    if given.dtype.kind == "f" and given.ndim == 1:
        row = int(np.flatnonzero(~np.isfinite(given) | (given != np.floor(given)) | (np.abs(given) >= 2.0**63))[0])
        where = f"; row {row} (from 0) {'is missing' if np.isnan(given[row]) else f'has {given[row]:g}'}"
    raise DataError(f"{name} of {of} must be whole numbers below 2^63{where}")


def _check_texts(log: ClickLog) -> None:
    check_names(log.feature_names, what="features")
    for factor in log.factors:
        check_texts((factor.name, *factor.levels), what="bias factors and their levels")
    for name, values in log.categories.items():
        check_texts((name, *values), what="categories")
    check_texts((signal.name for signal in log.signals), what="signals")


def _check_sums(log: ClickLog) -> None:
    """Counts so large that sums of them overflow are a mistake."""
    shown = sum(
        float(log.impressions[span.lists].astype(np.float64) @ span.lengths) for span in ragged.spans(log.offsets)
    )
    pairs = {} if log.pair_clicks is None else {"pair_clicks": log.pair_clicks}
    others = pairs | {f"signal {signal.name!r}": signal.totals for signal in log.signals}
    sums = {"shown documents": shown} | {name: float(each.sum(dtype=np.float64)) for name, each in others.items()}
    for name, total in sums.items():
        if total > LARGEST_SUM:
            raise DataError(
                f"the log counts {total:.3g} {name} in all, which is more than sums can hold; look for a wrong number "
                "among the impressions"
            )


def _check_shapes(log: ClickLog) -> None:
    for name in ("documents", "offsets", "impressions", "clicks", "queries"):
        _check_flat(name, getattr(log, name))
    shown = len(log.documents)
    ragged.check_offsets(log.offsets, shown, what="shown documents")
    if not log.factors or log.factors[0].name != "position":
        raise DataError("the first bias factor of a click log must be the position")
    check_positions(len(log.position.levels))
    if len({factor.name for factor in log.factors}) < len(log.factors):
        raise DataError("two bias factors of a click log have the same name")
    for name, values in [("clicks", log.clicks), *((f.name, f.values) for f in log.factors)]:
        if len(values) != shown:
            raise DataError(f"{shown} shown documents, but {len(values)} values of {name}")
    if len(log.impressions) != log.lists or len(log.queries) != log.lists:
        raise DataError(f"impressions and queries must have one value for each of {log.lists} lists")


def _check_flat(name: str, array: Integers) -> None:
    if array.ndim != 1 or not is_whole(array):
        raise DataError(f"{name} of a click log must be a flat array of integers, got {array.dtype}")


def _downwards(log: ClickLog) -> Iterator[bool]:
    """Whether every document of some lists stands below the one before it, span by span."""
    for span in ragged.spans(log.offsets):
        places = log.position.values[span.rows]
        below = places[1:] > places[:-1]
        firsts = np.cumsum(span.lengths)[:-1]
        below[firsts[(firsts > 0) & (firsts < len(places))] - 1] = True
        yield bool(below.all())


def _possible_clicks(log: ClickLog) -> Iterator[bool]:
    for span in ragged.spans(log.offsets):
        clicks = log.clicks[span.rows]
        yield not ((clicks < 0).any() or (clicks > span.spread(log.impressions)).any())


def _check_pairs(log: ClickLog, pair_clicks: Integers) -> None:
    _check_flat("pair_clicks", pair_clicks)
    pairs = ragged.pair_offsets(log.offsets)
    if len(pair_clicks) != pairs[-1]:
        raise DataError(f"{pairs[-1]} pairs of documents, but {len(pair_clicks)} values of pair_clicks")
    for span in ragged.spans(pairs):
        bounds = log.offsets[span.lists.start : span.lists.stop + 1]
        clicks = log.clicks[bounds[0] : bounds[-1]]
        first, second = (clicks[rows] for rows in ragged.pair_members(bounds - bounds[0]))
        both = pair_clicks[span.rows]
        if (both < 0).any() or (both > np.minimum(first, second)).any():
            raise DataError("two documents cannot have fewer than no clicks together or more than either has alone")
        if (first + second - both > span.spread(log.impressions)).any():
            raise DataError("two documents have so many clicks that more of them must have been together")


def _check_signals(log: ClickLog) -> None:
    names = [CLICK, *(signal.name for signal in log.signals)]
    if len(set(names)) < len(names):
        raise DataError(f"two signals of a click log have the same name: {', '.join(names)}")
    for signal in log.signals:
        if len(signal.totals) != len(log.documents):
            raise DataError(f"{len(log.documents)} shown documents, but {len(signal.totals)} of signal {signal.name!r}")


def _check_categories(log: ClickLog) -> None:
    for name, values in log.categories.items():
        if name not in log.feature_names:
            raise DataError(f"there are categories of {name!r}, which is no feature of the log")
        codes = log.features[:, log.feature_names.index(name)]
        # NaN, a missing value, is in no comparison.
        if ((codes < 0) | (codes >= len(values)) | (codes != np.floor(codes)) & ~np.isnan(codes)).any():
            raise DataError(f"feature {name!r} must hold the numbers of its {len(values)} categories, from 0")


def _check_periods(log: ClickLog) -> None:
    periods, count = log.periods, len(log.period_names)
    if periods is None:
        if count:
            raise DataError(f"{count} names of periods, but no periods")
        return
    _check_flat("periods", periods)
    if len(periods) != log.lists:
        raise DataError(f"{log.lists} lists, but {len(periods)} periods")
    if log.lists and not 0 <= periods.min() <= periods.max() < count:
        raise DataError(f"periods must index the {count} names of periods")

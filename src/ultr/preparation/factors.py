"""Bias factors of a raw log: categories, or numbers in bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ultr.data.bias_factor import MOST_NUMBERS, level_names, quantile_edges
from ultr.errors import DataError
from ultr.preparation import values
from ultr.preparation.columns import factor_column, factor_edges
from ultr.preparation.engine import Engine
from ultr.preparation.feature_columns import MOSTLY

MISSING = "missing"
"""The level of a categorical bias factor where a row has no value of it."""
MOST_LEVELS = 10_000
"""A categorical factor with more values than this, rare ones included, is an identifier by mistake."""
_SAMPLE = 10**6
"""Values that quantiles are taken of, about; of more, each counts for several."""


@dataclass(frozen=True)
class FactorColumn:
    """A column that is a cause of bias."""

    name: str
    edges: tuple[float, ...] = ()
    """Bounds between the bins of a numeric factor; none = categorical."""

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of a numeric factor."""
        return level_names(self.edges)

    def level(self, column: Any) -> Any:
        """The level of each row as text; null where a numeric factor has no value."""
        import ibis

        if not self.edges:
            return values.text(column).fill_null(MISSING)
        number = values.as_number(column)
        bins = [(number < edge, name) for edge, name in zip(self.edges, self.levels, strict=False)]
        return ibis.cases((values.absent(column) | number.isnull(), ibis.null("string")), *bins, else_=self.levels[-1])


@dataclass(frozen=True)
class FactorSummary:
    """Levels of one bias factor after rare values were merged."""

    name: str
    levels: int
    rare_values: int
    """Number of values that became the level `other`."""
    rare_impressions: int
    """Number of pages with them, a page with two of them counting twice."""
    edges: tuple[float, ...] = ()
    """Bounds between the bins of a numeric factor."""


def factor_columns(
    engine: Engine, table: Any, factors: Sequence[str], *, known: Mapping[str, tuple[float, ...]]
) -> tuple[FactorColumn, ...]:
    """The kinds of these columns; `known` are the edges in a log that this is added to, none if categorical.

    Numbers with many values are cut at the quantiles of all rows, unless edges are given with the name.
    """
    return tuple(_column(engine, table, each, known.get(factor_column(each))) for each in factors)


def _column(engine: Engine, table: Any, factor: str, known: tuple[float, ...] | None) -> FactorColumn:
    name, edges = factor_column(factor), factor_edges(factor)
    if known or edges:
        return FactorColumn(name, known or edges)
    column = table[name]
    # The list of a page has a value for each document.
    given = (column.unnest() if column.type().is_array() else column).name("value").as_table()
    count = engine.counts(given.aggregate(values=given.value.approx_nunique()))["values"]
    if count > MOST_NUMBERS and _is_measured(engine, given):
        if known is not None:
            raise DataError(
                f"bias factor {name!r} has so many values here that they are cut into bins, but the log that this is "
                f"added to has each value by itself; prepare all days again, with edges such as {name}:100,200,400"
            )
        return FactorColumn(name, _edges(engine, given))
    if count > MOST_LEVELS:
        raise DataError(
            f"bias factor {name!r} has about {count:,} values, more than {MOST_LEVELS:,}; give a column with few "
            f"values such as the device, or edges to cut numbers at, such as {name}:100,200,400"
        )
    return FactorColumn(name)


def _is_measured(engine: Engine, given: Any) -> bool:
    """True for numbers with fractions; in a CSV file they are text, of which nearly all must be numbers."""
    kind = given.value.type()
    if not kind.is_string():
        return bool(kind.is_floating() or kind.is_decimal())
    number, present = values.as_number(given.value), ~values.absent(given.value)
    found = engine.counts(
        given.aggregate(
            present=present.cast("int64").sum(),
            numbers=(present & number.notnull()).cast("int64").sum(),
            broken=(present & (number != number.round().cast("float64"))).cast("int64").sum(),
        )
    )
    return found["broken"] > 0 and found["numbers"] >= MOSTLY * found["present"]


def _edges(engine: Engine, given: Any) -> tuple[float, ...]:
    """Quantiles of a column of numbers, from how often each value occurs: the same in every engine."""
    counts = given.select(value=values.as_number(given.value).cast("float64"))
    counts = counts.filter(counts.value.notnull(), ~counts.value.isnan(), ~counts.value.isinf())
    found = engine.fetch(counts.group_by("value").agg(rows=counts.count().cast("int64")))
    numbers, rows = (found[name].to_numpy() for name in ("value", "rows"))
    order = np.argsort(numbers)
    scale = max(int(rows.sum()) // _SAMPLE, 1)
    return quantile_edges(np.repeat(numbers[order], -(-rows[order] // scale)))

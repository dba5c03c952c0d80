"""Bias factors: few enough values, and rare ones merged into one level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ultr.data.bias_factor import OTHER
from ultr.errors import DataError
from ultr.preparation import reasons
from ultr.preparation.engine import Engine

MOST_LEVELS = 10_000
"""A factor with more values than this, rare ones included, is an identifier by mistake."""


@dataclass(frozen=True)
class FactorSummary:
    """Levels of one bias factor after rare values were merged."""

    name: str
    levels: int
    rare_values: int
    """Number of values that became the level `other`."""
    rare_impressions: int
    """Number of pages with them, a page with two of them counting twice."""


def check_levels(counts: dict[str, int]) -> None:
    """Raise a `DataError` for a factor with far too many values."""
    for name, count in counts.items():
        if count > MOST_LEVELS:
            raise DataError(
                f"bias factor {name!r} has about {count:,} values, more than {MOST_LEVELS:,}; "
                "give a column with few values such as the device, or round it first"
            )


def merge_rare(engine: Engine, shown: Any, names: tuple[str, ...], *, rare: int) -> tuple[Any, list[FactorSummary]]:
    """Collapsed rows with the rare values of each factor as one, and what was merged.

    A value is rare if fewer than `rare` impressions have it.
    """
    import ibis

    summaries = []
    for number, name in enumerate(names):
        column = f"f{number}"
        fine = shown.filter(shown.fault == reasons.KEPT)
        lists = fine.select("page", column, "impressions").distinct()
        counts = lists.group_by(column).agg(pages=lists.impressions.sum().cast("int64"))
        counts = engine.keep(f"levels_{number}", counts)
        common = counts.filter(counts.pages >= rare)
        found = engine.row(
            counts.aggregate(
                values=counts.count(),
                common=(counts.pages >= rare).cast("int64").sum(),
                named=((counts.pages >= rare) & (counts[column] == OTHER)).cast("int64").sum(),
                pages=counts.pages.sum(where=counts.pages < rare),
            )
        )
        few = int(found["values"]) - int(found["common"] or 0)
        levels = int(found["common"] or 0) + (1 if few and not found["named"] else 0)
        summaries.append(FactorSummary(name, levels, few, int(found["pages"] or 0)))
        if few:
            marked = common.select(level=common[column], common=ibis.literal(value=True))
            joined = shown.left_join(marked, shown[column] == marked.level)
            merged = ibis.ifelse(joined.common.fill_null(False), joined[column], ibis.literal(OTHER))
            shown = joined.mutate(**{column: merged}).select(*shown.columns)
    return shown, summaries

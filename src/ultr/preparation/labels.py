"""A judge's labels of the documents, where the log has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ultr.arrays import Integers
from ultr.data.grades import Grades, ordered_levels
from ultr.errors import DataError
from ultr.preparation.documents import DocumentTable
from ultr.preparation.engine import Engine

MOST_GRADES = 20
"""More are a score or an id: what is examined by grade needs many documents of each."""


def labels_of(engine: Engine, rows: Any, name: str, *, what: str, old: Any = None) -> Any:
    """The labels of each document of a query: query, document, low and high, which differ if its rows do.

    All rows count, those that are put aside as well: a wrong position says nothing about the judge. `old` are the
    labels of a log that these are added to.
    """
    known = rows.filter(rows.label.notnull(), rows["query"].notnull(), rows.document.notnull())
    labels = known.select("query", "document", low="label", high="label")
    if old is not None:
        labels = labels.union(old.select(*labels.columns))
    labels = labels.group_by("query", "document").agg(low=labels.low.min(), high=labels.high.max())
    labels = engine.keep(labels)
    counts = engine.row(labels.aggregate(low=labels.low.nunique(), high=labels.high.nunique()))
    if (count := max(counts.values())) > MOST_GRADES:
        raise DataError(
            f"column {name!r} of {what} has {count:,} different labels, more than {MOST_GRADES}; "
            "give a column of grades such as 0 to 4, or leave the label out"
        )
    return labels


def grades_of(engine: Engine, documents: DocumentTable, used: Integers) -> tuple[Grades | None, int]:
    """The grades of the documents in use, if there are any, and how many have two that differ and count as none."""
    table = engine.fetch(documents.table.select("row", "low", "high").filter(documents.table.low.notnull()))
    rows = used[table["row"].to_numpy()]
    low, high = (np.array(table[name].to_pylist(), dtype=object)[rows >= 0] for name in ("low", "high"))
    same, rows = low == high, rows[rows >= 0]
    differ = int((~same).sum())
    if not same.any():
        return None, differ
    levels = ordered_levels(set(low[same].tolist()))
    place = {level: number for number, level in enumerate(levels)}
    values = np.full(int(used.max()) + 1, -1, dtype=np.int32)
    values[rows[same]] = [place[each] for each in low[same]]
    return Grades(values, levels), differ

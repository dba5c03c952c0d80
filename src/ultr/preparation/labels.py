"""A judge's labels of the documents, where the log has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ultr.data.grades import Grades, ordered_levels
from ultr.errors import DataError
from ultr.preparation.engine import Engine

MOST_GRADES = 20
"""More are a score or an id: what is examined by grade needs many documents of each."""


def labels_of(engine: Engine, rows: Any, name: str, *, what: str) -> Any:
    """The labels of each document of a query: query, document, low and high, which differ if its rows do.

    All rows count, those that are put aside as well: a wrong position says nothing about the judge.
    """
    known = rows.filter(rows.label.notnull(), rows["query"].notnull(), rows.document.notnull())
    labels = known.group_by("query", "document").agg(low=known.label.min(), high=known.label.max())
    labels = engine.keep("labels", labels)
    counts = engine.row(labels.aggregate(low=labels.low.nunique(), high=labels.high.nunique()))
    if (count := max(counts.values())) > MOST_GRADES:
        raise DataError(
            f"column {name!r} of {what} has {count:,} different labels, more than {MOST_GRADES}; "
            "give a column of grades such as 0 to 4, or leave the label out"
        )
    return labels


def grades_of(engine: Engine, documents: Any, labels: Any) -> tuple[Grades | None, int]:
    """The grades of the numbered documents, if there are any, and how many have two that differ and count as none."""
    judged = documents.join(labels, ["query", "document"])
    differ = engine.count(judged.filter(judged.low != judged.high))
    table = engine.fetch(judged.filter(judged.low == judged.high).select("row", "low"))
    if not table.num_rows:
        return None, differ
    texts = table["low"].to_pylist()
    levels = ordered_levels(set(texts))
    place = {level: number for number, level in enumerate(levels)}
    values = np.full(engine.count(documents), -1, dtype=np.int32)
    values[table["row"].to_numpy()] = [place[each] for each in texts]
    return Grades(values, levels), differ

"""The features that moved the documents of a list up or down."""

from __future__ import annotations

import numpy as np

from ultr.arrays import Integers
from ultr.data.click_log import ClickLog
from ultr.explanation import explain
from ultr.reporting.model import Model
from ultr.train.bounded import Bounded

SHOWN = 2
"""Features of each document."""


def reasons(model: Model, log: ClickLog, documents: Integers) -> list[dict[str, float]]:
    """For each document of a list as given, rows of the log's features: contributions of those that moved it most.

    Nothing for a safe ranker, whose order no sum over features explains.
    """
    if isinstance(model.ranker.model.ranking, Bounded):
        return [{} for _ in documents]
    found = explain(model.ranker, log.features[documents])
    return [
        {found.feature_names[column]: float(found.contributions[number, column]) for column in columns}
        for number in np.argsort(found.candidates).tolist()
        for columns in [found.largest(number, SHOWN)]
    ]


def in_words(moved: dict[str, float]) -> str:
    """The reasons of one document.

    >>> in_words({"age": -2.0, "price": 0.5})
    'age -2, price +0.5'
    """
    return ", ".join(f"{name} {by:+.2g}" for name, by in moved.items())

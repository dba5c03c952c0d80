"""The features that moved the documents of a list up or down."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr.arrays import Integers
from ultr.data.click_log import ClickLog
from ultr.explanation import explain
from ultr.reporting.model import Model
from ultr.scoring.explanation import Explanation
from ultr.train.bounded import Bounded

SHOWN = 2
"""Features of each document."""


@dataclass(frozen=True, eq=False)
class Reasons:
    """Why a model ranks the documents of a list as it does."""

    explanation: Explanation | None
    """Explanation of the whole list; None for a safe ranker, whose order no sum over features explains."""
    documents: int

    @classmethod
    def of(cls, model: Model, log: ClickLog, documents: Integers) -> Reasons:
        """Those for a list of these documents, rows of the log's features."""
        if isinstance(model.ranker.model.ranking, Bounded):
            return cls(None, len(documents))
        return cls(explain(model.ranker, log.features[documents]), len(documents))

    def numbers(self) -> list[dict[str, float]]:
        """For each document as given, the contributions of the features that moved it most."""
        found = self.explanation
        if found is None:
            return [{} for _ in range(self.documents)]
        return [
            {found.feature_names[column]: float(found.contributions[number, column]) for column in columns}
            for number in np.argsort(found.candidates).tolist()
            for columns in [found.largest(number, SHOWN)]
        ]

    def texts(self) -> list[str]:
        """The same for people."""
        return [", ".join(f"{name} {moved:+.2g}" for name, moved in each.items()) for each in self.numbers()]

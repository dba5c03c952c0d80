"""The features that moved the documents of a list up or down."""

from __future__ import annotations

from dataclasses import dataclass

from ultr.arrays import Integers
from ultr.data.click_log import ClickLog
from ultr.explanation import explain
from ultr.reporting.model import Model
from ultr.scoring.explanation import Explanation

SHOWN = 2
"""Features of each document."""


@dataclass(frozen=True, eq=False)
class Reasons:
    """Why a model ranks the documents of a list as it does."""

    explanation: Explanation
    """Of the whole list, the best document first."""

    @classmethod
    def of(cls, model: Model, log: ClickLog, documents: Integers) -> Reasons:
        """Those for a list of these documents, rows of the log's features."""
        return cls(explain(model.ranker, log.features[documents]))

    def texts(self) -> list[str]:
        """The features that moved each document most, the best document first."""
        names, moved = self.explanation.feature_names, self.explanation.contributions
        return [
            ", ".join(f"{names[column]} {moved[number, column]:+.2g}" for column in self._columns(number))
            for number in range(len(moved))
        ]

    def numbers(self) -> list[dict[str, float]]:
        """The same for machines: contributions by feature."""
        names, moved = self.explanation.feature_names, self.explanation.contributions
        return [
            {names[column]: float(moved[number, column]) for column in self._columns(number)}
            for number in range(len(moved))
        ]

    def _columns(self, number: int) -> list[int]:
        return self.explanation.largest(number, SHOWN)

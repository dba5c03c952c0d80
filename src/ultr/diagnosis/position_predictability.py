"""Correlation of features and position, which the logging ranker causes."""

from __future__ import annotations

from dataclasses import dataclass

from ultr.bias.predictability import Predictability, position_predictability
from ultr.data.click_log import ClickLog
from ultr.data.missing_values import missing_shares
from ultr.errors import DataError
from ultr.pages import Section, Verdict, sentences

STRONG, VERY_STRONG = 0.5, 0.9
"""Shares of the variance of position that features explain."""


@dataclass(frozen=True)
class PositionPredictability:
    """Predictability of the position from features, or the reason why it is not known."""

    predictability: Predictability | None
    problem: str
    missing: bool = False
    """True if features have missing values."""

    @classmethod
    def of(cls, log: ClickLog, *, seed: int = 0) -> PositionPredictability:
        """The predictability of positions in a log; not known for one without features."""
        if not log.features.shape[1]:
            return cls(None, "the log has no features")
        try:
            found = position_predictability(log, seed=seed)
            return cls(found, "", missing=bool(missing_shares(log.features, log.feature_names)))
        except DataError as error:
            return cls(None, str(error))

    def section(self) -> Section:
        """The answer on whether features give the position away."""
        name, question = "features and position", "Do the features give the position away?"
        if self.predictability is None:
            advice = (
                "Prepare the log with --features or --features-from; a ranker needs them."
                if "features" in self.problem
                else ""
            )
            return Section(question, sentences([self.problem]), Verdict.UNKNOWN, advice, name=name)
        share = self.predictability.r_squared
        filled = ", the median where one is missing," if self.missing else ""
        answer = [
            f"a linear function of the features{filled} explains {max(share, 0):.0%} of where documents stand on pages "
            f"it has not seen; knowing each document would explain {self.predictability.ceiling:.0%}"
        ]
        verdict, advice = Verdict.GOOD, ""
        if share >= STRONG:
            verdict = Verdict.CAREFUL if share < VERY_STRONG else Verdict.BAD
            answer.append("a model can then hide position bias in relevance, and still predict every click")
            advice = (
                "Take features out that hold the old ranker's score or place, log some random swaps, and do not choose "
                "a model by click likelihood alone."
            )
        return Section(question, sentences(answer), verdict, advice, numbers=vars(self.predictability), name=name)

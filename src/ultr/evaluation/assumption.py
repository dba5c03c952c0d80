"""The assumption of counterfactual values: one number for each position is enough for the clicks of a log."""

from __future__ import annotations

from dataclasses import dataclass

from ultr.bias import ScalarTest, scalar_test
from ultr.data.click_log import ClickLog
from ultr.pages import sentences

SAMPLES = 199
"""Draws of the rank test, as many as the doctor takes, so that both say the same."""


@dataclass(frozen=True)
class Assumption:
    """The log's own evidence for or against one number for each position."""

    rejected: bool | None
    """True if one number for each position is not enough; None where the clicks do not tell."""
    p_value: float | None
    sentence: str

    def beside(self, *, adjusted: bool) -> str:
        """The sentence for a comparison, milder if answers are `adjusted` for bias that differs between documents."""
        if not self.rejected:
            return self.sentence
        follows = (
            "The answers by value allow for that, as far as documents ranked high and low show it"
            if adjusted
            else "Differences in value are off in size and may name the worse ranker, above all with given propensities"
        )
        return f"{self.sentence} {follows}; the one that predicts clicks better need not rank better."

    @classmethod
    def of_log(cls, log: ClickLog, *, seed: int = 0) -> Assumption:
        """The result of `ultr.bias.scalar_test` by clicks alone, as all else in a comparison is."""
        return cls.of_test(scalar_test(log, samples=SAMPLES, seed=seed))

    @classmethod
    def of_test(cls, found: ScalarTest) -> Assumption:
        """The result of a test that has been made already."""
        p_value = None if found.test is None else found.test.p_values[0]
        return cls(found.rejected, p_value, sentences([found.words]))

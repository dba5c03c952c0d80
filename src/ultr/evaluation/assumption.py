"""The assumption of counterfactual values: one number for each position is enough for the clicks of a log."""

from __future__ import annotations

from dataclasses import dataclass

from ultr.bias import ScalarTest, scalar_test
from ultr.bias.stopping import Stopping
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
    stopping: float = 0.0
    """The share of users who look at nothing further after a click, if it is beyond doubt that some do."""

    @property
    def stopped(self) -> str:
        """Words on users who stop after a click, to begin a sentence with; empty if nothing says that they do."""
        if not self.stopping:
            return ""
        who = "users stop" if self.stopping == 1 else f"about {self.stopping:.0%} of the users stop"
        return f"{who} after a click, so a better order lets them stop sooner and need not bring more clicks"

    def beside(self, *, adjusted: bool, differing: bool = False) -> str:
        """The sentence for a comparison, milder if answers are `adjusted` for bias that differs between documents.

        With `differing`, some answers found such bias, whatever the test says.
        """
        stopped = f"{self.stopped}: go by the sign of a difference, and not by its size" if self.stopping else ""
        said = " ".join(filter(None, [self.sentence, sentences([stopped])]))
        if not self.rejected:
            found = (
                "Documents ranked high and low show different bias all the same, and the answers by value allow for it"
            )
            return f"{said} {found} where it shows." if differing else said
        follows = (
            "The answers by value allow for that, as far as documents ranked high and low show it"
            if adjusted
            else "Differences in value are off in size and may name the worse ranker, above all with given propensities"
        )
        return f"{said} {follows}; the one that predicts clicks better need not rank better."

    @classmethod
    def of_log(cls, log: ClickLog, *, seed: int = 0) -> Assumption:
        """The result of `ultr.bias.scalar_test` by clicks alone, as all else in a comparison is."""
        return cls.of_test(scalar_test(log, samples=SAMPLES, seed=seed), Stopping.of(log, seed=seed))

    @classmethod
    def of_test(cls, found: ScalarTest, stopping: Stopping | None = None) -> Assumption:
        """The result of a test that has been made already, and of a look at users who stop."""
        p_value = None if found.test is None else found.test.p_values[0]
        return cls(found.rejected, p_value, sentences([found.words]), 0.0 if stopping is None else stopping.known)

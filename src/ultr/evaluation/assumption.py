"""The assumption of counterfactual values: one propensity for each position describes the clicks of a log."""

from __future__ import annotations

from dataclasses import dataclass

from ultr.bias import ScalarTest, scalar_test
from ultr.data.click_log import ClickLog

SAMPLES = 199
"""Draws of the rank test, as many as the doctor takes, so that both say the same."""


@dataclass(frozen=True)
class Assumption:
    """The log's own evidence for or against one propensity for each position."""

    rejected: bool | None
    """True if positions bias documents in more than one way; None where that cannot be tested."""
    p_value: float | None
    sentence: str

    def beside(self, *, adjusted: bool) -> str:
        """The sentence for a comparison, milder if answers are `adjusted` for bias that differs between documents."""
        if not (self.rejected and adjusted and self.p_value is not None):
            return self.sentence
        return (
            f"{_more_than_one(self.p_value)}. The answers by value allow for that, as far as documents ranked high and "
            "low show it; the one that predicts clicks better need not rank better."
        )

    @classmethod
    def of_log(cls, log: ClickLog, *, seed: int = 0) -> Assumption:
        """The result of `ultr.bias.scalar_test` by clicks alone, as all else in a comparison is."""
        return cls.of_test(scalar_test(log, samples=SAMPLES, seed=seed))

    @classmethod
    def of_test(cls, found: ScalarTest) -> Assumption:
        """The result of a test that has been made already."""
        if found.test is None:
            problem = (found.reason or "").partition(";")[0]
            unknown = f"Whether one propensity for each position describes these clicks cannot be tested: {problem}."
            return cls(None, None, unknown)
        p = found.test.p_values[0]
        if found.answer == "no":
            wrong = (
                f"{_more_than_one(p)}, so one propensity for each position "
                "does not describe these clicks: differences in value are off in size and may name the worse ranker, "
                "above all with given propensities, and the one that predicts clicks better need not rank better."
            )
            return cls(True, p, wrong)
        power = found.test.power or 0.0
        nothing = f"The log does not speak against one propensity for each position (p = {p:.2f})"
        if found.answer == "yes":
            return cls(False, p, f"{nothing}, and trust bias would have been found with a chance of {power:.0%}.")
        return cls(None, p, f"{nothing}, but trust bias would have been found with a chance of {power:.0%} only.")


def _more_than_one(p_value: float) -> str:
    return f"Positions bias documents in more than one way (p = {p_value:.2f})"

"""Whether one propensity for each position describes the clicks of a log, which counterfactual values rest on."""

from __future__ import annotations

from dataclasses import dataclass

from ultr.bias import Cells, click_groups, document_rank_test
from ultr.data.click_log import ClickLog
from ultr.errors import DataError

SAMPLES = 99
"""Draws of the rank test: enough for a level of 5 %."""


@dataclass(frozen=True)
class Assumption:
    """What the log itself says about one propensity for each position."""

    rejected: bool | None
    """Whether positions bias documents in more than one way; None where that cannot be tested."""
    p_value: float | None
    sentence: str

    @classmethod
    def of_log(cls, log: ClickLog, *, seed: int = 0) -> Assumption:
        """The rank test on documents shown at several positions, in groups by the clicks on half of the impressions."""
        groups, cells = click_groups(Cells.of_log(log), seed=seed)
        try:
            test = document_rank_test(cells, groups, samples=SAMPLES, largest=2, seed=seed)
        except DataError as error:
            unknown = f"Whether one propensity for each position describes these clicks cannot be tested: {error}."
            return cls(None, None, unknown)
        p = test.p_values[0]
        if test.scalar:
            return cls(False, p, f"The log does not speak against one propensity for each position (p = {p:.2f}).")
        found = (
            f"Positions bias documents in more than one way (p = {p:.2f}), so one propensity for each position does "
            "not describe these clicks: differences in value are off in size and, with given propensities, may name "
            "the worse ranker, and the one that foretells clicks better need not rank better."
        )
        return cls(True, p, found)

"""The gate: whether a new ranker takes the place of the one that is served, and the reason in one sentence."""

from __future__ import annotations

from dataclasses import dataclass

from ultr.updating.judgement import Judgement


@dataclass(frozen=True)
class Decision:
    """A decision with its reason."""

    promote: bool
    reason: str


@dataclass(frozen=True)
class PromotionGate:
    """Bounds that a new ranker has to keep to.

    It is promoted if the lower bound of its gain is not below minus the tolerance. So a ranker that is as good as the
    served one is promoted where the log can tell so, and one of which the log says too little is not.
    """

    tolerance: float
    """Loss that the lower bound of the gain may show, as a share of what the compared pages had."""
    largest_shift: float
    """Largest median factor by which exposure may move."""

    def decide(self, found: Judgement) -> Decision:
        """The decision on what was measured."""
        if found.troubles:
            names = " and ".join(found.troubles)
            return Decision(promote=False, reason=f"the doctor finds {names} bad: {' '.join(found.troubles.values())}")
        if found.gain is None:
            return Decision(promote=False, reason=f"the gain cannot be measured: {found.why}")
        gain = f"the gain in {found.counted} is {found.gain.mean:+.1%}, {found.interval}"
        if not found.gain.low >= -self.tolerance:
            return Decision(promote=False, reason=f"{gain}, and a loss of {self.tolerance:.1%} is tolerated at most")
        if not found.shift.median <= self.largest_shift:
            return Decision(
                promote=False,
                reason=f"the exposure of half of the documents moves by a factor of {found.shift.median:.2f} or more "
                f"against what is served, and {self.largest_shift:g} is allowed",
            )
        return Decision(promote=True, reason=f"{gain}, which is not below the tolerated loss of {self.tolerance:.1%}")

"""The gate: whether a new ranker takes the place of the one that is served, and the reason in one sentence."""

from __future__ import annotations

from ultr.updating.judgement import Judgement


def promotes(found: Judgement, *, tolerance: float, largest_shift: float) -> tuple[bool, str]:
    """True if what was measured lets the new ranker be served, and the reason.

    It does if the lower bound of its gain is not below minus the `tolerance`, a share of what the compared pages had,
    and the median factor by which exposure moves is not above `largest_shift`. So a ranker that is as good as the
    served one is promoted where the log can tell so, and one of which the log says too little is not.
    """
    if found.troubles:
        names = " and ".join(found.troubles)
        return False, f"the doctor finds {names} bad: {' '.join(found.troubles.values())}"
    if found.gain is None:
        return False, f"the gain cannot be measured: {found.why}"
    gain = f"the gain in {found.counted} is {found.gain.mean:+.1%}, {found.interval}"
    if not found.gain.low >= -tolerance:
        return False, f"{gain}, and a loss of {tolerance:.1%} is tolerated at most"
    if not found.shift.median <= largest_shift:
        return False, (
            f"the exposure of half of the documents moves by a factor of {found.shift.median:.2f} or more against what "
            f"is served, and {largest_shift:g} is allowed"
        )
    return True, f"{gain}, which is not below the tolerated loss of {tolerance:.1%}"

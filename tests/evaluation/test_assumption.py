"""One propensity for each position: what the test of a log is taken to mean."""

from __future__ import annotations

import numpy as np
import pytest

from ultr.bias import RankTest, ScalarTest
from ultr.bias.scalar_test import ENOUGH_POWER
from ultr.evaluation.assumption import Assumption


def found_by(dimension: int, power: float | None, p: float) -> ScalarTest:
    test = RankTest(np.eye(2), (1.0,), (p, 0.9), dimension, 0.05, power)
    return ScalarTest(test, "documents by clicks", 5, 50, 7, None, None, ())


@pytest.mark.parametrize(
    ("dimension", "power", "rejected", "said"),
    [
        (2, 0.99, True, "Positions bias documents in more than one way (p = 0.03), so "),
        (2, 0.0, True, "Positions bias documents in more than one way (p = 0.03), so "),
        (1, ENOUGH_POWER, False, "(p = 0.03), and trust bias would have been found with a chance of 80%."),
        (1, ENOUGH_POWER - 1e-9, None, "(p = 0.03), but trust bias would have been found with a chance of 80% only."),
        (1, 0.42, None, "(p = 0.03), but trust bias would have been found with a chance of 42% only."),
        (1, None, None, "(p = 0.03), but trust bias would have been found with a chance of 0% only."),
    ],
)
def test_not_rejected_means_something_only_with_enough_power(
    dimension: int,
    power: float | None,
    rejected: bool | None,  # noqa: FBT001
    said: str,
) -> None:
    found = Assumption.of_test(found_by(dimension, power, 0.0347))
    assert found.rejected is rejected
    assert found.p_value == 0.0347
    assert said in found.sentence


def test_a_test_that_could_not_be_made_says_why_and_decides_nothing() -> None:
    untested = ScalarTest(None, None, 0, 0, 0, None, "no document was shown at two positions; log some swaps", ())
    found = Assumption.of_test(untested)
    assert (found.rejected, found.p_value) == (None, None)
    assert found.sentence.endswith("cannot be tested: no document was shown at two positions.")

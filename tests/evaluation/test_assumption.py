"""One propensity for each position: what the test of a log is taken to mean."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np
import pytest

from ultr.bias import RankTest, ScalarTest
from ultr.bias.scalar_test import ENOUGH_POWER
from ultr.diagnosis import diagnose
from ultr.evaluation.assumption import Assumption
from ultr.reporting.inputs import ReportInputs

MODULE = import_module("ultr.evaluation.assumption")


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


def test_enough_draws_are_made_for_the_level_to_be_met_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A p-value by n draws is a multiple of 1 / (n + 1), of which 5 % must be one."""
    asked = []

    def scalar_test(log: object, **options: object) -> ScalarTest:
        asked.append((log, options))
        return found_by(2, None, 0.01)

    monkeypatch.setattr(MODULE, "scalar_test", scalar_test)
    log: Any = object()
    assert Assumption.of_log(log, seed=3).rejected is True
    assert asked == [(log, {"samples": MODULE.SAMPLES, "seed": 3})]
    assert 0.05 * (MODULE.SAMPLES + 1) == 10
    # The doctor says the same, and so does a report.
    assert signature(diagnose).parameters["draws"].default == ReportInputs.draws == MODULE.SAMPLES


@pytest.mark.parametrize(
    ("dimension", "power", "sentence"),
    [
        (
            2,
            0.9,
            "Positions bias documents in more than one way (p = 0.03), so one propensity for each position does not "
            "describe these clicks: differences in value are off in size and may name the worse ranker, above all with "
            "given propensities, and the one that predicts clicks better need not rank better.",
        ),
        (
            1,
            0.9,
            "The log does not speak against one propensity for each position (p = 0.03), and trust bias would have "
            "been found with a chance of 90%.",
        ),
        (
            1,
            0.5,
            "The log does not speak against one propensity for each position (p = 0.03), but trust bias would have "
            "been found with a chance of 50% only.",
        ),
    ],
)
def test_the_assumption_in_whole_sentences(dimension: int, power: float, sentence: str) -> None:
    assert Assumption.of_test(found_by(dimension, power, 0.0347)).sentence == sentence

"""One number for each position: what the test of a log is taken to mean."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np
import pytest

from ultr.bias import RankTest, ScalarTest
from ultr.bias.scalar_test import ENOUGH_POWER
from ultr.bias.stopping import CLEAR, Stopping
from ultr.clicks.registry import click_model
from ultr.datasets.letor_like import letor_like
from ultr.diagnosis import diagnose
from ultr.diagnosis.bias_dimension import BiasDimension
from ultr.evaluation.assumption import Assumption
from ultr.reporting.inputs import ReportInputs
from ultr.simulation.log import simulate

MODULE = import_module("ultr.evaluation.assumption")
POWER = "trust bias as it was published would have been found with a chance of"


def found_by(dimension: int, power: float | None, p: float) -> ScalarTest:
    test = RankTest(np.eye(2), (1.0,), (p, 0.9), dimension, 0.05, power)
    return ScalarTest(test, "documents by clicks", 5, 50, 7, None, None, ())


@pytest.mark.parametrize(
    ("dimension", "power", "rejected", "said"),
    [
        (2, 0.99, True, "One number for each position is not enough (p = 0.035): groups of documents lose clicks by "),
        (2, 0.0, True, "One number for each position is not enough (p = 0.035): groups of documents lose clicks by "),
        (1, ENOUGH_POWER, False, f"(p = 0.035), and {POWER} 80%."),
        (1, ENOUGH_POWER - 1e-9, None, f"(p = 0.035), but {POWER} 80% only, so that says little."),
        (1, 0.42, None, f"(p = 0.035), but {POWER} 42% only, so that says little."),
        (1, None, None, f"(p = 0.035), but {POWER} 0% only, so that says little."),
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
    assert found.sentence == (
        "Whether one number for each position is enough cannot be tested: no document was shown at two positions."
    )
    assert found.beside(adjusted=True) == found.beside(adjusted=False) == found.sentence


def test_enough_draws_are_made_for_the_level_to_be_met_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A p-value by n draws is a multiple of 1 / (n + 1), of which 5 % must be one."""
    asked = []

    def scalar_test(log: object, **options: object) -> ScalarTest:
        asked.append((log, options))
        return found_by(2, None, 0.01)

    monkeypatch.setattr(MODULE, "scalar_test", scalar_test)
    monkeypatch.setattr(Stopping, "of", lambda *_, **__: None)
    log: Any = object()
    assert Assumption.of_log(log, seed=3).rejected is True
    assert asked == [(log, {"samples": MODULE.SAMPLES, "seed": 3})]
    assert 0.05 * (MODULE.SAMPLES + 1) == 10
    # The doctor says the same, and so does a report.
    assert signature(diagnose).parameters["draws"].default == ReportInputs.draws == MODULE.SAMPLES


NOT_ENOUGH = (
    "One number for each position is not enough (p = 0.035): groups of documents lose clicks by position in different "
    "ways."
)
NEED_NOT = "the one that predicts clicks better need not rank better."


@pytest.mark.parametrize(
    ("dimension", "power", "adjusted", "sentence"),
    [
        (
            2,
            0.9,
            False,
            f"{NOT_ENOUGH} Differences in value are off in size and may name the worse ranker, above all with given "
            f"propensities; {NEED_NOT}",
        ),
        (
            2,
            0.9,
            True,
            f"{NOT_ENOUGH} The answers by value allow for that, as far as documents ranked high and low show it; "
            f"{NEED_NOT}",
        ),
        *(
            (1, power, adjusted, f"Nothing speaks against one number for each position (p = 0.035), {so}.")
            for power, so in ((0.9, f"and {POWER} 90%"), (0.5, f"but {POWER} 50% only, so that says little"))
            for adjusted in (False, True)
        ),
    ],
)
def test_the_assumption_in_whole_sentences(dimension: int, power: float, adjusted: bool, sentence: str) -> None:  # noqa: FBT001
    assert Assumption.of_test(found_by(dimension, power, 0.0347)).beside(adjusted=adjusted) == sentence


@pytest.mark.parametrize("power", [0.9, 0.5])
def test_answers_that_find_other_bias_are_not_contradicted_by_the_test(power: float) -> None:
    found = Assumption.of_test(found_by(1, power, 0.0347))
    assert found.beside(adjusted=False, differing=True) == (
        f"{found.sentence} Documents ranked high and low show different bias all the same, and the answers by value "
        "allow for it where it shows."
    )


@pytest.mark.parametrize(("dimension", "power"), [(2, 0.9), (1, 0.9), (1, 0.5)])
def test_a_comparison_says_of_the_test_what_the_doctor_says(dimension: int, power: float) -> None:
    test = found_by(dimension, power, 0.0347)
    said = Assumption.of_test(test).sentence.removesuffix(".")
    assert BiasDimension(test).section().answer.startswith(said)


@pytest.mark.parametrize(
    ("stopping", "share", "said"),
    [
        (None, 0.0, ""),
        (Stopping(CLEAR + 0.199, 0.1, once=False), 0.0, ""),
        (Stopping(CLEAR + 0.201, 0.1, once=False), 0.301, "about 30% of the users stop after a click"),
        (Stopping(0.9, 0.05, once=True), 1.0, "users stop after a click"),
    ],
)
def test_the_size_of_a_difference_is_not_believed_where_users_stop_beyond_doubt(
    stopping: Stopping | None, share: float, said: str
) -> None:
    found = Assumption.of_test(found_by(1, 0.9, 0.0347), stopping)
    assert found.stopping == pytest.approx(share)
    assert found.stopped == (
        f"{said}, so a better order lets them stop sooner and need not bring more clicks" * bool(said)
    )
    for adjusted in (False, True):
        told = found.beside(adjusted=adjusted)
        assert told.startswith(found.sentence)
        assert told.endswith(": go by the sign of a difference, and not by its size.") is bool(said)
    also = Assumption.of_test(found_by(2, 0.9, 0.0347), stopping).beside(adjusted=False)
    assert ("need not bring more clicks: go by the sign" in also) is bool(said)
    assert also.endswith(NEED_NOT)


@pytest.mark.parametrize(("clicks", "stop"), [("cascade", True), ("position-based", False)])
def test_users_who_stop_are_seen_in_the_log_that_rankers_are_compared_on(clicks: str, stop: bool) -> None:  # noqa: FBT001
    lists = letor_like(train_queries=150, validation_queries=1, test_queries=1).train
    log = simulate(
        lists,
        click_model(clicks),
        scores=lists.features[:, 1].astype(np.float64),
        impressions=30_000,
        rankings=4,
        noise=0.5,
    )
    assert (Assumption.of_log(log).stopping == 1) is stop
    assert (Assumption.of_log(log).stopping == 0) is not stop

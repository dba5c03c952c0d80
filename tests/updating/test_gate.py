"""The gate from both sides."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ultr.metrics import Interval
from ultr.metrics.exposure import ExposureShift
from ultr.updating import Judgement, promotes

BOUNDS = {"tolerance": 0.01, "largest_shift": 1.5}
CALM = ExposureShift(10.0, 10.0, 1.5)
EQUAL = Judgement(Interval(0.0, -0.01, 0.01), "cannot tell", CALM)


@pytest.mark.parametrize(
    ("low", "promoted"), [(0.02, True), (0.0, True), (-0.01, True), (-0.0101, False), (-0.5, False), (math.nan, False)]
)
def test_the_lower_bound_decides_whatever_the_mean(low: float, promoted: bool) -> None:  # noqa: FBT001
    for mean in (max(low, 0.0) + 0.5, low):
        found = replace(EQUAL, gain=Interval(mean, low, 1.0))
        assert promotes(found, **BOUNDS)[0] is promoted
    assert "tolerated" in promotes(found, **BOUNDS)[1]


def test_exposure_may_move_up_to_the_bound_in_the_median() -> None:
    assert promotes(EQUAL, **BOUNDS)[0]
    promoted, reason = promotes(replace(EQUAL, shift=ExposureShift(2.0, 2.0, 1.51)), **BOUNDS)
    assert not promoted
    assert "factor of 1.51 or more against what is served, and 1.5 is allowed" in reason


def test_what_cannot_be_measured_is_not_promoted() -> None:
    promoted, reason = promotes(replace(EQUAL, gain=None, why="cannot tell: too little support: 3 queries"), **BOUNDS)
    assert not promoted
    assert "cannot be measured: cannot tell: too little support: 3 queries" in reason


def test_a_bad_log_is_not_promoted_from_however_good_the_gain() -> None:
    better = replace(EQUAL, gain=Interval(0.3, 0.2, 0.4))
    assert promotes(better, **BOUNDS)[0]
    promoted, reason = promotes(replace(better, troubles={"volume": "12 clicks are too few."}), **BOUNDS)
    assert not promoted
    assert reason == "the doctor finds volume bad: 12 clicks are too few."

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.diagnosis.logs import THETA, thorough

from ultr.bias.curves import BiasCurves, Curve
from ultr.diagnosis import Verdict
from ultr.diagnosis.position_bias import PositionBias


def curve(name: str, values: list[float], *, spread: float = 0.1) -> Curve:
    array = np.array(values)
    return Curve(name, array, array * (1 - spread), array * (1 + spread), 0.0, None)


def bias(*curves: Curve) -> PositionBias:
    return PositionBias(BiasCurves(curves, "queries", 100, 0.95), ("1", "2", "3"))


def all_of(values: list[float], **others: list[float]) -> PositionBias:
    names = ("click-rate", "pivot", "adjacent-chain", "all-pairs", "em")
    return bias(*(curve(name, others.get(name.replace("-", "_"), values)) for name in names))


def test_position_based_clicks_give_their_curve_and_the_estimators_agree() -> None:
    found = PositionBias.of(thorough(), samples=40)
    assert found.best is not None
    assert found.best.estimator == "all-pairs"
    np.testing.assert_allclose(found.best.values, THETA, atol=0.03)
    assert found.disagreement() is None
    finding = found.section()
    assert finding.verdict is Verdict.GOOD
    assert "estimators agree" in finding.answer


def test_estimators_that_differ_beyond_their_intervals_are_named() -> None:
    found = all_of([1, 0.5, 0.2], pivot=[1, 0.5, 0.4])
    assert found.disagreement() == ("all-pairs", "pivot", 2)
    finding = found.section()
    assert finding.verdict is Verdict.CAREFUL
    assert "at position 3, all-pairs says 0.20 and pivot 0.40" in finding.answer


def test_an_interval_that_reaches_zero_differs_from_nothing() -> None:
    assert all_of([1, 0.5, 0.2], pivot=[1, 0.5, 0.0]).disagreement() is None


def test_without_swaps_no_estimator_can_tell() -> None:
    found = PositionBias.of(thorough(swaps=False), samples=2)
    assert found.best is None
    finding = found.section()
    assert finding.verdict is Verdict.UNKNOWN
    assert "no estimator can tell" in finding.answer.lower()
    assert finding.numbers["curves"]["click-rate"]["problem"] is None


def test_an_interval_from_nearly_nothing_to_anything_says_nothing() -> None:
    wide = Curve("all-pairs", np.array([1, 0.5, 0.08]), np.array([1, 0.2, 0.01]), np.array([1, 0.9, 25.5]), 0.0, None)
    others = [curve(name, [1, 0.5, 0.1]) for name in ("click-rate", "pivot", "adjacent-chain", "em")]
    finding = bias(wide, *others).section()
    assert finding.verdict is Verdict.UNKNOWN
    assert "(95 % interval 0.01-25.50)" in finding.answer
    assert "next to nothing" in finding.answer


def test_a_curve_without_an_interval_says_so_and_is_not_good() -> None:
    unknown = np.full(3, np.nan)
    bare = Curve("all-pairs", np.array([1, 0.5, 0.2]), unknown, unknown, 0.8, None)
    others = [curve(name, [1, 0.5, 0.2]) for name in ("click-rate", "pivot", "adjacent-chain", "em")]
    found = bias(bare, *others)
    finding = found.section()
    assert finding.verdict is Verdict.UNKNOWN
    assert "nan" not in finding.answer
    assert "In 80% of the resamples swaps do not link all positions" in finding.answer
    assert found.by_swaps
    assert not found.told


@pytest.mark.parametrize(("failed", "verdict"), [(0.1, Verdict.GOOD), (0.11, Verdict.UNKNOWN)])
def test_a_curve_that_hangs_on_a_few_queries_says_nothing_however_narrow(failed: float, verdict: Verdict) -> None:
    one = replace(curve("all-pairs", [1, 0.5, 0.2]), failed=failed)
    others = [curve(name, [1, 0.5, 0.2]) for name in ("click-rate", "pivot", "adjacent-chain", "em")]
    found = bias(one, *others)
    assert found.section().verdict is verdict
    assert found.told == (verdict is Verdict.GOOD)
    assert ("11% of the resamples" in found.section().answer) == (verdict is Verdict.UNKNOWN)


@pytest.mark.parametrize(("high", "verdict"), [(1.99, Verdict.GOOD), (2.0, Verdict.UNKNOWN)])
def test_an_interval_may_be_a_factor_of_ten_wide(high: float, verdict: Verdict) -> None:
    ends = np.array([1.0, 0.5, 0.2]), np.array([1.0, 0.9, high])
    curves = [Curve(name, np.array([1, 0.5, 0.5]), *ends, 0.0, None) for name in ("all-pairs", "em", "click-rate")]
    unknown = np.full(3, np.nan)
    failed = [Curve(name, unknown, unknown, unknown, 1.0, "why") for name in ("pivot", "adjacent-chain")]
    found = bias(*curves, *failed)
    assert found.section().verdict is verdict
    assert found.told == (verdict is Verdict.GOOD)


def test_an_estimator_that_is_alone_agrees_with_nobody() -> None:
    unknown = np.full(3, np.nan)
    failed = [Curve(name, unknown, unknown, unknown, 1.0, "why") for name in ("pivot", "adjacent-chain", "all-pairs")]
    found = bias(*failed, curve("em", [1, 0.5, 0.2]), curve("click-rate", [1, 0.5, 0.1]))
    assert not found.by_swaps
    assert not found.told
    assert found.section().verdict is Verdict.CAREFUL
    assert "No other estimator can tell." in found.section().answer

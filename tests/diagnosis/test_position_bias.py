from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.diagnosis.logs import THETA, thorough

from ultr.bias.curves import CURVE_ESTIMATORS, BiasCurves, Curve
from ultr.diagnosis import Verdict
from ultr.diagnosis.position_bias import PositionBias


def curve(name: str, values: list[float], *, spread: float = 0.1) -> Curve:
    array = np.array(values)
    return Curve(name, array, array * (1 - spread), array * (1 + spread), 0.0, None)


def bias(*curves: Curve) -> PositionBias:
    return PositionBias(BiasCurves(curves, "queries", 100, 0.95), ("1", "2", "3"), np.array([40.0, 30, 30]))


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


UNKNOWN = np.full(3, np.nan)


def with_exploration(found: PositionBias, explored: int, left_out: int) -> PositionBias:
    return replace(found, curves=replace(found.curves, explored=explored, left_out=left_out))


@pytest.mark.parametrize(
    ("found", "verdict", "answer", "advice"),
    [
        (
            all_of([1, 0.5, 0.2], click_rate=[1, 0.4, 0.25]),
            Verdict.GOOD,
            "By all-pairs, position 3 is seen 0.20 times as often as position 1 (95 % interval 0.18-0.22); its click "
            "rate is 0.25 of the first's. The estimators agree.",
            "",
        ),
        (
            with_exploration(all_of([1, 0.5, 0.2]), 1_234, 0),
            Verdict.GOOD,
            "By all-pairs, position 3 is seen 0.20 times as often as position 1 (95 % interval 0.18-0.22); its click "
            "rate is 0.20 of the first's. The curves by swaps rest on 1,234 placements by exploration, each weighted "
            "by its logged probability. The estimators agree.",
            "",
        ),
        (
            with_exploration(all_of([1, 0.5, 0.2]), 0, 5_678),
            Verdict.GOOD,
            "By all-pairs, position 3 is seen 0.20 times as often as position 1 (95 % interval 0.18-0.22); its click "
            "rate is 0.20 of the first's. 5,678 placements by exploration are left out, since it is not known where "
            "else the document could have stood: prepare the log with --base-position. The estimators agree.",
            "",
        ),
        (
            with_exploration(all_of([1, 0.5, 0.2]), 1, 1),
            Verdict.GOOD,
            "By all-pairs, position 3 is seen 0.20 times as often as position 1 (95 % interval 0.18-0.22); its click "
            "rate is 0.20 of the first's. The curves by swaps rest on 1 placement by exploration, each weighted by its "
            "logged probability. 1 placement by exploration is left out, since it is not known where else the document "
            "could have stood: prepare the log with --base-position. The estimators agree.",
            "",
        ),
        (
            all_of([1, 0.5, 0.2], em=[1, 0.25, 0.2]),
            Verdict.CAREFUL,
            "By all-pairs, position 3 is seen 0.20 times as often as position 1 (95 % interval 0.18-0.22); its click "
            "rate is 0.20 of the first's. The estimators do not agree: at position 2, all-pairs says 0.50 and em 0.25, "
            "so one number for each position does not describe these clicks.",
            "Do not rely on one curve: weights by inverse propensity would depend on the estimator.",
        ),
        (
            bias(*(Curve(name, UNKNOWN, UNKNOWN, UNKNOWN, 1.0, f"no {name}; log some") for name in CURVE_ESTIMATORS)),
            Verdict.UNKNOWN,
            "No estimator can tell: no all-pairs.",
            "Log some swaps, at best of adjacent positions, or bring propensities of your own.",
        ),
        (
            bias(*(Curve(name, np.array([1, 0.5, 0.2]), UNKNOWN, UNKNOWN, 0.8, None) for name in CURVE_ESTIMATORS)),
            Verdict.UNKNOWN,
            "By all-pairs, position 3 is seen 0.20 times as often as position 1 (without an interval); its click rate "
            "is 0.20 of the first's. In 80% of the resamples swaps do not link all positions, so that hangs on a few "
            "queries.",
            "Log more swaps.",
        ),
        (
            bias(*(curve(name, [1, 0.5, 0.2], spread=0.9) for name in CURVE_ESTIMATORS)),
            Verdict.UNKNOWN,
            "By all-pairs, position 3 is seen 0.20 times as often as position 1 (95 % interval 0.02-0.38); its click "
            "rate is 0.20 of the first's. So wide an interval says next to nothing.",
            "Log more swaps.",
        ),
    ],
)
def test_every_sentence_follows_the_curves(found: PositionBias, verdict: Verdict, answer: str, advice: str) -> None:
    section = found.section()
    assert (section.verdict, section.answer, section.advice) == (verdict, answer, advice)


MIXED = (
    "The curve is not how often positions are seen: one number for each position is not enough, and it holds more, "
    "such as trust."
)
NO_PROPENSITIES = "Do not take the curve for propensities: weights by its inverse correct for more than what is seen."


@pytest.mark.parametrize(
    ("found", "verdict", "answer", "advice"),
    [
        (
            all_of([1, 0.5, 0.2], click_rate=[1, 0.4, 0.25]),
            Verdict.CAREFUL,
            "By all-pairs, position 3 is clicked 0.20 times as often as position 1 with the same documents (95 % "
            f"interval 0.18-0.22); its click rate is 0.25 of the first's. {MIXED} The estimators agree.",
            NO_PROPENSITIES,
        ),
        (
            with_exploration(all_of([1, 0.5, 0.2]), 1_234, 0),
            Verdict.CAREFUL,
            "By all-pairs, position 3 is clicked 0.20 times as often as position 1 with the same documents (95 % "
            f"interval 0.18-0.22); its click rate is 0.20 of the first's. {MIXED} The curves by swaps "
            "rest on 1,234 placements by exploration, each weighted by its logged probability. The estimators agree.",
            NO_PROPENSITIES,
        ),
        (
            all_of([1, 0.5, 0.2], em=[1, 0.25, 0.2]),
            Verdict.CAREFUL,
            "By all-pairs, position 3 is clicked 0.20 times as often as position 1 with the same documents (95 % "
            f"interval 0.18-0.22); its click rate is 0.20 of the first's. {MIXED} The estimators do not "
            "agree: at position 2, all-pairs says 0.50 and em 0.25, so one number for each position does not "
            "describe these clicks.",
            "Do not rely on one curve: weights by inverse propensity would depend on the estimator.",
        ),
        (
            bias(*(curve(name, [1, 0.5, 0.2], spread=0.9) for name in CURVE_ESTIMATORS)),
            Verdict.UNKNOWN,
            "By all-pairs, position 3 is clicked 0.20 times as often as position 1 with the same documents (95 % "
            f"interval 0.02-0.38); its click rate is 0.20 of the first's. {MIXED} So wide an interval "
            "says next to nothing.",
            "Log more swaps.",
        ),
    ],
)
def test_where_one_number_is_not_enough_a_curve_is_not_how_often_a_position_is_seen(
    found: PositionBias, verdict: Verdict, answer: str, advice: str
) -> None:
    section = found.section(scalar=False)
    assert (section.verdict, section.answer, section.advice) == (verdict, answer, advice)


def test_what_is_not_known_to_be_how_often_a_position_is_seen_is_not_called_so() -> None:
    agreeing = bias(*(curve(name, [1, 0.5, 0.2]) for name in CURVE_ESTIMATORS))
    seen, unknown = agreeing.section(scalar=True), agreeing.section(scalar=None)
    assert "position 3 is seen 0.20 times as often as position 1 (95 %" in seen.answer
    assert "position 3 is clicked 0.20 times as often as position 1 with the same documents (95 %" in unknown.answer
    assert MIXED not in unknown.answer
    assert (seen.verdict, seen.advice) == (unknown.verdict, unknown.advice) == (Verdict.GOOD, "")


def test_the_first_of_the_curves_that_tell_is_quoted() -> None:
    names = ["all-pairs", "adjacent-chain", "pivot", "em"]
    for number, name in enumerate(names):
        failed = [Curve(each, UNKNOWN, UNKNOWN, UNKNOWN, 1.0, "why") for each in names[:number]]
        others = [curve(each, [1, 0.5, 0.2]) for each in ("click-rate", *names[number:])]
        found = bias(*failed, *others)
        assert found.best is not None
        assert found.best.estimator == name
        assert found.by_swaps is (number == 0)


def test_the_table_has_a_row_for_each_position_and_a_column_for_each_curve_there_is() -> None:
    bare = Curve("em", np.array([1, 0.5, 0.2]), UNKNOWN, UNKNOWN, 0.8, None)
    failed = [Curve(name, UNKNOWN, UNKNOWN, UNKNOWN, 1.0, "why") for name in ("pivot", "adjacent-chain")]
    found = bias(curve("click-rate", [1, 0.5, 0.25]), *failed, curve("all-pairs", [1, 0.5, 0.2]), bare).section()
    (table,) = found.tables
    assert table.folded
    assert table.rows[2] == {
        "position": "3",
        "click-rate": "0.250\n.225-.275",
        "all-pairs": "0.200\n.180-.220",
        "em": "0.200",
    }
    assert [row["position"] for row in table.rows] == ["1", "2", "3"]
    assert found.numbers["resampled"] == "100 queries"
    assert found.numbers["placements_by_exploration"] == 0
    assert found.numbers["curves"]["em"]["failed"] == 0.8
    (drawing,) = found.drawings().values()
    assert drawing.description == (
        "bias over the first by position. click-rate: 1.00 0.50 0.25; all-pairs: 1.00 0.50 0.20; em: 1.00 0.50 0.20"
    )


@pytest.mark.parametrize(
    ("values", "highest", "end"),
    [
        ([1, 0.5, 0.2], 2_000.0, 3.0),
        ([1, 0.5, 0.2], 3.01, 3.0),
        ([1, 0.5, 0.2], 3.0, None),
        ([1, 1.5, 0.2], 4.6, 4.5),
        ([1, 1.5, 0.2], 4.4, None),
    ],
)
def test_an_interval_without_end_does_not_flatten_the_curves(
    values: list[float], highest: float, end: float | None
) -> None:
    """The axis goes to three times the largest value at most."""
    wide = Curve("all-pairs", np.array(values), np.array([1, 0.4, 0.1]), np.array([1, 1.6, highest]), 0.0, None)
    failed = [Curve(name, UNKNOWN, UNKNOWN, UNKNOWN, 1.0, "why") for name in ("pivot", "adjacent-chain", "em")]
    (drawing,) = bias(curve("click-rate", [1, 0.5, 0.2]), *failed, wide).section().drawings().values()
    (axes,) = drawing.figure.axes
    bottom, top = axes.get_ylim()
    assert bottom == 0
    assert top == end if end else top > highest
    assert drawing.description.endswith(f"; intervals are cut off at {end:.2f}" if end else f"{values[-1]:.2f}")


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ((0.4, 0.36, 0.44), (0.5, 0.44, 0.56), False),  # intervals that touch
        ((0.4, 0.36, 0.439), (0.55, 0.44, 0.66), True),
        ((0.55, 0.44, 0.66), (0.4, 0.36, 0.439), True),
        ((0.4, 0.399, 0.401), (0.5, 0.499, 0.501), False),  # a quarter is not more than a quarter
        ((0.4, 0.399, 0.401), (0.501, 0.5, 0.502), True),
        ((0.4, 0.0, 0.401), (0.8, 0.7, 0.9), False),  # reaches 0
        ((0.4, 0.001, 0.401), (0.8, 0.7, 0.9), True),
    ],
)
def test_two_estimators_differ_where_their_intervals_are_apart_by_more_than_a_quarter(
    one: tuple[float, float, float], other: tuple[float, float, float], *, differ: bool
) -> None:
    def at_the_second(name: str, value: float, low: float, high: float) -> Curve:
        return Curve(name, np.array([1, value, 0.2]), np.array([1, low, 0.1]), np.array([1, high, 0.3]), 0.0, None)

    failed = [Curve(name, UNKNOWN, UNKNOWN, UNKNOWN, 1.0, "why") for name in ("pivot", "adjacent-chain")]
    found = bias(*failed, at_the_second("all-pairs", *one), at_the_second("em", *other))
    assert found.disagreement() == (("all-pairs", "em", 1) if differ else None)


@pytest.mark.parametrize(("below", "quoted"), [(20, "2"), (21, "3")])
def test_the_last_position_that_can_be_told_is_quoted_if_few_clicks_are_below(below: int, quoted: str) -> None:
    """A page that few reach must not keep the others from being told."""

    def wide(name: str) -> Curve:
        values = np.array([1.0, 0.5, 0.2])
        return Curve(name, values, np.array([1.0, 0.4, 0.01]), np.array([1.0, 0.6, 0.9]), 0.0, None)

    known = bias(*(wide(name) for name in CURVE_ESTIMATORS))
    found = replace(known, clicks=np.array([60.0, 40 - below, below]))
    finding = found.section()
    assert f"position {quoted} is seen" in finding.answer
    assert found.told is (quoted == "2")
    assert ("Of positions below it, with 20% of the clicks, swaps say next to nothing." in finding.answer) is found.told
    assert ("So wide an interval" in finding.answer) is not found.told


def test_where_no_curve_could_be_estimated_there_is_no_table() -> None:
    why = "all documents were shown at one position; log some at others"
    section = bias(*(Curve(name, UNKNOWN, UNKNOWN, UNKNOWN, 1.0, why) for name in CURVE_ESTIMATORS)).section()
    assert section.tables == ()
    assert section.drawings() == {}

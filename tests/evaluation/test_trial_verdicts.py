"""The answer of a trial from both sides of every threshold, on logs whose values are known by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ultr.arrays import Doubles
from ultr.bias import ResampledPropensities
from ultr.data.click_log import ClickLog
from ultr.evaluation import CounterfactualValue, Evidence, Valuation
from ultr.evaluation.halves import Half, Halves
from ultr.evaluation.placement import Placement
from ultr.evaluation.trial import Answer, Certainty, Trial, Valued
from ultr.metrics import Interval, bootstrap_ratio
from ultr.metrics.query_bootstrap import percentiles

QUERIES, SHOWN = 40, 10
UPPER, LOWER = 4, 3
"""Clicks on the first and the second of two documents, of which each query shows 10 impressions."""


def _log(queries: int = QUERIES) -> ClickLog:
    return ClickLog.of(
        features=np.tile([[1.0], [2.0]], (queries, 1)),
        documents=np.arange(2 * queries),
        offsets=np.arange(0, 2 * queries + 1, 2),
        clicks=np.tile([UPPER, LOWER], queries),
        impressions=np.full(queries, SHOWN),
        queries=np.arange(queries),
    )


def _rankings(log: ClickLog) -> dict[str, Valued]:
    """The lists as they were shown, and turned around."""
    evidence = Evidence.of(log)
    scores = log.features[evidence.documents, 0]
    return {
        "turned": [(Placement.ranked(scores, evidence), evidence)],
        "kept": [(Placement.ranked(-scores, evidence), evidence)],
    }


def _gain(theta: Doubles, beta: Doubles | None = None) -> float:
    """Expected clicks of the turned lists less those of the kept ones: (theta_1 - theta_2) (gamma_2 - gamma_1)."""
    floor = np.zeros(2) if beta is None else beta
    first, second = (np.array([UPPER, LOWER]) / SHOWN - floor) / theta
    return float((theta[0] - theta[1]) * (second - first))


def _resampled(estimate: list[float], draws: Doubles, *, kept: int | None = None) -> ResampledPropensities:
    """Propensities of two positions with a second one for each draw, in which every query occurs once."""
    count = len(draws)
    linked = np.arange(count) < (count if kept is None else kept)
    both = np.stack([np.full(count, estimate[0]), draws], axis=1)[linked]
    times = np.ones((len(both), QUERIES), dtype=np.int64)
    return ResampledPropensities(np.array(estimate), both, times, np.arange(QUERIES), linked)


def _answer(known: Any, halves: Halves | None = None, judge: Certainty | None = None, **options: Any) -> Answer:
    log = _log()
    resampled = known if isinstance(known, ResampledPropensities) else None
    theta = known if resampled is None else resampled.estimate
    trial = Trial(log, Valuation(theta, **options), resampled, halves, judge or Certainty())
    return trial.answer(_rankings(log), "turned", "kept")


class Fixed:
    """A valuation that gives values that are known beforehand, by the name of the placement."""

    utility, relevance = "clicks", None

    def __init__(self, **values: CounterfactualValue) -> None:
        self.values = values

    def of(self, placement: str, evidence: Evidence) -> CounterfactualValue:
        return self.values[placement]


def _value(total: float, queries: int = 30, **evidence: float) -> CounterfactualValue:
    given = {"clicks": 500.0, "effective_clicks": 400.0, "clipped": 0.0, "unsupported": 0.0} | evidence
    return CounterfactualValue(np.full(queries, total), np.ones(queries), **given)


ENOUGH = "the difference in expected clicks on an impression is +1.0000, 95% interval +1.0000 to +1.0000"


@pytest.mark.parametrize(
    ("queries", "evidence", "reason"),
    [
        (29, {}, "too little support: 29 queries, fewer than 30"),
        (30, {}, ENOUGH),
        (
            30,
            {"effective_clicks": 99.4},
            "too little support: the clicks that the value of new rests on weigh as much as 99 of equal weight, "
            "fewer than 100",
        ),
        (30, {"effective_clicks": 100.0}, ENOUGH),
        (
            30,
            {"unsupported": 0.11},
            "too little support: 11% of what new shows was never shown by the log, which cannot know its worth",
        ),
        (30, {"unsupported": 0.1}, ENOUGH),
        (
            30,
            {"clipped": 0.11},
            "too little support: 11% of the weight of the clicks that new rests on had to be clipped",
        ),
        (30, {"clipped": 0.1}, ENOUGH),
    ],
)
def test_an_answer_needs_so_much_support(queries: int, evidence: dict[str, float], reason: str) -> None:
    log = _log(queries)
    valuation: Any = Fixed(new=_value(3.0, queries, **evidence), old=_value(2.0, queries))
    rankings: Any = {"new": [("new", Evidence.of(log))], "old": [("old", Evidence.of(log))]}
    answer = Trial(log, valuation).answer(rankings, "new", "old")
    assert answer.reason == reason
    assert answer.verdict == ("new is better" if reason == ENOUGH else "cannot tell")
    assert answer.difference == Interval(1.0, 1.0, 1.0)
    assert answer.supported is (reason == ENOUGH)
    turned = Trial(log, valuation).answer(rankings, "old", "new")
    assert turned.winner == ("new" if reason == ENOUGH else None)


def test_support_is_counted_over_both_halves_of_the_pages() -> None:
    """Clicks of both count together; of what was never shown and of what was clipped, the worse half counts."""
    log = _log(30)
    enough, few = _value(3.0, effective_clicks=60.0), _value(3.0, effective_clicks=60.0, unsupported=0.2)
    valuation: Any = Fixed(new=enough, half=few, old=_value(2.0))
    for second, supported in (("new", True), ("half", False)):
        rankings: Any = {
            "new": [("new", Evidence.of(log)), (second, Evidence.of(log))],
            "old": [("old", Evidence.of(log)), ("old", Evidence.of(log))],
        }
        answer = Trial(log, valuation).answer(rankings, "new", "old")
        assert (answer.winner == "new") is supported


def test_clipping_is_no_weakness_where_a_model_stands_in_for_what_is_clipped() -> None:
    log = _log(30)
    valuation: Any = Fixed(new=_value(3.0, clipped=0.9), old=_value(2.0, clipped=0.9))
    valuation.relevance = np.ones(60)
    rankings: Any = {"new": [("new", Evidence.of(log))], "old": [("old", Evidence.of(log))]}
    assert Trial(log, valuation).answer(rankings, "new", "old").winner == "new"


@pytest.mark.parametrize(("kept", "weak"), [(96, False), (94, True)])
def test_resamples_that_do_not_link_all_positions_are_a_weakness(kept: int, weak: bool) -> None:  # noqa: FBT001
    known = _resampled([1.0, 0.5], np.full(100, 0.5), kept=kept)
    answer = _answer(known)
    assert ("in 6% of the resamples of the log swaps do not link all positions" in answer.reason) is weak
    assert answer.winner == (None if weak else "turned")


def test_the_difference_is_that_of_the_formula_for_each_draw_of_propensities() -> None:
    draws = np.linspace(0.3, 0.7, 201)
    answer = _answer(_resampled([1.0, 0.5], draws))
    expected = np.array([_gain(np.array([1.0, draw])) for draw in draws])
    assert answer.difference is not None
    assert answer.difference.mean == pytest.approx(_gain(np.array([1.0, 0.5])))
    assert expected.min() < answer.difference.low < np.quantile(expected, 0.025) + 1e-9
    assert np.quantile(expected, 0.975) - 1e-9 < answer.difference.high < expected.max()


def test_propensities_come_in_the_unit_of_the_valuation() -> None:
    """Draws have their own unit; twice all propensities is half the relevance, and the same clicks."""
    known = _resampled([1.0, 0.5], np.full(50, 0.5))
    doubled = replace(known, draws=2 * known.draws)
    assert _answer(known).difference == _answer(doubled).difference


def _halves(high: float, low: float, spread: Doubles) -> Halves:
    """Halves whose propensities differ, those of the high one by chance so much from draw to draw."""

    def half(theta: float, draws: Doubles) -> Half:
        known = _resampled([1.0, theta], draws)
        return Half(known, np.array([0.4, 0.4 * theta]), 0.4 * known.draws)

    return Halves(half(high, high + spread), half(low, np.full(len(spread), low)))


def _apart_in_errors(halves: Halves) -> float:
    draws = [np.array([_gain(draw) for draw in each.propensities.draws]) for each in (halves.high, halves.low)]
    low, high = np.quantile(draws[0] - draws[1], [0.16, 0.84])
    found = [_gain(each.propensities.estimate) for each in (halves.high, halves.low)]
    return float(abs(found[0] - found[1]) / ((high - low) / 2))


def _spread_for(errors: float, high: float, low: float) -> Doubles:
    """Draws around a propensity so that the halves are so many standard errors apart."""
    shape = np.linspace(-1, 1, 41)
    small, large = 1e-6, 0.3
    for _ in range(60):
        middle = (small + large) / 2
        small, large = (
            (middle, large) if _apart_in_errors(_halves(high, low, middle * shape)) > errors else (small, middle)
        )
    return small * shape


@pytest.mark.parametrize(("errors", "moved"), [(1.9, False), (1.95, False), (1.97, True), (2.05, True), (3.0, True)])
def test_an_interval_moves_by_what_halves_differ_beyond_chance(errors: float, moved: bool) -> None:  # noqa: FBT001
    """By the formula: (d_half - d) max(0, 1 - 1.96 s / |d_high - d_low|) at either end."""
    high, low = 0.6, 0.45
    known = _resampled([1.0, 0.5], np.full(41, 0.5))
    halves = _halves(high, low, _spread_for(errors, high, low))
    answer = _answer(known, halves)
    plain, by_high, by_low = (_gain(np.array([1.0, theta])) for theta in (0.5, high, low))
    share = max(0.0, 1 - 1.96 / _apart_in_errors(halves))
    assert answer.difference is not None
    assert answer.difference.mean == pytest.approx(plain)
    assert answer.difference.low == pytest.approx(plain + share * (min(by_high, by_low, plain) - plain))
    assert answer.difference.high == pytest.approx(plain + share * (max(by_high, by_low, plain) - plain))
    assert (", wider because documents ranked high and low show different bias" in answer.reason) is moved
    assert answer.winner == "turned"
    assert answer.sized is not moved, "the estimate has the bias that differs, only its interval allows for it"
    assert answer.reason.endswith("; go by its sign, not by its size") is moved


def test_a_winner_by_one_number_that_the_halves_take_back_is_said() -> None:
    known = _resampled([1.0, 0.7], np.full(41, 0.7))
    halves = _halves(0.9, 0.6, np.linspace(-1e-8, 1e-8, 41))
    # Rates that vary by more than the halves are apart, so that no lines are drawn through them.
    halves = replace(halves, high=replace(halves.high, draws=np.exp(np.linspace(-9, 9, 41))[:, None] * [1.0, 1.0]))
    answer = _answer(known, halves)
    plain = _gain(np.array([1.0, 0.7]))
    assert plain > 0 > _gain(np.array([1.0, 0.9]))
    assert answer.verdict == "cannot tell"
    assert answer.reason.endswith(f"which holds 0; by one number for each position alone {plain:+.4f} to {plain:+.4f}")


def test_what_one_number_cannot_tell_either_is_not_said_twice() -> None:
    known = _resampled([1.0, 0.75], np.linspace(0.6, 0.9, 41))
    halves = _halves(0.9, 0.6, np.linspace(-1e-8, 1e-8, 41))
    halves = replace(halves, high=replace(halves.high, draws=np.exp(np.linspace(-9, 9, 41))[:, None] * [1.0, 1.0]))
    answer = _answer(known, halves)
    assert answer.verdict == "cannot tell"
    assert ", wider because documents ranked high and low show different bias" in answer.reason
    assert answer.reason.endswith("which holds 0")


@pytest.mark.parametrize(("errors", "lines"), [(3.2, False), (3.4, True)])
@pytest.mark.parametrize("clear", [True, False])
def test_lines_are_taken_where_halves_differ_beyond_doubt_and_rates_are_apart(
    errors: float,
    lines: bool,  # noqa: FBT001
    clear: bool,  # noqa: FBT001
) -> None:
    high, low = 0.62, 0.45
    known = _resampled([1.0, 0.5], np.full(41, 0.5))
    halves = _halves(high, low, _spread_for(errors, high, low))
    upper, lower = np.array([0.5, 0.3]), np.array([0.2, 0.05])
    # Rates of the high half vary from draw to draw, hardly or by as much as the halves are apart.
    wild = np.exp((0.01 if clear else 1.0) * np.linspace(-1, 1, 41))[:, None]
    halves = Halves(
        replace(halves.high, rates=upper, draws=upper * wild), replace(halves.low, rates=lower, draws=lower * wild**0)
    )
    answer = _answer(known, halves)
    taken = lines and clear
    assert ("with trust bias taken off" in answer.reason) is taken
    assert answer.difference is not None
    expected = _gain(upper - lower, lower) if taken else _gain(np.array([1.0, 0.5]))
    assert answer.difference.mean == pytest.approx(expected)


@pytest.mark.parametrize(("errors", "clear"), [(3.9, False), (4.1, True)])
def test_the_rates_of_halves_must_be_four_standard_errors_apart(errors: float, clear: bool) -> None:  # noqa: FBT001
    """The mean log ratio of the rates, by clicks, over its standard deviation from draw to draw."""
    high, low = 0.62, 0.45
    halves = _halves(high, low, _spread_for(20.0, high, low))
    upper, lower = np.array([0.5, 0.3]), np.array([0.2, 0.05])
    clicks = np.array([UPPER, LOWER]) / (UPPER + LOWER)
    shape = np.linspace(-1, 1, 41)
    far = float(np.log(upper / lower) @ clicks)
    wild = np.exp(far / errors * shape / shape.std())[:, None]
    halves = Halves(
        replace(halves.high, rates=upper, draws=upper * wild), replace(halves.low, rates=lower, draws=lower * wild**0)
    )
    assert halves.separation(clicks) == pytest.approx(errors)
    trial = Trial(_log(), Valuation([1.0, 0.5]), halves=halves)
    rankings = _rankings(_log())
    assert (trial._by_lines(rankings["turned"], rankings["kept"]) is not None) is clear
    other = replace(trial, valuation=Valuation([1.0, 0.5], "self-normalised"))
    assert other._by_lines(rankings["turned"], rankings["kept"]) is None
    other = replace(trial, valuation=Valuation([1.0, 0.5], utility="dcg"))
    assert other._by_lines(rankings["turned"], rankings["kept"]) is None


@pytest.mark.parametrize("spread", [0.0, 0.02, 0.2])
def test_the_hint_follows_the_share_of_the_variance_that_queries_make(spread: float) -> None:
    random = np.random.default_rng(0)
    log = _log()
    clicks = random.binomial(SHOWN, np.tile([0.4, 0.2], QUERIES))
    log = replace(log, clicks=clicks)
    times = random.multinomial(QUERIES, np.full(QUERIES, 1 / QUERIES), size=300)
    draws = np.stack([np.ones(300), 0.5 * np.exp(spread * random.normal(size=300))], axis=1)
    known = ResampledPropensities(np.array([1.0, 0.5]), draws, times, np.arange(QUERIES), np.ones(300, dtype=np.bool_))
    trial = Trial(log, Valuation(known.estimate), known)
    rankings = _rankings(log)
    answer = trial.answer(rankings, "turned", "kept")
    assert answer.verdict == "cannot tell"
    found = answer.difference
    assert found is not None
    # Of each query: sum over documents of (theta at the new rank - theta at the old) gamma, gamma = clicks / theta.
    above, below = clicks.reshape(-1, 2).T
    of_query = (1.0 - 0.5) * (below / 0.5) + (0.5 - 1.0) * above
    chance = bootstrap_ratio(of_query, np.full(QUERIES, float(SHOWN)))
    mostly_doubt = ((chance.high - chance.low) / (found.high - found.low)) ** 2 < 0.5
    assert ("most of its width is doubt about the propensities" in answer.reason) is mostly_doubt
    assert (f"chance among {QUERIES} queries" in answer.reason) is not mostly_doubt
    assert mostly_doubt is (spread == 0.2)


def test_given_propensities_get_no_hint_on_swaps() -> None:
    log = replace(_log(), clicks=np.random.default_rng(0).binomial(SHOWN, np.tile([0.4, 0.2], QUERIES)))
    answer = Trial(log, Valuation([1.0, 0.5])).answer(_rankings(log), "turned", "kept")
    assert answer.reason.endswith("which holds 0")


@pytest.mark.parametrize(
    ("utility", "said"), [("clicks", "expected clicks on an impression"), ("dcg", "discounted relevance")]
)
def test_the_value_is_named_by_its_utility(utility: str, said: str) -> None:
    assert f"the difference in {said} is " in _answer(np.array([1.0, 0.5]), utility=utility).reason


@pytest.mark.parametrize(("looks", "name"), [(1, "95% interval +"), (2, "95% interval for 2 looks +")])
def test_looks_are_named_from_the_second_on(looks: int, name: str) -> None:
    assert name in _answer(np.array([1.0, 0.5]), judge=Certainty(looks=looks)).reason


@pytest.mark.parametrize(("kept", "weak"), [(952, False), (948, True)])
def test_one_resample_in_twenty_may_fail(kept: int, weak: bool) -> None:  # noqa: FBT001
    answer = _answer(_resampled([1.0, 0.5], np.full(1_000, 0.5), kept=kept))
    assert (answer.winner is None) is weak
    if weak:
        assert answer.reason == (
            "too little support: in 5% of the resamples of the log swaps do not link all positions, so the "
            "propensities hang on a few queries; log more swaps, or give propensities"
        )


class Told(Trial):
    """A trial whose intervals are known beforehand."""

    plain = Interval(0.0, 0.0, 0.0)
    wide: tuple[Interval, str] = (plain, "")
    chance = plain

    def difference(self, first: Valued, second: Valued) -> Interval:
        return self.plain

    def _by_halves(self, plain: Interval, first: Valued, second: Valued) -> tuple[Interval, str]:
        assert plain is self.plain
        return self.wide

    def _taken_for_known(self, first: Valued, second: Valued) -> Interval:
        return self.chance


def _told(plain: Interval, wide: Interval, how: str, chance: Interval | None = None) -> Answer:
    log = _log()
    known = _resampled([1.0, 0.5], np.full(50, 0.5))
    kind = type("Known", (Told,), {"plain": plain, "wide": (wide, how), "chance": chance or plain})
    answer: Answer = kind(log, Valuation(known.estimate), known).answer(_rankings(log), "turned", "kept")
    return answer


WHAT = "the difference in expected clicks on an impression is "
ALONE = "; by one number for each position alone "


@pytest.mark.parametrize(
    ("plain", "hint"),
    [
        (Interval(0.2, 0.1, 0.3), f"{ALONE}+0.1000 to +0.3000"),
        (Interval(-0.2, -0.3, -0.1), f"{ALONE}-0.3000 to -0.1000"),
        (Interval(0.2, 0.0, 0.3), ""),
        (Interval(-0.2, -0.3, 0.0), ""),
        (Interval(0.1, -0.1, 0.3), ""),
    ],
)
def test_what_one_number_told_alone_is_said_if_it_named_a_winner(plain: Interval, hint: str) -> None:
    answer = _told(plain, Interval(plain.mean, -0.4, 0.4), " in another way")
    expected = f"{WHAT}{plain.mean:+.4f}, 95% interval -0.4000 to +0.4000 in another way, which holds 0{hint}"
    assert answer == Answer("cannot tell", expected, None, Interval(plain.mean, -0.4, 0.4), adjusted=True)


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.70, "; most of its width is doubt about the propensities, which more swaps would lessen"),
        (0.72, "; most of its width is chance among 40 queries, which holding out more of them would lessen"),
    ],
)
def test_half_of_the_variance_decides_what_would_narrow_an_interval(share: float, said: str) -> None:
    """Widths go with standard deviations: 0.7 squared is 0.49, 0.72 squared is 0.52."""
    plain = Interval(0.1, -0.3, 0.5)
    answer = _told(plain, plain, "", Interval(0.1, 0.1 - 0.4 * share, 0.1 + 0.4 * share))
    assert answer.reason == f"{WHAT}+0.1000, 95% interval -0.3000 to +0.5000, which holds 0{said}"


def test_an_interval_without_width_needs_no_hint() -> None:
    """Both are the same ranking, so that they differ in no draw."""
    log = _log()
    known = _resampled([1.0, 0.5], np.linspace(0.4, 0.6, 50))
    rankings = _rankings(log) | {"again": _rankings(log)["kept"]}
    answer = Trial(log, Valuation(known.estimate), known).answer(rankings, "again", "kept")
    assert answer.reason == f"{WHAT}+0.0000, 95% interval +0.0000 to +0.0000, which holds 0"


def test_halves_that_agree_in_every_draw_leave_the_interval_alone() -> None:
    known = _resampled([1.0, 0.5], np.full(41, 0.5))
    answer = _answer(known, _halves(0.5, 0.5, np.zeros(41)))
    assert answer.reason == f"{WHAT}+0.1000, 95% interval +0.1000 to +0.1000"


@pytest.mark.parametrize(("high", "low"), [(0.7, 0.6), (0.4, 0.3)])
def test_where_both_halves_are_on_one_side_only_that_end_moves(high: float, low: float) -> None:
    known = _resampled([1.0, 0.5], np.full(41, 0.5))
    halves = _halves(high, low, np.zeros(41))
    # Rates that vary by more than they are apart, so that no lines can be drawn.
    halves = replace(halves, high=replace(halves.high, draws=np.exp(np.linspace(-9, 9, 41))[:, None] * [1.0, 1.0]))
    found = _answer(known, halves).difference
    plain, *others = (_gain(np.array([1.0, theta])) for theta in (0.5, high, low))
    assert found is not None
    assert (found.mean, found.low, found.high) == pytest.approx(
        (plain, min(plain, *others), max(plain, *others)), abs=1e-9
    )


@pytest.mark.parametrize(("spread", "lines"), [(0.01, True), (0.1, False)])
def test_of_two_intervals_the_narrower_one_is_taken(spread: float, lines: bool) -> None:  # noqa: FBT001
    """Lines vary from draw to draw with their rates; what the halves differ by does not."""
    known = _resampled([1.0, 0.5], np.full(41, 0.5))
    plain = _halves(0.6, 0.45, np.zeros(41))
    upper, lower = np.array([0.5, 0.3]), np.array([0.2, 0.05])
    varied = upper + spread * np.linspace(-1, 1, 41)[:, None] * np.array([1.0, -1.0])
    halves = Halves(
        replace(plain.high, rates=upper, draws=varied), replace(plain.low, rates=lower, draws=np.tile(lower, (41, 1)))
    )
    answer = _answer(known, halves)
    gains = np.array([_gain(np.array([1.0, theta])) for theta in (0.6, 0.45)])
    drawn = np.array([_gain(each - lower, lower) for each in varied])
    width = np.subtract(*percentiles(drawn, 0.95, QUERIES)[::-1])
    assert bool(width < np.ptp(gains)) is lines
    assert (" with trust bias taken off" in answer.reason) is lines
    assert (", wider because documents ranked high and low show different bias" in answer.reason) is not lines
    assert answer.sized is lines


def test_discounted_relevance_comes_in_the_unit_of_the_valuation() -> None:
    """Propensities from 2 on halve all relevance; draws from 1 on must do so, too."""
    log = _log()
    known = _resampled([1.0, 0.5], np.full(50, 0.5))
    for unit in (1.0, 2.0):
        trial = Trial(log, Valuation([unit, 0.5 * unit], utility="dcg"), known)
        rankings = _rankings(log)
        found = trial.difference(rankings["turned"], rankings["kept"])
        first, second = (np.array([UPPER, LOWER]) / SHOWN) / np.array([unit, 0.5 * unit])
        gain = (1 - 1 / np.log2(3)) * (second - first)
        assert (found.mean, found.low, found.high) == pytest.approx((gain, gain, gain))


def test_what_a_model_says_of_documents_without_a_click_counts_in_every_draw() -> None:
    """The second document has no click; g is worth what clipping leaves to it."""
    log = replace(_log(), clicks=np.tile([UPPER, 0], QUERIES))
    known = _resampled([1.0, 0.2], np.full(50, 0.2))
    g = np.tile([0.3, 0.6], QUERIES)
    valuation = Valuation(known.estimate, "doubly-robust", relevance=g, smallest=0.4)
    rankings = _rankings(log)
    found = Trial(log, valuation, known).difference(rankings["turned"], rankings["kept"])
    # Examined 1 and 0.2, of which the second is divided by 0.4: g (1 - 0.5).
    relevance = np.array([UPPER / SHOWN, 0.6 * 0.5])
    gain = (1.0 - 0.2) * (relevance[1] - relevance[0])
    assert (found.mean, found.low, found.high) == pytest.approx((gain, gain, gain))


def test_a_draw_without_any_query_of_the_log_is_left_out() -> None:
    log = _log()
    known = _resampled([1.0, 0.5], np.full(50, 0.5))
    counts = known.counts.copy()
    counts[::2] = 0
    rankings = _rankings(log)
    found = Trial(log, Valuation(known.estimate), replace(known, counts=counts))
    interval = found.difference(rankings["turned"], rankings["kept"])
    gain = _gain(np.array([1.0, 0.5]))
    assert (interval.low, interval.high) == pytest.approx((gain, gain))


def test_draws_of_a_share_of_relevance_are_over_the_relevance_found() -> None:
    """Self-normalised: the mean rank weight of relevant documents, which differs by (1 - theta_2) of their shares."""
    draws = np.linspace(0.4, 0.6, 201)
    found = _answer(_resampled([1.0, 0.5], draws), weighting="self-normalised").difference
    relevance = np.stack([np.full(201, float(UPPER)), LOWER / draws], axis=1)
    shares = relevance / relevance.sum(axis=1, keepdims=True)
    gains = (1 - draws) * (shares[:, 1] - shares[:, 0])
    assert found is not None
    assert found.mean == pytest.approx((1 - 0.5) * (6 - 4) / 10)
    assert gains.min() < found.low < np.quantile(gains, 0.03)
    assert np.quantile(gains, 0.97) < found.high < gains.max()

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.evaluation.test_comparison import GRADES, GUESSES, THETA, UNTESTED, judged, log_of

from ultr.bias import ResampledPropensities
from ultr.data.click_log import ClickLog
from ultr.errors import OptionError
from ultr.evaluation import Evidence, Valuation, compare
from ultr.evaluation.placement import Placement, placement_of
from ultr.evaluation.trial import Certainty, Trial, Valued
from ultr.metrics import Interval


@pytest.mark.parametrize(
    ("low", "high", "verdict", "winner"),
    [
        (1e-9, 2.0, "B is better", "B"),
        (0.0, 2.0, "cannot tell", None),
        (-2.0, 0.0, "cannot tell", None),
        (-2.0, -1e-9, "A is better", "A"),
    ],
)
def test_a_winner_is_named_only_if_the_interval_leaves_0_out(
    low: float, high: float, verdict: str, winner: str | None
) -> None:
    answer = Certainty().answer(Interval((low + high) / 2, low, high), "B", "A", what="the lead", hint="; log more")
    assert (answer.verdict, answer.winner) == (verdict, winner)
    assert answer.reason.endswith("which holds 0; log more") is (winner is None)


def test_one_query_tells_nothing() -> None:
    answer = Certainty().answer(Interval(1.0, np.nan, np.nan), "B", "A", what="the lead")
    assert answer.verdict == "cannot tell"
    assert answer.reason == "the lead comes from one query, which tells nothing about others"


def test_who_looks_often_needs_more_to_name_a_winner() -> None:
    log = log_of(judged(60), impressions=4)
    once, often = (
        compare(GUESSES, GRADES, log, propensities=THETA, looks=looks, assumption=UNTESTED).value
        for looks in (1, 10**6)
    )
    assert once.difference is not None
    assert often.difference is not None
    assert once.difference.mean == often.difference.mean
    assert often.difference.high - often.difference.low > 2.4 * (once.difference.high - once.difference.low)
    assert (once.winner, often.winner) == ("B", None)
    assert "95% interval for 1000000 looks" in often.reason
    assert "looks" not in once.reason
    with pytest.raises(OptionError, match="looks must be an integer of at least 1"):
        compare(GUESSES, GRADES, log, looks=0, assumption=UNTESTED)


def test_a_reason_says_what_would_narrow_an_interval() -> None:
    log = log_of(judged(60), noise=1.0)
    evidence = Evidence.of(log)
    known = ResampledPropensities.of_log(log, "em", samples=100)
    wild = np.random.default_rng(0).normal(size=known.draws.shape)
    scores = {"A": log.features[:, 1], "B": log.features[:, 1] + 0.3 * log.features[:, 2]}
    rankings: dict[str, Valued] = {
        name: [(Placement.ranked(each[evidence.documents], evidence), evidence)] for name, each in scores.items()
    }
    for spread, narrows in ((0.0, "chance among 60 queries"), (2.0, "doubt about the propensities")):
        unsure = replace(known, draws=known.draws * np.exp(spread * wild))
        answer = Trial(log, Valuation(known.estimate), unsure).answer(rankings, "B", "A")
        assert answer.verdict == "cannot tell"
        assert f"which holds 0; most of its width is {narrows}" in answer.reason


@pytest.mark.parametrize("many", [1024, 7])
@pytest.mark.parametrize(("weighting", "floored"), [("ips", False), ("ips", True), ("self-normalised", False)])
def test_each_draw_is_the_value_of_its_queries_by_its_own_propensities(
    small_log: ClickLog, weighting: str, *, floored: bool, many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries have impressions of their own number, so that a ratio of sums is no mean of ratios."""
    monkeypatch.setattr("ultr.evaluation.trial.AT_ONCE", many)
    random = np.random.default_rng(0)
    log = replace(small_log, impressions=small_log.impressions * (1 + small_log.queries % 3))
    evidence = Evidence.of(log)
    first, second = (placement_of(random.normal(size=len(evidence.documents)), evidence) for _ in range(2))
    groups = np.arange(len(log.query_ids)) % 5
    counts = random.multinomial(5, np.full(5, 0.2), size=4)
    drawn = [
        Valuation(np.sort(random.random(10))[::-1] + 0.1, weighting, floor=0.1 * random.random(10) if floored else None)
        for _ in counts
    ]
    trial = Trial(log, drawn[0])
    found = trial._draws(drawn, counts, groups, [(first, evidence)], [(second, evidence)])
    for times, valuation, draw in zip(counts, drawn, found, strict=True):
        ours, theirs = (valuation.of(placement, evidence) for placement in (first, second))
        weights = times[groups[evidence.query_numbers]]
        assert draw == pytest.approx(weights @ (ours.totals - theirs.totals) / (weights @ ours.bases))

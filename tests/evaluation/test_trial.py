from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.evaluation.test_comparison import GRADES, GUESSES, THETA, UNTESTED, judged, log_of

from ultr.bias import ResampledPropensities
from ultr.errors import OptionError
from ultr.evaluation import Evidence, Valuation, compare
from ultr.evaluation.placement import Placement
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

"""Verdicts on users who stop after a click: thresholds from both sides, and what the forecast makes of them."""

from __future__ import annotations

import pytest

from ultr.bias.stopping import CLEAR, Stopping
from ultr.clicks.registry import click_model
from ultr.datasets.letor_like import letor_like
from ultr.diagnosis import diagnose
from ultr.diagnosis.gain import Gain
from ultr.diagnosis.stopping_users import WIDE, stopping_users
from ultr.pages import Verdict
from ultr.simulation.log import simulate


@pytest.mark.parametrize(
    ("found", "verdict", "said"),
    [
        (None, Verdict.UNKNOWN, "The log does not tell"),
        (Stopping(0.0, WIDE + 0.01, once=False), Verdict.UNKNOWN, "too few queries or clicks"),
        (Stopping(0.0, WIDE - 0.01, once=False), Verdict.GOOD, "Nothing says so"),
        (Stopping(CLEAR + 0.01, 0.01, once=False), Verdict.GOOD, "Nothing says so"),
        (Stopping(0.4, 0.05, once=False), Verdict.CAREFUL, "30% to 50% look at nothing further after a click"),
        (Stopping(0.97, 0.02, once=False), Verdict.CAREFUL, "93% to 100% look at nothing further after a click"),
        (Stopping(1.0, 0.01, once=False), Verdict.CAREFUL, "98% to 100% look at nothing further after a click"),
        (Stopping(0.97, 0.02, once=True), Verdict.CAREFUL, "The first click is the last one"),
        (Stopping(0.5, 0.05, once=False, beyond=True), Verdict.UNKNOWN, "as if 40% or more of the users stopped"),
    ],
)
def test_the_verdict_is_that_of_the_interval(found: Stopping | None, verdict: Verdict, said: str) -> None:
    section, known = stopping_users(found), 0.0 if found is None else found.known
    assert section.verdict is verdict
    assert said in section.answer
    assert bool(section.advice) == (verdict is Verdict.CAREFUL) == bool(known)
    assert section.numbers.get("known", 0.0) == known


def test_the_doctor_finds_users_who_stop_and_the_gain_reckons_with_them() -> None:
    judged = letor_like(train_queries=150, validation_queries=1, test_queries=1).train
    for clicks, known in (("cascade", 1.0), ("position-based", 0.0)):
        log = simulate(judged, click_model(clicks), impressions=60_000, rankings=2, noise=0.5)
        found = diagnose(log, samples=20, draws=19)
        assert found.stopping is not None
        assert found.stopping.known == known
        assert found.gain == Gain.of(log, stopping=known)
        plain = Gain.of(log)
        assert (found.gain == plain) == (known == 0)
        [section] = [each for each in found.findings if each.name == "stopping"]
        assert (section.verdict is Verdict.CAREFUL) == (known > 0)

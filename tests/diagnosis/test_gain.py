"""Whether debiasing will pay: the words, from both sides of every threshold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ultr.bias.correction import Correction
from ultr.clicks.registry import click_model
from ultr.datasets.letor_like import letor_like
from ultr.diagnosis import diagnose
from ultr.diagnosis.gain import CLEAR, LITTLE, NOISY, Gain
from ultr.pages import Verdict
from ultr.simulation.log import simulate


def _gain(*, reliable: float, known: float) -> Gain:
    return Gain(Correction(agreement=reliable / (2 - reliable), reliable=reliable, known=known, queries=90, clicks=800))


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (CLEAR + 1e-6, "Debiasing should pay."),
        (CLEAR - 1e-6, "Debiasing may pay a little."),
        (LITTLE + 1e-6, "Debiasing may pay a little."),
        (LITTLE - 1e-6, "Debiasing will hardly pay."),
        (0.0, "Debiasing will hardly pay."),
    ],
)
def test_the_headline_follows_the_share_that_is_new(new: float, said: str) -> None:
    # Where debiased and raw scores do not correlate, all that is reliable is new.
    assert _gain(reliable=new, known=0.0).headline() == said


def test_little_that_is_new_is_noise_or_known() -> None:
    noise = _gain(reliable=NOISY - 0.01, known=0.9).section()
    known = _gain(reliable=NOISY + 0.01, known=0.9).section()
    same = _gain(reliable=0.0, known=0.99).section()
    assert noise.verdict is known.verdict is same.verdict is Verdict.CAREFUL
    assert "rank nearly as debiased ones do" in same.answer
    assert "mostly noise" in noise.answer
    assert "rank nearly as debiased ones do" in known.answer
    assert "Log more queries" in noise.advice
    assert "no more than from raw clicks" in known.advice


def test_what_pays_is_good_and_needs_no_advice() -> None:
    finding = _gain(reliable=0.9, known=0.5).section()
    assert finding.verdict is Verdict.GOOD
    assert not finding.advice
    assert "68% is more than noise" in finding.answer
    assert finding.numbers["new"] == pytest.approx(0.9 * 0.75)


@pytest.mark.parametrize(("new", "verdict"), [(LITTLE + 1e-6, Verdict.UNKNOWN), (LITTLE - 1e-6, Verdict.CAREFUL)])
def test_a_change_without_swaps_may_be_for_the_worse(new: float, verdict: Verdict) -> None:
    gain = _gain(reliable=new, known=0.0)
    section = gain.section(told=False)
    assert section.verdict is verdict
    assert ("may be for the worse" in section.answer) == (verdict is Verdict.UNKNOWN)
    assert ("whether for the better" in gain.headline(told=False)) == (verdict is Verdict.UNKNOWN)


def test_where_it_is_not_known_the_headline_is_silent() -> None:
    gain = Gain(None, "the log has no features")
    assert gain.headline() == ""
    assert gain.section().verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(("share", "said"), [(0.02, "Debiasing should pay."), (1.0, "Debiasing will hardly pay.")])
def test_the_same_users_behind_a_weak_and_a_good_ranker(share: float, said: str) -> None:
    judged = letor_like(train_queries=500, validation_queries=1, test_queries=1).train
    log = simulate(judged, click_model("trust"), impressions=250_000, svm_share=share, rankings=2, noise=0.2)
    assert Gain.of(log).headline() == said


def test_the_doctor_says_it_in_its_first_line_unless_the_log_cannot_be_debiased() -> None:
    judged = letor_like(train_queries=100, validation_queries=1, test_queries=1).train
    log = simulate(judged, click_model("trust"), impressions=20_000, rankings=3, noise=0.5)
    found = diagnose(log, samples=5, draws=19)
    assert found.gain.headline()
    assert found.headline.endswith(found.gain.headline(told=found.position_bias.told))
    few = replace(log, clicks=np.where(np.arange(len(log.clicks)) < 3, log.clicks, 0))
    assert "pay" not in diagnose(few, samples=5, draws=19).headline

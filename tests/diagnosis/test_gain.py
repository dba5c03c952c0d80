"""Whether debiasing will pay: the words, from both sides of every threshold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ultr.bias.correction import Correction
from ultr.clicks.registry import click_model
from ultr.data.click_log import ClickLog
from ultr.datasets.letor_like import letor_like
from ultr.diagnosis import diagnose
from ultr.diagnosis.gain import CLEAR, HARDLY, IN_SIMULATIONS, LITTLE, PERHAPS, YES, Gain
from ultr.pages import Verdict
from ultr.simulation.log import simulate

RESULTS = Path(__file__).parents[2] / "docs" / "results"
WORLDS = ("never-worse", "never-worse-squared-trees-first", "never-worse-squared", "never-worse-squared-trees")
"""Worlds in which the default was measured by its present rule."""


def _gain(*, reliable: float, known: float, halves: float = 0.9) -> Gain:
    agreement = reliable / (2 - reliable)
    return Gain(Correction(agreement, reliable, known, halves, queries=90, clicks=800))


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (0.3, "Debiasing should pay: nDCG@10 +.01 to +.07 in 8 of 10 simulated logs like it."),
        (0.299, "Debiasing may pay a little: nDCG@10 0 to +.03 in 8 of 10 simulated logs like it."),
        (0.1, "Debiasing may pay a little: nDCG@10 0 to +.03 in 8 of 10 simulated logs like it."),
        (0.099, "Debiasing will hardly pay: nDCG@10 0 to +.01 in 8 of 10 simulated logs like it."),
        (0.0, "Debiasing will hardly pay: nDCG@10 0 to +.01 in 8 of 10 simulated logs like it."),
    ],
)
def test_the_headline_follows_the_share_that_is_new(new: float, said: str) -> None:
    # Where debiased and raw scores do not correlate, all that is reliable is new.
    assert _gain(reliable=new, known=0.0).headline() == said


def test_the_gains_in_the_headline_are_those_of_the_simulated_worlds_in_the_documentation() -> None:
    numbers = [each for name in WORLDS for each in json.loads((RESULTS / f"{name}.json").read_text())["numbers"]]
    points = np.array([(each["new"], each["gain"]) for each in numbers if each["method"] == "auto"])
    bounds = {HARDLY: (-1.0, LITTLE), PERHAPS: (LITTLE, CLEAR), YES: (CLEAR, 2.0)}
    for answer, (low, high) in bounds.items():
        gains = points[(points[:, 0] >= low) & (points[:, 0] < high), 1]
        assert len(gains) >= 10
        assert np.abs(np.quantile(gains, (0.1, 0.9)).round(2) - IN_SIMULATIONS[answer]).max() < 1e-9


@pytest.mark.parametrize(
    ("reliable", "known", "halves", "noise"),
    [
        (0.299, 0.9, 0.9, True),
        (0.3, 0.9, 0.9, False),
        (0.3, 0.9, 0.1, False),
        (0.2, 0.94, 0.9, True),  # 1 - 0.94^2 is 0.116 of debiased scores, which raw ones do not say
        (0.2, 0.96, 0.9, False),  # 0.078
        (0.2, -0.94, 0.9, True),
        (0.0, 0.99, 0.9, False),
        (0.0, 0.99, 0.5, False),
        (0.0, 0.99, 0.499, True),  # raw and debiased clicks are near each other, but halves of them are not
        (0.0, 0.99, -0.4, True),
    ],
)
def test_little_that_is_new_is_noise_or_known(
    reliable: float,
    known: float,
    halves: float,
    noise: bool,  # noqa: FBT001
) -> None:
    found = _gain(reliable=reliable, known=known, halves=halves).section()
    assert found.verdict is Verdict.CAREFUL
    said = "What debiasing changes is mostly noise." if noise else "Raw clicks rank nearly as debiased ones do."
    assert found.answer.endswith(f"800 clicks). {said}")
    assert found.advice == (
        "Log more queries and clicks, or swaps; until then expect no more than from raw clicks."
        if noise
        else "Expect no more than from raw clicks: the old ranker was good, or its order owes little to the features, "
        "as a random one does."
    )


def test_what_pays_is_good_and_needs_no_advice() -> None:
    finding = _gain(reliable=0.9, known=0.5).section()
    assert finding.verdict is Verdict.GOOD
    assert not finding.advice
    share, agreement = 0.9 * (1 - 0.5**2), 0.9 / (2 - 0.9)
    assert finding.answer == (
        f"Of what debiased clicks say about the order of documents, {100 * share:.0f}% is more than noise and not what "
        "raw clicks say anyway. Two halves of the 90 queries, debiased apart, agree on what raw clicks do not say, "
        f"with a correlation of {agreement:.2f}, and debiased scores correlate with raw ones by 0.50 (linear rankers, "
        "800 clicks)."
    )
    assert finding.numbers["new"] == pytest.approx(share)


@pytest.mark.parametrize(
    ("agreement", "said"),
    [
        (0.01, "debiased apart, agree on what raw clicks do not say, with a correlation of 0.01, and"),
        (0.0, "debiased apart, do not agree on what raw clicks do not say, with a correlation of 0.00, and"),
        (-0.53, "debiased apart, do not agree on what raw clicks do not say, with a correlation of -0.53, and"),
    ],
)
def test_halves_agree_where_they_correlate(agreement: float, said: str) -> None:
    gain = Gain(Correction(agreement, 0.0, known=0.97, halves=0.2, queries=40, clicks=307))
    assert said in gain.section().answer


def _random_order(*, pull: float) -> ClickLog:
    """A thousand pages of forty queries in random order, clicked 300 times, by their second feature or by none."""
    random = np.random.default_rng(7)
    queries, features = np.arange(1_000) % 40, random.normal(size=(400, 4))
    order = random.permuted(np.tile(np.arange(10), (1_000, 1)), axis=1)
    documents = 10 * queries[:, None] + order
    wanted = np.exp(pull * features[documents, 1]) * np.arange(1, 11) ** -0.7
    clicked = np.zeros(10_000, dtype=np.int64)
    clicked[random.choice(10_000, 300, replace=False, p=wanted.ravel() / wanted.sum())] = 1
    return ClickLog.of(
        features=features,
        documents=documents.ravel(),
        offsets=np.arange(0, 10_001, 10),
        clicks=clicked,
        queries=queries,
    )


@pytest.mark.parametrize(("pull", "noise"), [(0.0, True), (1.5, False)])
def test_a_random_order_leaves_nothing_to_correct_unless_its_clicks_are_noise(pull: float, noise: bool) -> None:  # noqa: FBT001
    """Either way raw and debiased clicks are near each other, and halves agree on nothing beside raw clicks."""
    found = Gain.of(_random_order(pull=pull))
    assert found.correction is not None
    assert found.correction.agreement < 0
    assert 1 - found.correction.known**2 < 0.1
    assert ("mostly noise" in found.section().answer) is noise
    assert ("log more queries" in found.section().advice.lower()) is noise


@pytest.mark.parametrize(("new", "verdict"), [(0.1, Verdict.UNKNOWN), (0.099, Verdict.CAREFUL)])
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


@pytest.mark.parametrize(("share", "said"), [(0.02, "Debiasing should pay:"), (1.0, "Debiasing will hardly pay:")])
def test_the_same_users_behind_a_weak_and_a_good_ranker(share: float, said: str) -> None:
    judged = letor_like(train_queries=500, validation_queries=1, test_queries=1).train
    log = simulate(judged, click_model("trust"), impressions=250_000, svm_share=share, rankings=2, noise=0.2)
    assert Gain.of(log).headline().startswith(said)


def test_the_doctor_says_it_in_its_first_line_unless_the_log_cannot_be_debiased() -> None:
    judged = letor_like(train_queries=100, validation_queries=1, test_queries=1).train
    log = simulate(judged, click_model("trust"), impressions=20_000, rankings=3, noise=0.5)
    found = diagnose(log, samples=5, draws=19)
    assert found.gain.headline()
    assert found.headline.endswith(found.gain.headline(told=found.position_bias.told))
    few = replace(log, clicks=np.where(np.arange(len(log.clicks)) < 3, log.clicks, 0))
    assert "pay" not in diagnose(few, samples=5, draws=19).headline

"""Does a criterion without labels name the better ranker? By intervals by hand, and rankers of known quality."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ultr.arrays import Doubles, Floats, Integers
from ultr.bias import ResampledPropensities
from ultr.clicks.model import EXAMINATION
from ultr.clicks.position_based import PositionBased
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.evaluation import evaluate
from ultr.experiments.model_selection import (
    IN_LISTS,
    LIKELIHOOD,
    MEASURE,
    RIGHT,
    UNSURE,
    VALUE,
    WRONG,
    _verdict,
    _verdicts,
)
from ultr.metrics import Interval
from ultr.simulation.log import simulate

POSITIONS, HIGHEST = 6, 4
THETA = np.array(EXAMINATION[:POSITIONS])
TINY = np.nextafter(0, 1)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.05, 0.2, "better one named"),
        (TINY, 0.2, "better one named"),
        (0.0, 0.2, "cannot tell"),
        (-0.1, 0.2, "cannot tell"),
        (-0.2, 0.1, "cannot tell"),
        (0.0, 0.0, "cannot tell"),
        (-0.2, 0.0, "cannot tell"),
        (-0.2, -TINY, "worse one named"),
        (-0.2, -0.05, "worse one named"),
        (np.nan, np.nan, "cannot tell"),
    ],
)
def test_an_interval_names_a_ranker_if_it_leaves_out_0(low: float, high: float, verdict: str) -> None:
    """The interval is of the lead of the ranker that labels call the better one."""
    assert _verdict(Interval((low + high) / 2, low, high)) == verdict


class ByGrade:
    """A ranker that knows the grades and the clicks that they get, or takes each grade for its opposite."""

    def __init__(self, *, upside_down: bool) -> None:
        self.upside_down = upside_down

    def score(self, features: Floats, offsets: Integers) -> Floats:
        return -features[:, 0] if self.upside_down else features[:, 0]

    def click_probabilities(self, log: ClickLog) -> Doubles:
        grades = log.features[log.documents, 0].astype(np.float64)
        chances: Doubles = 0.05 + 0.2 * (HIGHEST - grades if self.upside_down else grades)
        chances *= THETA[log.position.values]
        return chances

    def click_shares(self, log: ClickLog) -> Doubles:
        chances = self.click_probabilities(log)
        chances /= np.repeat(np.add.reduceat(chances, log.offsets[:-1]), log.lengths)
        return chances


GOOD, BAD = ByGrade(upside_down=False), ByGrade(upside_down=True)


@pytest.fixture(scope="module")
def lists() -> JudgedLists:
    labels = np.random.default_rng(0).integers(HIGHEST + 1, size=POSITIONS * 60)
    return JudgedLists.of(
        features=labels[:, None], labels=labels, offsets=range(0, len(labels) + 1, POSITIONS), max_label=HIGHEST
    )


@pytest.fixture(scope="module")
def log(lists: JudgedLists) -> ClickLog:
    scores = np.random.default_rng(1).normal(size=len(lists.labels))
    clicks = PositionBased(examination=EXAMINATION[:POSITIONS])
    return simulate(lists, clicks, scores=scores, impressions=40 * lists.queries, rankings=4, noise=0.5)


def verdicts(rankers: dict[str, Any], values: dict[str, Doubles], log: ClickLog) -> dict[str, list[str]]:
    return _verdicts(rankers, values, log, ResampledPropensities.of_log(log, samples=20))


@pytest.mark.parametrize("names", [("good", "bad"), ("bad", "good")])
def test_every_criterion_names_the_ranker_that_is_better_by_labels(
    names: tuple[str, str], lists: JudgedLists, log: ClickLog
) -> None:
    rankers = {name: {"good": GOOD, "bad": BAD}[name] for name in names}
    values = {name: evaluate(ranker, lists, [MEASURE]).values[MEASURE] for name, ranker in rankers.items()}
    assert np.nanmean(values["good"]) > np.nanmean(values["bad"])
    every = (LIKELIHOOD, IN_LISTS, VALUE)
    assert verdicts(rankers, values, log) == {key: [RIGHT] for key in every}
    # Were labels to call the other one better, the same clicks would name the worse one.
    turned = {"good": values["bad"], "bad": values["good"]}
    assert verdicts(rankers, turned, log) == {key: [WRONG] for key in every}
    # Clicks cannot tell a ranker from itself, whatever labels say; nor is there a verdict where these do not.
    assert verdicts(dict.fromkeys(names, GOOD), values, log) == {key: [UNSURE] for key in every}
    assert verdicts(rankers, dict.fromkeys(names, values["good"]), log) == {key: [] for key in every}


def test_without_propensities_there_is_no_verdict_by_value(lists: JudgedLists, log: ClickLog) -> None:
    values = {"good": np.array([1.0, 0.9, np.nan]), "bad": np.array([0.5, 0.3, np.nan])}
    assert _verdicts({"good": GOOD, "bad": BAD}, values, log, None) == {LIKELIHOOD: [RIGHT], IN_LISTS: [RIGHT]}  # type: ignore[dict-item]

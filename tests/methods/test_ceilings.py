"""Where methods arrive that see every grade everywhere, in an endless log, with features that tell the grade."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ultr.clicks import ClickMatrix
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.methods import METHODS
from ultr.relevance.mlp import MLP
from ultr.simulation import ceiling_scores, simulate

GRADES, POSITIONS = 5, 10
RATES = ClickMatrix().rates(GRADES - 1)


def judged_lists() -> JudgedLists:
    """Lists with two documents of every grade, which all stand equally often at every position."""
    random = np.random.default_rng(0)
    shifted = (np.arange(POSITIONS) + np.arange(GRADES)[:, None]) % GRADES
    labels = np.concatenate([random.permutation(GRADES)[shifted].ravel() for _ in range(20)])
    return JudgedLists.of(
        features=np.eye(GRADES)[labels], labels=labels, offsets=np.arange(0, len(labels) + 1, POSITIONS)
    )


def endless_log(judged: JudgedLists) -> ClickLog:
    return simulate(judged, ClickMatrix(), scores=-np.arange(float(judged.documents)), impressions=10**13)


def order(method: str, **options: Any) -> list[int]:
    """The grades from best to worst, as the method has learned them."""
    relevance = MLP(hidden=(16,), recipe="collapsed", steps=400, batch_size=100)
    fitted = METHODS[method](relevance=relevance, **options).fit(endless_log(judged_lists()))
    best_first: list[int] = np.argsort(-fitted.score(np.eye(GRADES, dtype=np.float32), np.array([0, GRADES]))).tolist()
    return best_first


@pytest.mark.parametrize(
    ("method", "readout", "options"),
    [
        ("click", "rate", {}),
        ("two-tower", "rate", {}),
        ("regression-em", "rate", {}),
        ("inverse-propensity", "relative-rate", {"propensities": tuple(RATES.mean(axis=0) / RATES[:, 0].mean())}),
        ("dla", "relative-rate", {}),
        ("vectorization", "log-rate", {"dimension": GRADES}),
        # Weights of positions are one more factor of the position, which the observation takes in.
        ("vectorization", "log-rate", {"dimension": GRADES, "weight_power": 1.0}),
    ],
)
def test_a_method_that_learns_perfectly_orders_the_grades_as_its_ceiling_says(
    method: str, readout: str, options: dict[str, Any]
) -> None:
    grades = JudgedLists.of(features=np.eye(GRADES), labels=np.arange(GRADES), offsets=[0, GRADES])
    wanted = ceiling_scores(grades, ClickMatrix(), readout=readout)
    assert order(method, **options) == np.argsort(-wanted).tolist()


def test_two_classes_of_relevance_order_the_grades_in_a_way_of_their_own() -> None:
    assert order("affine") == [3, 4, 1, 2, 0]

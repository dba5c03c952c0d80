"""Do the features give the position away? From a log to the sentence."""

from __future__ import annotations

import numpy as np
import pytest

from ultr.bias.predictability import Predictability
from ultr.data.click_log import ClickLog
from ultr.diagnosis import Verdict
from ultr.diagnosis.position_predictability import PositionPredictability

HIDE = "A model can then hide position bias in relevance, and still predict every click."
ADVICE = (
    "Take features out that hold the old ranker's score or place, log some random swaps, and do not choose a model by "
    "click likelihood alone."
)


@pytest.mark.parametrize(
    ("share", "verdict", "percent"),
    [
        (-0.02, Verdict.GOOD, 0),
        (0.494, Verdict.GOOD, 49),
        (0.5, Verdict.CAREFUL, 50),
        (0.894, Verdict.CAREFUL, 89),
        (0.9, Verdict.BAD, 90),
    ],
)
@pytest.mark.parametrize("missing", [True, False])
def test_what_is_said_of_a_share(share: float, verdict: Verdict, percent: int, missing: bool) -> None:  # noqa: FBT001
    found = PositionPredictability(Predictability(share, 0.954, "queries"), "", missing=missing).section()
    filled = ", the median where one is missing," if missing else ""
    said = (
        f"A linear function of the features{filled} explains {percent}% of where documents stand on pages it has not "
        "seen; knowing each document would explain 95%."
    )
    assert found.verdict is verdict
    assert found.answer == (said if verdict is Verdict.GOOD else f"{said} {HIDE}")
    assert found.advice == ("" if verdict is Verdict.GOOD else ADVICE)
    assert found.numbers["r_squared"] == share


def _log(columns: int, *, gap: bool = False, pages: int = 60) -> ClickLog:
    """Features that are the place of the document, on pages that never change."""
    features = np.tile(np.arange(3.0), pages)[:, None] + np.arange(columns)
    if gap:
        features[0, 0] = np.nan
    return ClickLog.of(
        features=features,
        documents=np.arange(3 * pages),
        offsets=np.arange(0, 3 * pages + 1, 3),
        clicks=np.arange(3 * pages) % 2,
        queries=np.arange(pages),
    )


@pytest.mark.parametrize(("columns", "gap"), [(1, False), (1, True), (2, False)])
def test_features_that_are_the_place_explain_all_of_it(columns: int, gap: bool) -> None:  # noqa: FBT001
    found = PositionPredictability.of(_log(columns, gap=gap))
    assert found.predictability is not None
    assert found.predictability.r_squared > 0.95
    assert found.missing is gap


def test_a_log_without_features_or_without_lists_of_two_cannot_say() -> None:
    none = PositionPredictability.of(_log(0)).section()
    assert (none.verdict, none.answer) == (Verdict.UNKNOWN, "The log has no features.")
    assert none.advice == "Prepare the log with --features or --features-from; a ranker needs them."
    alone = ClickLog.of(features=np.eye(3), documents=[0, 1, 2], offsets=[0, 1, 2, 3], clicks=[1, 0, 0])
    found = PositionPredictability.of(alone)
    assert found.predictability is None
    assert found.section().verdict is Verdict.UNKNOWN

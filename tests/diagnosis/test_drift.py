from __future__ import annotations

import numpy as np
import pytest
from tests.diagnosis.logs import thorough

from ultr.diagnosis import Verdict
from ultr.diagnosis.drift import Drift, no_time

PAGES = 40_000


def test_a_log_without_time_does_not_tell() -> None:
    assert Drift.of(thorough()) is None
    assert no_time().verdict is Verdict.UNKNOWN
    assert "--time" in no_time().advice


def test_the_same_clicks_all_along_are_no_drift() -> None:
    drift = Drift.of(thorough(periods=np.arange(PAGES) // (PAGES // 10)))
    assert drift is not None
    assert drift.ratio.low < 1 < drift.ratio.high
    assert drift.new_queries == 0
    assert drift.section().verdict is Verdict.GOOD
    assert len(drift.period_names) == 10
    np.testing.assert_allclose(drift.by_position, 1, atol=0.1)


def test_a_page_that_loses_a_fifth_of_its_clicks_is_found_with_its_size() -> None:
    periods = np.arange(PAGES) // (PAGES // 10)
    clicks = thorough_clicks() & ((np.random.default_rng(1).random((PAGES, 4)) < 0.8) | (periods < 5)[:, None])
    drift = Drift.of(thorough(periods=periods, clicks=clicks.reshape(-1)))
    assert drift is not None
    assert drift.ratio.mean == pytest.approx(0.8, abs=0.03)
    assert drift.ratio.low < 0.8 < drift.ratio.high
    finding = drift.section()
    assert finding.verdict is Verdict.CAREFUL
    assert "fewer clicks" in finding.answer


def test_a_change_of_what_is_shown_where_is_no_drift_of_clicks() -> None:
    """The last periods show the lower half of the page only half the time; rates at each position are the same."""
    random = np.random.default_rng(3)
    log = thorough(periods=np.arange(PAGES) // (PAGES // 10))
    assert log.periods is not None
    late = (log.periods >= 8) & (random.random(log.lists) < 0.5)
    drift = Drift.of(log.select(np.flatnonzero(~late)))
    assert drift is not None
    assert drift.section().verdict is Verdict.GOOD


def test_new_queries_are_counted() -> None:
    """Queries come one after the other, so that each period has its own."""
    log = thorough(periods=(np.arange(PAGES) % 200) // 20)
    drift = Drift.of(log)
    assert drift is not None
    assert drift.new_queries == 1
    assert "split by query" in drift.section().advice.lower()


def test_queries_that_were_shown_once_are_not_held_against_a_log() -> None:
    drift = Drift.of(thorough(pages=200, periods=np.arange(200) // 20))
    assert drift is not None
    assert drift.new_queries == 1
    finding = drift.section()
    assert "No query was shown twice" in finding.answer
    assert "split by query" not in finding.advice.lower()


def thorough_clicks() -> np.ndarray:
    random = np.random.default_rng(0)
    queries = np.arange(PAGES) % 200
    order = random.permuted(np.tile(np.arange(4), (PAGES, 1)), axis=1)
    relevance = random.uniform(0.1, 0.8, size=800)
    clicks: np.ndarray = random.random((PAGES, 4)) < relevance[4 * queries[:, None] + order] * [1.0, 0.6, 0.4, 0.2]
    return clicks

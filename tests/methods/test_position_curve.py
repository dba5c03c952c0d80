from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.methods.test_safe import DOCUMENTS, NETWORK, THETA, shown

from ultr.data.click_log import ClickLog
from ultr.errors import DataError
from ultr.methods import DLA, ClickBaseline
from ultr.methods.position_curve import SMALLEST, PositionCurve


def with_swaps(impressions: int) -> ClickLog:
    """Both orders of two documents with the expected clicks of propensities 1 and 1/4."""
    rates = np.array([0.8, 0.4])
    clicks = [rates * [1, 0.25], rates[::-1] * [1, 0.25]]
    return ClickLog.of(
        features=[[1.0, 0.0], [0.0, 1.0]],
        documents=[0, 1, 1, 0],
        offsets=[0, 2, 4],
        clicks=np.rint(np.concatenate(clicks) * impressions).astype(np.int64),
        impressions=[impressions, impressions],
        queries=["q", "q"],
    )


def test_swaps_tell_the_curve_whatever_the_ranker_has_learned() -> None:
    log = with_swaps(10_000)
    for ranker in (ClickBaseline(relevance=NETWORK).fit(log).ranker_, DLA(relevance=NETWORK).fit(log).ranker_):
        found = PositionCurve.of(log, ranker)
        assert found.source == "swaps"
        np.testing.assert_allclose(found.values, [1, 0.25], rtol=1e-3)


def test_without_swaps_it_is_the_curve_of_the_ranker() -> None:
    log = shown(100, 1_000, good_is_last=True)
    ranker = DLA(relevance=NETWORK).fit(log).ranker_
    found = PositionCurve.of(log, ranker)
    assert found.source == "model"
    # One propensity for each position: all documents have the same ratios.
    np.testing.assert_allclose(found.values, ranker.click_ratios(log, "position")[0], rtol=1e-5)
    assert "those that dla has learned" in found.sentence("dla")


def test_a_ranker_that_learns_no_bias_leaves_it_unknown() -> None:
    log = shown(20, 10, good_is_last=True)
    found = PositionCurve.of(log, ClickBaseline(relevance=NETWORK).fit(log).ranker_)
    assert found.source == "unknown"
    assert found.values.tolist() == [1.0] * DOCUMENTS
    assert "Propensities are not known" in found.sentence("click")


def test_too_few_clicks_on_swapped_documents_tell_nothing() -> None:
    log = with_swaps(20)
    assert PositionCurve.of(log, ClickBaseline(relevance=NETWORK).fit(log).ranker_).source == "unknown"


def test_given_propensities_come_first_and_must_be_enough() -> None:
    log = with_swaps(10_000)
    ranker = ClickBaseline(relevance=NETWORK).fit(log).ranker_
    assert PositionCurve.of(log, ranker, [1.0, 0.5, 0.3]).values.tolist() == [1.0, 0.5]
    assert PositionCurve.of(log, ranker, [0.5, 0.25]).values.tolist() == [1.0, 0.5]
    with pytest.raises(DataError, match="shows 2 positions, but 1 propensities"):
        PositionCurve.of(log, ranker, [1.0])
    for wrong in (0.0, np.inf, np.nan):
        with pytest.raises(DataError, match=f"propensities must be numbers above 0, got {wrong:g}"):
            PositionCurve.of(log, ranker, [1.0, wrong])


def test_small_propensities_are_raised_where_clicks_are_divided_by_them() -> None:
    curve = PositionCurve(np.array([2.0, 1.0, 1e-9]), "given")
    assert curve.clipped.tolist() == [2.0, 1.0, 2 * SMALLEST]
    assert replace(curve, values=THETA).clipped.tolist() == THETA.tolist()

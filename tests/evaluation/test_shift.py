from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.test_counterfactual import ByFirstFeature, two_queries

from ultr.arrays import Floats, Integers
from ultr.data.click_log import ClickLog
from ultr.evaluation import shift_from_log
from ultr.metrics import ExposureShift


class AsTheLog(ByFirstFeature):
    def score(self, features: Floats, offsets: Integers) -> Floats:
        return -features[:, 0]


def test_the_shift_from_the_lists_as_shown_by_hand() -> None:
    # Shown: q has 0 1 2 eight times of ten and else 1 0 2, r has 3 4; the ranker turns all of them around.
    shown = np.array([0.9, 0.6, 1 / 3, 1.0, 0.5])
    ranked = np.array([1 / 3, 0.5, 1.0, 0.5, 1.0])
    found = shift_from_log(ByFirstFeature(), two_queries())
    assert found.growth == pytest.approx(max(ranked / shown)) == 3
    assert found.fall == pytest.approx(max(shown / ranked)) == pytest.approx(2.7)
    # Weighed by impressions: 10 each of 2.7, 1.2 and 3, 5 each of 2 and 2.
    assert found.median == 2


def test_the_order_of_the_log_shifts_nothing() -> None:
    log = ClickLog.of(features=[[1.0], [2.0]], documents=[0, 1], offsets=[0, 2], clicks=[1, 0], impressions=[4])
    assert shift_from_log(AsTheLog(), log) == ExposureShift(1.0, 1.0, 1.0)


def test_another_ranker_can_be_what_exposure_shifts_from() -> None:
    assert shift_from_log(ByFirstFeature(), two_queries(), base=ByFirstFeature()) == ExposureShift(1.0, 1.0, 1.0)
    assert shift_from_log(ByFirstFeature(), two_queries(), base=AsTheLog()).growth == pytest.approx(3)


def test_documents_count_by_the_impressions_of_their_query() -> None:
    # Two documents of a query with 100 impressions change places, three of one with a single impression stay.
    log = ClickLog.of(
        features=[[1.0], [2.0], [9.0], [8.0], [7.0]],
        documents=[0, 1, 2, 3, 4],
        offsets=[0, 2, 5],
        clicks=[1, 0, 0, 0, 0],
        impressions=[100, 1],
        queries=["head", "tail"],
    )
    assert shift_from_log(ByFirstFeature(), log).median == 2

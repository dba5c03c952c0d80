"""Scores of candidates, which must not depend on how many are scored at once."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from itertools import pairwise

import numpy as np
import pytest
from tests.evaluation.test_evidence import log_of_four_queries

from ultr.arrays import Floats, Integers
from ultr.data.click_log import ClickLog
from ultr.evaluation import Evidence, shift_from_log
from ultr.evaluation.placement import scores_of

PLACEMENT = import_module("ultr.evaluation.placement")


class WithinList:
    """Scores a document by its first feature less the mean of its list."""

    def score(self, features: Floats, offsets: Integers) -> Floats:
        found = features[:, 0].astype(np.float64)
        for start, end in pairwise(offsets):
            found[start:end] -= found[start:end].mean()
        return found.astype(np.float32)


@pytest.mark.parametrize("values", [2**22, 4, 1])
def test_lists_are_scored_whole_however_few_values_are_taken_at_once(
    values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of_four_queries()
    wide = replace(log, features=np.repeat(log.features, 3, axis=1), feature_names=tuple("abc"))
    monkeypatch.setattr(PLACEMENT, "_VALUES", values)
    evidence = Evidence.of(wide)
    expected = [-4 / 3, -1 / 3, 5 / 3, -0.5, 0.5, 0.0, -2.0, 0.0, 2.0]
    np.testing.assert_allclose(scores_of(WithinList(), evidence), expected, rtol=1e-6)


def test_a_log_without_features_can_be_scored() -> None:
    class AllAlike:
        def score(self, features: Floats, offsets: Integers) -> Floats:
            return np.zeros(len(features), dtype=np.float32)

    log = replace(log_of_four_queries(), features=np.zeros((8, 0), dtype=np.float32), feature_names=())
    assert scores_of(AllAlike(), Evidence.of(log)).tolist() == [0.0] * 9


def test_exposure_moves_within_the_pages_of_a_query_that_shows_a_few_documents_at_a_time() -> None:
    """Five documents of a query, two at a time, and two of another; in the order of the log nothing moves."""

    class Ordered:
        def __init__(self, sign: float) -> None:
            self.sign = sign

        def score(self, features: Floats, offsets: Integers) -> Floats:
            return self.sign * features[:, 0]

    log = ClickLog.of(
        features=np.arange(7.0)[:, None],
        documents=[0, 1, 2, 3, 4, 5, 6],
        offsets=[0, 2, 4, 5, 7],
        clicks=[1, 0, 0, 0, 0, 1, 0],
        impressions=[4, 2, 2, 8],
        queries=["five", "five", "five", "two"],
    )
    # By the log: 1, 1/2 in half of eight impressions, then 1 and 1/2 in a quarter, and 1 in a quarter.
    shown = np.array([0.5, 0.25, 0.25, 0.125, 0.25, 1.0, 0.5])
    turned = np.array([0.25, 0.5, 0.125, 0.25, 0.25, 0.5, 1.0])
    kept, found = (shift_from_log(Ordered(sign), log) for sign in (-1.0, 1.0))
    assert (kept.growth, kept.fall, kept.median) == pytest.approx((1, 1, 1))
    assert found.growth == pytest.approx(max(turned / shown)) == pytest.approx(2.0)
    assert found.fall == pytest.approx(max(shown / turned)) == pytest.approx(2.0)

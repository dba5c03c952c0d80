from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ultr.arrays import Doubles
from ultr.errors import DataError
from ultr.metrics import ExposureShift, exposure_shift

EXPOSURES = arrays(np.float64, 7, elements=st.floats(0.01, 1))


def test_growth_fall_and_median_by_hand() -> None:
    before, after = np.array([1.0, 0.5, 0.25, 0.2]), np.array([0.25, 1.0, 0.5, 0.2])
    assert exposure_shift(before, after) == ExposureShift(growth=2.0, fall=4.0, median=2.0)
    # Weights move the median only: here most documents stay where they were.
    assert exposure_shift(before, after, np.array([1.0, 1.0, 1.0, 9.0])) == ExposureShift(2.0, 4.0, 1.0)


@given(EXPOSURES)
def test_the_same_exposure_is_no_shift(exposure: Doubles) -> None:
    assert exposure_shift(exposure, exposure) == ExposureShift(1.0, 1.0, 1.0)


@given(EXPOSURES, EXPOSURES)
def test_the_way_back_is_the_same_way(before: Doubles, after: Doubles) -> None:
    there, back = exposure_shift(before, after), exposure_shift(after, before)
    assert (there.growth, there.fall) == pytest.approx((back.fall, back.growth))
    assert there.median == pytest.approx(back.median)
    assert 1 <= there.median <= max(there.growth, there.fall) * (1 + 1e-12)


def test_documents_without_exposure_and_arrays_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="an exposure above 0 in both orders"):
        exposure_shift(np.array([0.0, 1.0]), np.ones(2))
    with pytest.raises(DataError, match="an exposure above 0 in both orders"):
        exposure_shift(np.ones(2), np.array([1.0, 0.0]))
    with pytest.raises(DataError, match="2 exposures before, but 3 after"):
        exposure_shift(np.ones(2), np.ones(3))


def test_no_document_is_no_shift() -> None:
    assert exposure_shift(np.empty(0), np.empty(0)) == ExposureShift(1.0, 1.0, 1.0)


def test_the_median_is_reached_at_half_of_the_weight() -> None:
    before, after = np.ones(3), np.array([1.0, 2.0, 4.0])
    for weights, median in (([1.0, 1.0, 1.0], 2.0), ([2.0, 1.0, 1.0], 1.0), ([1.9, 1.0, 1.0], 2.0)):
        assert exposure_shift(before, after, np.array(weights)).median == median

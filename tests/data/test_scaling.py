from __future__ import annotations

import numpy as np
import pytest

from ultr.data.scaling import FeatureScaling
from ultr.errors import DataError


def test_training_features_fill_the_range_from_minus_one_to_one() -> None:
    features = np.random.default_rng(0).lognormal(sigma=3, size=(500, 6)).astype(np.float32)
    scaled = FeatureScaling.fit(features).apply(features)
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled.min(axis=0), -1, atol=1e-5)
    np.testing.assert_allclose(scaled.max(axis=0), 1, atol=1e-5)


def test_it_is_linear_between_and_beyond_the_training_values() -> None:
    scaling = FeatureScaling.fit(np.array([[10.0], [30.0]], dtype=np.float32))
    values = np.array([[10.0], [15.0], [20.0], [30.0], [40.0]], dtype=np.float32)
    assert scaling.apply(values)[:, 0].tolist() == [-1, -0.5, 0, 1, 2]


def test_a_constant_feature_becomes_zero_everywhere() -> None:
    scaling = FeatureScaling.fit(np.full((3, 1), 7, dtype=np.float32))
    assert scaling.apply(np.array([[7.0], [100.0]], dtype=np.float32)).tolist() == [[0], [0]]


def test_large_values_close_to_each_other_keep_their_digits() -> None:
    features = np.array([[1e6], [1e6 + 1], [1e6 + 2]], dtype=np.float32)
    assert FeatureScaling.fit(features).apply(features)[:, 0].tolist() == [-1, 0, 1]


def test_the_full_range_of_float32_does_not_overflow() -> None:
    features = np.array([[-3e38], [3e38]], dtype=np.float32)
    np.testing.assert_allclose(FeatureScaling.fit(features).apply(features)[:, 0], [-1, 1], rtol=1e-5)


def test_missing_values_are_left_out_of_range_and_median() -> None:
    features = np.array([[0, np.nan, 5], [4, np.nan, 5], [1, np.nan, np.nan]], dtype=np.float32)
    features[2, 0] = np.nan
    scaling = FeatureScaling.fit(features)
    assert scaling.minimum.tolist() == [0, 0, 5]
    assert scaling.maximum.tolist() == [4, 0, 5]
    assert scaling.typical.tolist() == [2, 0, 5]
    assert scaling.fill(features).tolist() == [[0, 0, 5], [4, 0, 5], [2, 0, 5]]
    assert scaling.apply(features).tolist() == [[-1, 0, 0], [1, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_infinite_values_are_refused_with_their_column(bad: float) -> None:
    with pytest.raises(DataError, match="feature column 2 holds infinite values"):
        FeatureScaling.fit(np.array([[0, bad], [1, 1]], dtype=np.float32))


def test_no_documents_cannot_be_scaled() -> None:
    with pytest.raises(DataError, match="without a document"):
        FeatureScaling.fit(np.zeros((0, 2), dtype=np.float32))

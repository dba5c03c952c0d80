from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ultr.data.bias_factor import (
    MOST_NUMBERS,
    BiasFactor,
    categorical_factor,
    factor_of,
    level_names,
    midpoints,
    numeric_factor,
    quantile_edges,
)
from ultr.data.click_log import ClickLog
from ultr.errors import DataError, OptionError, UltrWarning


def test_a_number_lies_in_the_bin_that_begins_at_or_below_it() -> None:
    factor = numeric_factor("pixels", [-5, 119.9, 120, 339, 340, 1e6], edges=[120, 340])
    assert factor.levels == ("<120", "120-340", ">=340")
    assert factor.values.tolist() == [0, 0, 1, 1, 2, 2]
    assert factor.values.dtype == np.int32
    assert factor.edges == (120.0, 340.0)


def test_names_of_levels_are_short_and_tell_negative_numbers_from_dashes() -> None:
    assert level_names([0.1, 0.25]) == ("<0.1", "0.1-0.25", ">=0.25")
    assert level_names([-3, 2]) == ("<-3", "-3 to 2", ">=2")
    assert level_names([7]) == ("<7", ">=7")
    assert len(set(level_names([340.1281, 340.12811]))) == 3


@given(
    st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=1, max_size=60),
    st.integers(2, 30),
)
def test_edges_by_quantiles_ascend_and_leave_no_bin_empty(values: list[float], bins: int) -> None:
    edges = quantile_edges(np.array(values), bins=bins)
    assert len(edges) < bins
    assert list(edges) == sorted(set(edges))
    counts = np.bincount(np.searchsorted(edges, values, side="right"), minlength=len(edges) + 1)
    assert (counts > 0).all()


def test_bins_by_quantiles_hold_about_as_many_each_and_begin_at_round_numbers() -> None:
    pixels = np.random.default_rng(0).exponential(600, size=20_000)
    factor = numeric_factor("pixels", pixels, bins=10)
    shares = np.bincount(factor.values) / len(pixels)
    # Each edge is at most a tenth of a bin off its quantile.
    np.testing.assert_allclose(shares, 0.1, atol=0.021)
    assert all(edge == round(edge) for edge in factor.edges)
    assert factor.edges == numeric_factor("pixels", pixels[::-1], bins=10).edges


def test_many_values_alike_share_a_bin() -> None:
    factor = numeric_factor("height", [600] * 90 + list(range(700, 710)))
    assert (factor.values[:90] == 0).all()
    assert len(factor.levels) <= 3
    assert numeric_factor("height", [600, 600]).levels == ("600",)


def test_missing_numbers_are_refused_because_they_belong_into_no_bin() -> None:
    with pytest.raises(DataError, match="'pixels' has 2 missing or infinite values of 3"):
        numeric_factor("pixels", [1.0, np.nan, np.inf])


@pytest.mark.parametrize("edges", [[], [3, 3], [2, 1], [1, np.nan], ["low"]], ids=str)
def test_edges_that_do_not_ascend_are_refused(edges: list[float]) -> None:
    with pytest.raises(OptionError, match="the edges of bias factor 'pixels' must be"):
        numeric_factor("pixels", [1, 2], edges=edges)


def test_the_ends_count_as_wide_as_the_bins_next_to_them() -> None:
    assert midpoints([120, 340]).tolist() == [10.0, 230.0, 450.0]
    assert midpoints([5]).tolist() == [4.5, 5.5]


def test_levels_that_are_numbers_stand_by_size_and_before_texts() -> None:
    factor = categorical_factor("row", ["10", "9", "other", "-1", "9"])
    assert factor.levels == ("-1", "9", "10", "other")
    assert factor.values.tolist() == [2, 1, 3, 0, 1]


def test_more_than_a_hundred_numbers_are_kept_in_bins_and_fewer_are_levels() -> None:
    few, many = np.arange(MOST_NUMBERS) * 1.5, np.arange(MOST_NUMBERS + 1) * 1.5
    assert len(factor_of("pixels", few).levels) == MOST_NUMBERS
    for values in (many, np.arange(MOST_NUMBERS + 1)):
        with pytest.warns(UltrWarning, match="'pixels' has 101 different numbers, so it is kept in 20 bins from <"):
            factor = factor_of("pixels", values)
        assert factor.edges
    assert len(factor_of("page", [str(value) for value in many]).levels) == MOST_NUMBERS + 1


def test_a_log_takes_numbers_as_bins_and_factors_as_they_are(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).uniform(0, 2_000, size=300)
    columns: dict[str, Any] = {
        "features": np.eye(3),
        "documents": [0, 1, 2] * 100,
        "offsets": range(0, 301, 3),
        "clicks": [1, 0, 0] * 100,
    }
    with pytest.warns(UltrWarning, match="kept in 20 bins"):
        log = ClickLog.of(**columns, pixels=pixels)
    assert len(log.factors[1].levels) == 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log = ClickLog.of(**columns, pixels=numeric_factor("whatever", pixels, edges=[500, 1_000]))
    assert log.factors[1].name == "pixels"
    assert log.factors[1].levels == ("<500", "500-1000", ">=1000")
    shown = np.bincount(np.searchsorted([500, 1_000], pixels, side="right"))
    assert log.totals(log.factors[1]).impressions.tolist() == shown.tolist()
    log.save(tmp_path / "log")
    assert ClickLog.load(tmp_path / "log").factors[1].edges == (500.0, 1_000.0)


def test_factors_stay_with_their_documents_when_positions_are_out_of_order() -> None:
    pixels = BiasFactor("pixels", np.array([1, 0], dtype=np.int32), ("<9", ">=9"), (9.0,))
    log = ClickLog.of(
        features=np.eye(2), documents=[1, 0], offsets=[0, 2], clicks=[0, 1], positions=[2, 1], pixels=pixels
    )
    assert log.documents.tolist() == [0, 1]
    assert log.factors[1].values.tolist() == [0, 1]


def test_a_factor_with_another_number_of_values_is_refused() -> None:
    with pytest.raises(DataError, match="device must have one value for each of 2 shown documents"):
        ClickLog.of(features=np.eye(2), documents=[1, 0], offsets=[0, 2], clicks=[0, 1], device=["phone"])

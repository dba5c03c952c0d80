"""Values of categorical features and their codes, in frames, files and logs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ultr.data.click_log import ClickLog
from ultr.data.named_features import match_features
from ultr.datasets.table_file import read_table
from ultr.errors import DataError, UltrWarning

NAMES = ("price", "brand")
CATEGORIES = {"brand": ("nike", "NA", "17", "other")}


def _codes(values: Any, *, values_of: tuple[str, ...] = CATEGORIES["brand"]) -> list[float | None]:
    """The codes of some values of a brand, None for a missing one."""
    frame = {"brand": values, "price": np.zeros(len(values))}
    found = match_features(frame, NAMES, categories={"brand": values_of})[:, 1].tolist()
    return [None if np.isnan(code) else code for code in found]


@pytest.mark.parametrize(
    "make", [list, np.array, pa.array, pd.Series, pd.Categorical, pl.Series, lambda v: pa.array(v).dictionary_encode()]
)
def test_values_become_their_places(make: Any) -> None:
    assert _codes(make(["NA", "nike", "other", "17"])) == [1, 0, 3, 2]


@pytest.mark.parametrize("values", [[17, None], [17.0, float("nan")], ["17", None], ["17", ""]], ids=str)
def test_numbers_are_values_as_they_are_written_and_gaps_are_missing(values: Any) -> None:
    assert _codes(pa.array(values)) == [2, None]


def test_an_empty_text_may_be_a_value() -> None:
    assert _codes(["", "nike"], values_of=("nike", "")) == [1, 0]


def test_fractions_and_truth_are_values_too() -> None:
    assert _codes([0.5, 2.0], values_of=("0.5", "2")) == [0, 1]
    assert _codes([True, False], values_of=("false", "true")) == [1, 0]


@pytest.mark.parametrize(
    ("values_of", "code", "words"), [(CATEGORIES["brand"], 3, "'other'"), (("nike",), None, "missing")]
)
def test_values_that_were_never_seen_are_counted_in_one_warning(
    values_of: tuple[str, ...], code: float | None, words: str
) -> None:
    message = f"not seen in training: 3 of 'brand', such as 'puma', count as {words}$"
    with pytest.warns(UltrWarning, match=message) as warned:
        assert _codes(["puma", "asics", "puma", "nike", None], values_of=values_of) == [code, code, code, 0, None]
    assert len(warned) == 1


def test_lists_are_no_values() -> None:
    with pytest.raises(DataError, match=r"column 'brand' of the frame holds list<.*>, no values of a category"):
        _codes(pa.array([["nike"]]))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_judged_lists_of_a_file_are_read_with_the_dictionary_of_a_log(tmp_path: Path, ending: str) -> None:
    frame = pd.DataFrame(
        {
            "query": ["b", "a", "b", "b"],
            "label": [0, 1, 2, 0],
            "brand": ["nike", "NA", "puma", None],
            "price": [1.0, 2.0, 3.0, 4.0],
        }
    )
    path = tmp_path / f"judged.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    with pytest.warns(UltrWarning, match=r"judged\.(csv|parquet) has values .* 1 of 'brand', such as 'puma'"):
        lists = read_table(path, features=NAMES, categories=CATEGORIES)
    np.testing.assert_array_equal(lists.features, [[1, 0], [3, 3], [4, np.nan], [2, 1]])
    with pytest.raises(DataError, match="brand"):
        read_table(path, features=NAMES)


def _log(values: tuple[str, ...], codes: list[float]) -> ClickLog:
    return ClickLog.of(
        features=np.column_stack([np.arange(len(codes)), codes]),
        documents=np.arange(len(codes)),
        offsets=[0, len(codes)],
        clicks=[1] + [0] * (len(codes) - 1),
        feature_names=NAMES,
        categories={"brand": values},
    )


def test_a_log_gets_the_codes_of_another_dictionary() -> None:
    log = _log(("a", "b", "c"), [0, 1, 2, np.nan, 1])
    with pytest.warns(UltrWarning, match="the log has .* 2 of 'brand', such as 'b', count as missing"):
        found = log.with_categories({"brand": ("c", "a")})
    np.testing.assert_array_equal(found.features[:, 1], [1, np.nan, 0, np.nan, np.nan])
    np.testing.assert_array_equal(found.features[:, 0], log.features[:, 0])
    assert found.categories == {"brand": ("c", "a")}
    assert log.with_categories({"brand": ("a", "b", "c")}) is log


def test_categories_are_not_taken_for_numbers_nor_numbers_for_categories() -> None:
    log = _log(("a", "b"), [0, 1])
    with pytest.raises(DataError, match="the log has categories of 'brand', of which the ranker knows numbers"):
        log.with_categories({})
    with pytest.raises(DataError, match="the log has numbers as 'brand', of which the ranker knows categories"):
        replace(log, categories={}).with_categories(log.categories)

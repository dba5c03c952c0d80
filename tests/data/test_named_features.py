from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from typing import Any

import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ultr.data.named_features import are_numbers, column_order, match_features
from ultr.errors import DataError, OptionError

NAMES = ("bm25", "age", "price")
COLUMNS: dict[str, Any] = {"price": [5, 6], "bm25": [0.5, 1.5], "age": [1.0, 2.0]}
MATRIX = [[0.5, 1.0, 5.0], [1.5, 2.0, 6.0]]

frames = pytest.mark.parametrize(
    "make",
    [
        dict,
        pa.table,
        pd.DataFrame,
        pl.DataFrame,
        pl.LazyFrame,
        lambda columns: narwhals.from_native(pl.DataFrame(columns)),
    ],
)


@frames
def test_every_frame_gives_the_matrix_in_the_order_of_the_ranker(make: Any) -> None:
    matrix = match_features(make(COLUMNS), NAMES)
    assert matrix.dtype == np.float32
    assert matrix.tolist() == MATRIX


@frames
def test_the_order_of_the_columns_does_not_matter(make: Any) -> None:
    turned = dict(reversed(COLUMNS.items()))
    assert match_features(make(turned), NAMES).tolist() == MATRIX


def test_the_index_of_a_pandas_frame_is_no_column() -> None:
    frame = pd.DataFrame(COLUMNS, index=pd.Index(["a", "b"], name="document"))
    assert match_features(frame, NAMES).tolist() == MATRIX
    assert match_features(frame[frame["age"] > 1], NAMES).tolist() == MATRIX[1:]


def test_columns_that_are_declared_as_ids_are_no_features() -> None:
    frame = COLUMNS | {"query": ["a", "a"], "document": [7, 8]}
    assert match_features(frame, NAMES, ids=("query", "document", "label")).tolist() == MATRIX


def test_numbers_of_every_kind_are_taken() -> None:
    frame = {"bm25": [True, False], "age": np.array([1, 2], dtype=np.uint8), "price": [Decimal("0.5"), Decimal("2")]}
    assert match_features(frame, NAMES).tolist() == [[1.0, 1.0, 0.5], [0.0, 2.0, 2.0]]
    categories = pa.table({"bm25": pa.array([3, 4]).dictionary_encode()})
    assert match_features(categories, ["bm25"]).tolist() == [[3.0], [4.0]]


def test_numbered_columns_are_matched_by_their_numbers() -> None:
    assert match_features(pd.DataFrame({2: [5.0], 1: [4.0]}), ["1", "2"]).tolist() == [[4.0, 5.0]]


def test_a_frame_without_rows_has_no_candidates() -> None:
    assert match_features({name: np.empty(0) for name in NAMES}, NAMES).shape == (0, 3)


@frames
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"bm25": None}, r"the frame lacks 1 of the 3 features of the ranker: 'bm25'; give them under these names"),
        ({"bm25": None, "age": None}, r"lacks 2 of the 3 features of the ranker: 'bm25', 'age'"),
        ({"bm25": None, "BM_25": [1, 2]}, r"lacks 1 .*: 'bm25'; is it 'BM_25', which the ranker does not know\?"),
        ({"title": ["a", "b"], "url": ["c", "d"]}, r"columns that the ranker does not know: 'title', 'url'; leave out"),
        ({"age": ["old", "new"]}, r"column 'age' of the frame holds .*, such as 'old', no numbers"),
        ({"age": [1.0, 1e300]}, r"column 'age' of the frame is infinite or too large in row 2; mend it first"),
        ({"age": [float("-inf"), 1.0]}, r"column 'age' of the frame is infinite or too large in row 1"),
    ],
)
def test_what_does_not_fit_is_named(make: Any, change: dict[str, Any], sentence: str) -> None:
    columns = {name: values for name, values in (COLUMNS | change).items() if values is not None}
    with pytest.raises(DataError, match=sentence):
        match_features(make(columns), NAMES)


@frames
@pytest.mark.parametrize("gap", [None, float("nan")])
def test_a_value_may_be_missing(make: Any, gap: float | None) -> None:
    found = match_features(make(COLUMNS | {"age": [1.0, gap], "price": [gap, gap]}), NAMES)
    columns = {name: found[:, number].tolist() for number, name in enumerate(NAMES)}
    assert columns["age"][0] == 1
    assert np.isnan([columns["age"][1], *columns["price"]]).all()
    assert not np.isnan(columns["bm25"]).any()


def test_many_missing_columns_are_counted_and_the_first_are_named() -> None:
    names = [f"feature {number}" for number in range(100)]
    with pytest.raises(DataError, match=r"lacks 100 of the 100 .*'feature 4' and 95 more"):
        match_features({}, names)


def test_numbers_are_not_taken_for_names() -> None:
    with pytest.raises(DataError, match=r"x has numbered features, but .* 3 features by name \(bm25, age, price\)"):
        column_order(["1", "2", "3"], NAMES, what="x")
    assert column_order(["2", "1"], ["1", "2"], what="x") == [1, 0]
    assert are_numbers(["1", "2"])
    assert not are_numbers(["0", "1"])


def test_a_name_that_is_there_twice_is_refused() -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["bm25", "bm25"])
    for frame in (table, {"bm25": [1], "1": [1], 1: [2]}):
        with pytest.raises(DataError, match="several columns"):
            match_features(frame, ["bm25"])
    with pytest.raises(DataError, match="the frame cannot be used"):
        match_features(table.to_pandas(), ["bm25"])


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(DataError, match="cannot be read as columns of equal length"):
        match_features({"bm25": [1, 2], "age": [1]}, ["bm25", "age"])


def test_what_is_no_frame_is_refused() -> None:
    with pytest.raises(OptionError, match=r"must be a frame .* or a mapping from names to columns, got list"):
        match_features([[1.0]], ["bm25"])


def test_without_narwhals_arrow_tables_and_mappings_work_and_the_extra_is_named() -> None:
    code = """
import sys; sys.modules["narwhals"] = None
import pandas, pyarrow
from ultr.data.named_features import match_features
for frame in ({"a": [1]}, pyarrow.table({"a": [1]}), pandas.DataFrame({"a": [1]})):
    try: print(match_features(frame, ["a"]).tolist())
    except ImportError as error: print(error)
"""
    lines = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[:2] == ["[[1.0]]"] * 2
    assert lines[2] == (
        "the frame, a DataFrame, needs narwhals if it is not given as an Arrow table; install it with: "
        "pip install '.[prepare]' in a checkout of ultr"
    )


@frames
def test_a_column_of_lists_is_the_features_that_prepare_makes_of_it(make: Any) -> None:
    frame = {"age": [1.0, 2.0], "image": [[0.1, 0.2], [0.3, 0.4]]}
    expected = np.array([[0.2, 1.0, 0.1], [0.4, 2.0, 0.3]], dtype=np.float32)
    np.testing.assert_array_equal(match_features(make(frame), ["image[1]", "age", "image[0]"]), expected)


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float32()), pa.large_list(pa.int64()), pa.list_(pa.float64(), 2)], ids=str
)
def test_lists_of_every_kind_are_taken_and_a_missing_one_has_no_values(kind: pa.DataType) -> None:
    lists = pa.chunked_array([[[9, 9], [1, 2]], [None, [3, None]]], type=kind).slice(1)
    matrix = match_features(pa.table({"image": lists}), ["image[0]", "image[1]"])
    np.testing.assert_array_equal(matrix, [[1, 2], [np.nan, np.nan], [3, np.nan]])


@pytest.mark.parametrize(
    ("lists", "sentence"),
    [
        ([[1.0, 2.0], [1.0]], r"column 'image' of the frame holds lists of 1 to 2 numbers, and an embedding has one"),
        ([[1.0], [2.0]], r"lacks 1 of the 2 features of the ranker: 'image\[1\]'"),
        ([[1.0, 2.0, 3.0]] * 2, r"has columns that the ranker does not know: 'image\[2\]'"),
    ],
)
def test_lists_of_another_length_are_refused(lists: Any, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        match_features({"image": lists}, ["image[0]", "image[1]"])

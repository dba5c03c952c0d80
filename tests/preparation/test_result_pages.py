"""Logs with one row for each result page, and what files and frames do to columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pytest
from pyarrow import parquet

from ultr.data.click_log import ClickLog
from ultr.errors import DataError
from ultr.preparation.log import prepare, read_log

PAGES: dict[str, list[Any]] = {
    "query": ["q", "r", "q", "r"],
    "documents": ["a,b,c", "b,c,a", "a,b,c", "c,a,b"],
    "clicks": ["010", "100", "001", "000"],
}


def bought(**columns: list[Any]) -> dict[tuple[str, str], int]:
    """The purchases of each document of each query."""
    log = read_log(pyarrow.table(PAGES | columns), signals={"buy": "bought"})
    queries = np.repeat(log.query_ids[log.queries], log.lengths)
    found: dict[tuple[str, str], int] = {}
    for row in np.flatnonzero(log.signal("buy")):
        key = str(queries[row]), str(log.positions[row])
        found[key] = found.get(key, 0) + int(log.signal("buy")[row])
    return found


@pytest.mark.parametrize(
    "given",
    [
        ["010", "000", "001", "000"],
        ["0,1,0", "0, 0, 0", "0,0,1", "0,0,0"],
        ["010", "", "001", None],
        [[0, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]],
    ],
)
def test_signals_of_a_page_are_those_of_its_documents(given: list[Any]) -> None:
    assert bought(bought=given) == {("q", "2"): 1, ("q", "3"): 1}


def test_amounts_of_a_page_have_separators() -> None:
    assert bought(bought=["0,12,0", "0,0,0", "0,0,30", "0,0,0"]) == {("q", "2"): 12, ("q", "3"): 30}


def test_a_page_with_one_document_has_all_of_the_text() -> None:
    one = {name: [*values, last] for (name, values), last in zip(PAGES.items(), ("s", "a", "1"), strict=True)}
    log = read_log(pyarrow.table(one | {"bought": ["000", "000", "000", "000", "15"]}), signals={"buy": "bought"})
    assert log.signal("buy").sum() == 15


def test_a_page_with_another_number_of_signals_is_put_aside(tmp_path: Path) -> None:
    table = pyarrow.table(PAGES | {"bought": ["010", "00", "001", "000"]})
    assert prepare(table, tmp_path / "log", signals={"buy": "bought"}).summary.pages.aside == 1


def test_one_number_for_a_whole_page_is_no_signal_of_documents() -> None:
    with pytest.raises(DataError, match="the signal buy must have a value for each document, as a list or as text"):
        bought(bought=[1, 0, 1, 0])


def test_text_with_a_value_for_each_document_is_a_factor_of_documents() -> None:
    given = {"size": ["big,small,small"] * 4, "city": ["Paris, France", "Rome", "Paris, France", "Oslo, Norway, North"]}
    log = read_log(pyarrow.table(PAGES | given), factors=["size", "city"], rare=1)
    size, city = log.factors[1:]
    assert [size.levels[value] for value in size.values[:3]] == ["big", "small", "small"]
    assert set(city.levels) == {"Paris, France", "Rome", "Oslo, Norway, North"}


def test_places_of_a_page_may_be_text() -> None:
    lists = PAGES | {"documents": [each.split(",") for each in PAGES["documents"]], "position": ["1,3,5"] * 4}
    assert set(read_log(pyarrow.table(lists)).positions.tolist()) == {1, 3, 5}
    without = lists | {"position": ["top"] * 4}
    assert set(read_log(pyarrow.table(without)).positions.tolist()) == {1, 2, 3}


def test_records_are_no_ids_of_documents() -> None:
    records = [[{"id": 1, "click": 1}, {"id": 2, "click": 0}]]
    with pytest.raises(DataError, match=r"holds lists of records \(id, click\), not of ids"):
        read_log(pyarrow.table({"query": ["q"], "results": records, "clicks": ["10"]}), document="results")


def rows(**columns: Any) -> pd.DataFrame:
    """Six pages of three documents, of two queries."""
    return pd.DataFrame(
        {
            "impression": np.repeat(np.arange(6), 3),
            "query": np.repeat([1, 2] * 3, 3),
            "document": list("xyz") * 6,
            "position": [1, 2, 3] * 6,
            "click": [1, 0, 0] * 6,
        }
        | columns
    )


def test_the_numbers_of_rows_of_a_frame_are_no_feature(tmp_path: Path) -> None:
    frame = rows(price=[1.0, 2.0, 3.0] * 6)
    filtered = frame[frame.impression != 0]
    filtered.to_parquet(tmp_path / "log.parquet")
    for log in (filtered, tmp_path / "log.parquet"):
        found = read_log(log, features=["*"])
        assert (found.feature_names, found.lists, len(found.features)) == (("price",), 2, 6)
    named = read_log(filtered.rename_axis("age"), features=["price", "age"])
    assert named.feature_names == ("price", "age")


def test_an_id_that_is_a_float_in_one_file_and_text_in_another_is_one(tmp_path: Path) -> None:
    frame = rows()
    for name, part, kind in (("1", frame.impression < 3, "float64"), ("2", frame.impression >= 3, "str")):
        parquet.write_table(
            pyarrow.Table.from_pandas(frame[part].astype({"query": kind}), preserve_index=False),
            tmp_path / f"{name}.parquet",
        )
    found = read_log(tmp_path)
    assert (found.query_ids.tolist(), found.lists) == (["1", "2"], 2)


def measured(tmp_path: Path, form: str, values: Any) -> ClickLog:
    frame = pd.concat([rows(impression=np.repeat(np.arange(6), 3) + 6 * n) for n in range(60)]).assign(pixels=values)
    path = tmp_path / f"log.{form}"
    if form == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False)
    return read_log(path, factors=["pixels"])


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_measurements_are_cut_into_bins_also_where_they_are_text(tmp_path: Path, form: str) -> None:
    pixels = np.random.default_rng(0).uniform(0, 900, 1_080).round(2)
    log = measured(tmp_path, form, pixels)
    assert len(log.factors[1].levels) == 20
    assert len(log.factors[1].edges) == 19
    shares = np.bincount(log.factors[1].values, np.repeat(log.impressions, log.lengths)) / 1_080
    assert shares == pytest.approx(np.full(20, 0.05), abs=0.01)


@pytest.mark.parametrize("whole", [True, False])
def test_text_that_is_not_mostly_numbers_with_fractions_is_a_category(tmp_path: Path, *, whole: bool) -> None:
    random = np.random.default_rng(0)
    pixels = random.uniform(0, 900, 1_080).round(0 if whole else 2)
    given = [
        str(int(each)) if whole else f"{each}px" if number % 5 == 0 else each for number, each in enumerate(pixels)
    ]
    assert not measured(tmp_path, "csv", given).factors[1].edges

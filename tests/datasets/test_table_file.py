from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from ultr.datasets.table_file import TableColumns, TableLists, is_table, read_table
from ultr.errors import DataError, OptionError

COLUMNS: dict[str, Any] = {
    "qid": ["b", "a", "b", "a", "b"],
    "grade": [2, 0, 1, 3, 0],
    "doc_id": ["v", "w", "x", "y", "z"],
    "bm25": [0.1, 0.2, 0.3, 0.4, 0.5],
    "age": [1, 2, 3, 4, 5],
}
ENDINGS = ["lists.parquet", "lists.csv", "lists.tsv", "lists.csv.gz"]
every_ending = pytest.mark.parametrize("name", ENDINGS)


def write(path: Path, columns: dict[str, Any] | pa.Table, *, delimiter: str = ",") -> Path:
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
        return path
    options = csv.WriteOptions(delimiter="\t" if path.suffix == ".tsv" else delimiter)
    with gzip.open(path, "wb") if path.suffix == ".gz" else path.open("wb") as file:
        csv.write_csv(table, file, options)
    return path


@every_ending
def test_queries_come_by_their_first_row_and_their_rows_in_the_order_of_the_file(tmp_path: Path, name: str) -> None:
    lists = TableLists.read(write(tmp_path / name, COLUMNS))
    judged = lists.judged
    assert judged.query_ids.tolist() == ["b", "a"]
    assert judged.offsets.tolist() == [0, 3, 5]
    assert judged.labels.tolist() == [2, 1, 0, 0, 3]
    assert judged.feature_names == ("bm25", "age")
    np.testing.assert_array_equal(judged.features[:, 1], [1, 3, 5, 2, 4])
    np.testing.assert_array_equal(judged.features[:, 0], np.array([0.1, 0.3, 0.5, 0.2, 0.4], dtype=np.float32))
    assert lists.document_ids is not None
    assert lists.document_ids.tolist() == ["v", "x", "z", "w", "y"]
    assert lists.note == (
        f"{tmp_path / name}: query = qid (guessed), label = grade (guessed), document = doc_id (guessed), "
        "2 features by name"
    )


@every_ending
def test_features_are_matched_by_name(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, COLUMNS)
    judged = read_table(path, features=["age", "bm25"])
    assert judged.feature_names == ("age", "bm25")
    np.testing.assert_array_equal(judged.features, read_table(path).features[:, ::-1])
    with pytest.raises(DataError, match=rf"{name} lacks 1 of the 3 features of the ranker: 'price'"):
        read_table(path, features=["age", "bm25", "price"])
    with pytest.raises(DataError, match=rf"{name} has columns that the ranker does not know: 'age'"):
        read_table(path, features=["bm25"])


def test_a_feature_of_the_ranker_is_never_taken_for_an_id(tmp_path: Path) -> None:
    path = write(tmp_path / "lists.csv", COLUMNS | {"doc_id": [1, 2, 3, 4, 5]})
    lists = TableLists.read(path, features=["grade", "doc_id", "bm25", "age"])
    assert lists.columns == TableColumns(query="qid")
    assert lists.document_ids is None
    assert lists.judged.features[:, 0].tolist() == [2, 1, 0, 0, 3]
    assert "label = none, document = none, 4 features" in lists.note


@every_ending
def test_columns_can_be_named(tmp_path: Path, name: str) -> None:
    renamed = dict(zip(["Suche", "Note", "Ding", "bm25", "age"], COLUMNS.values(), strict=True))
    path = write(tmp_path / name, renamed)
    lists = TableLists.read(path, TableColumns("Suche", "Note", "Ding"))
    assert "query = Suche, label = Note, document = Ding, 2 features" in lists.note
    np.testing.assert_array_equal(lists.judged.features, read_table(write(tmp_path / f"b{name}", COLUMNS)).features)
    with pytest.raises(DataError, match=r"no column that looks like the query; name it with --query-column or call it"):
        TableLists.read(path)
    with pytest.raises(DataError, match=r"no column that looks like the label; name it with --label-column or call it"):
        read_table(path, query="Suche", document="Ding")
    with pytest.raises(OptionError, match=r"has no column 'Sucha', did you mean 'Suche'; it has: Suche, Note"):
        TableLists.read(path, TableColumns("Sucha"))


def test_ids_may_be_numbers_categories_or_look_like_missing_values(tmp_path: Path) -> None:
    table = pa.table(
        {"query": pa.array(["x", "y"]).dictionary_encode(), "label": [0.0, 1.0], "doc": [7, 8], "f": [1, 2]}
    )
    lists = TableLists.read(write(tmp_path / "a.parquet", table))
    assert lists.judged.query_ids.tolist() == ["x", "y"]
    assert lists.document_ids is not None
    assert lists.document_ids.tolist() == ["7", "8"]
    (tmp_path / "a.csv").write_text("query,label,doc,f\nNA,1,007,2\nnull,0,nan,3\n")
    lists = TableLists.read(tmp_path / "a.csv")
    assert lists.judged.query_ids.tolist() == ["NA", "null"]
    assert lists.document_ids is not None
    assert lists.document_ids.tolist() == ["007", "nan"]


def test_a_column_of_a_csv_file_that_begins_with_integers_may_go_on_with_fractions(tmp_path: Path) -> None:
    rows = 200_000
    lines = ["query,label,f", *("1,0,1" for _ in range(rows)), "1,1,0.5"]
    (tmp_path / "long.csv").write_text("\n".join(lines) + "\n")
    assert read_table(tmp_path / "long.csv").features[-1, 0] == 0.5


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
def test_the_separator_of_a_csv_file_is_found(tmp_path: Path, delimiter: str) -> None:
    path = write(tmp_path / "lists.csv", COLUMNS, delimiter=delimiter)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_table(path).feature_names == ("bm25", "age")


@every_ending
@pytest.mark.parametrize("gap", [None, float("nan")])
def test_a_feature_may_be_missing(tmp_path: Path, name: str, gap: float | None) -> None:
    columns = COLUMNS | {"bm25": [0.5, gap, gap, 0.25, gap]}
    whole, found = (read_table(write(tmp_path / f"{n}-{name}", each)) for n, each in enumerate((COLUMNS, columns)))
    places = [COLUMNS["bm25"].index(value) for value in whole.features[:, 0].astype(np.float64).round(6)]
    known = np.array([np.nan if columns["bm25"][place] is None else columns["bm25"][place] for place in places])
    np.testing.assert_array_equal(found.features[:, 0], known.astype(np.float32))
    np.testing.assert_array_equal(found.features[:, 1], whole.features[:, 1])


@every_ending
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"bm25": [0.1, 1e300, 0.3, 0.4, 0.5]}, "column 'bm25' of {path} is infinite or too large in {second}"),
        ({"grade": [0, None, 0, 0, 1]}, "column 'grade' of {path} has no value in {second}"),
        (
            {"grade": [0, 0.5, 0, 0, 1]},
            "column 'grade' of {path} must hold labels from 0 to 31, integers, got 0.5 in {second}",
        ),
        ({"grade": [0, -1, 0, 0, 1]}, "got -1 in {second}"),
        ({"grade": [0, 32, 0, 0, 1]}, "got 32 in {second}"),
        ({"qid": ["a", "", "a", "a", "a"]}, "column 'qid' of {path} has no value in {second}"),
        ({"doc_id": ["a", "", "a", "a", "a"]}, "column 'doc_id' of {path} has no value in {second}"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_column_and_place(
    tmp_path: Path, name: str, change: dict[str, Any], sentence: str
) -> None:
    path = write(tmp_path / name, COLUMNS | change)
    second = "row 2" if name.endswith("parquet") else "line 3"
    with pytest.raises(DataError) as caught:
        read_table(path)
    assert sentence.format(path=path, second=second) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_texts_among_the_features_are_named(tmp_path: Path) -> None:
    columns = COLUMNS | {"age": ["1", "two", "3", "4", "5"]}
    with pytest.raises(DataError, match=r"column 'age' of .*lists.parquet holds string, such as '1', no numbers"):
        read_table(write(tmp_path / "lists.parquet", columns))
    with pytest.raises(DataError, match=r"lists.csv cannot be read: column 'age' is no number in line 3: .*'two'"):
        read_table(write(tmp_path / "lists.csv", columns))


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("empty.csv", b"", "is empty; its first line must hold the names"),
        (
            "short.csv",
            b"query,label,f\n1,0,2\n1,0\n",
            r"cannot be read: CSV parse error: Row #3: Expected 3 columns, got 2",
        ),
        ("twice.csv", b"query,label,f,f\n1,0,2,3\n", r"has several columns called 'f'; rename one"),
        ("twice.csv", b"query,query,label,f\n1,1,0,2\n", r"has several columns called 'query'; rename one"),
        (
            "latin.csv",
            b"query,label,f\ncaf\xe9,0,2\n",
            r"latin.csv is not written in UTF-8, see line 2; convert it first",
        ),
        (
            "latin.csv",
            b"query,label,gr\xfc\n1,0,2\n",
            r"latin.csv is not written in UTF-8, see line 1; convert it first",
        ),
        ("bad.parquet", b"not a parquet file at all", r"bad.parquet cannot be read: "),
        ("bad.csv.gz", b"\x1f\x8b not gzip", r"bad.csv.gz cannot be read: "),
    ],
)
def test_files_that_are_no_tables_are_refused_in_one_sentence(
    tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=sentence) as caught:
        read_table(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_table_without_rows_has_no_lists(tmp_path: Path) -> None:
    (tmp_path / "none.csv").write_text("query,label,f\n")
    assert read_table(tmp_path / "none.csv").queries == 0


def test_the_ending_says_what_a_file_is() -> None:
    assert all(map(is_table, [*ENDINGS, "a.pq", "a.tab", "A.CSV", "a.b.csv.zst"]))
    assert not any(map(is_table, ["a.txt", "a", "a.gz", "a.txt.gz", "csv", "parquet"]))


def test_a_column_of_lists_is_the_features_that_prepare_makes_of_it(tmp_path: Path) -> None:
    path = write(tmp_path / "lists.parquet", COLUMNS | {"image": [[0.1 * row, 1.0 * row] for row in range(5)]})
    names = ["image[1]", "age", "image[0]", "bm25"]
    judged = read_table(path, features=names)
    assert judged.feature_names == tuple(names)
    np.testing.assert_array_equal(judged.features[:, 0], [0, 2, 4, 1, 3])
    assert read_table(path).feature_names == ("bm25", "age", "image[0]", "image[1]")

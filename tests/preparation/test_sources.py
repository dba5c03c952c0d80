from __future__ import annotations

import gzip
from pathlib import Path

import duckdb
import narwhals
import polars
import pyarrow
import pytest
from pyarrow import csv, parquet
from tests.preparation.test_log import GOOD, frame, read_with_warning

from ultr.errors import DataError, OptionError
from ultr.preparation import read_log

PAGES = pyarrow.table(
    {"qid": ["a", "a", "b"], "docs": [["x", "y", "z"], ["x", "y", "z"], ["y", "x"]], "clicks": ["100", "010", "01"]}
)


@pytest.fixture(scope="module")
def expected() -> str:
    return read_log(frame(GOOD)).fingerprint()


def files(folder: Path) -> dict[str, str]:
    """The good log in every form that is read from disk."""
    table = frame(GOOD)
    parquet.write_table(table, folder / "one.parquet")
    (folder / "parts" / "day=1").mkdir(parents=True)
    (folder / "parts" / "_SUCCESS").touch()
    parquet.write_table(table.slice(0, 4), folder / "parts" / "day=1" / "a.parquet")
    parquet.write_table(table.slice(4), folder / "parts" / "b.parquet")
    csv.write_csv(table, folder / "log.csv")
    csv.write_csv(table, folder / "log.tsv", csv.WriteOptions(delimiter="\t"))
    semicolons = (folder / "log.csv").read_text().replace(",", ";")
    (folder / "packed.csv.gz").write_bytes(gzip.compress(semicolons.encode()))
    lines = polars.from_arrow(table)
    assert isinstance(lines, polars.DataFrame)
    lines.write_ndjson(folder / "log.jsonl")
    with duckdb.connect(str(folder / "log.db")) as connection:
        connection.execute(f"CREATE TABLE shown AS FROM '{folder / 'one.parquet'}'")
    names = ["one.parquet", "parts", "parts/**/*.parquet", "log.csv", "log.tsv", "packed.csv.gz", "log.jsonl"]
    places = {name: str(folder / name) for name in names}
    places["table"] = f"duckdb:{folder / 'log.db'}?table=shown"
    places["sql"] = f"duckdb:{folder / 'log.db'}?sql=SELECT * FROM log.shown"
    return places


def test_a_log_is_read_from_files_of_any_kind(tmp_path: Path, expected: str) -> None:
    for name, place in files(tmp_path).items():
        assert read_log(place).fingerprint() == expected, name


def test_a_log_is_read_from_a_frame(expected: str) -> None:
    frames = [polars.from_arrow(frame(GOOD)), frame(GOOD).to_pandas(), narwhals.from_native(frame(GOOD))]
    frames.append(polars.from_arrow(frame(GOOD)).lazy())  # type: ignore[union-attr]
    for each in frames:
        assert read_log(each).fingerprint() == expected, type(each)


def test_pages_may_be_lists_texts_or_bit_strings(expected: str) -> None:
    forms = {
        "clicks": [["100", "010", "01"], ["1,0,0", "0, 1, 0", "0,1"], [[1, 0, 0], [0, 1, 0], [0, 1]]],
        "docs": [["x,y,z", "x, y,z", "y,x"], [["x", "y", "z"], ["x", "y", "z"], ["y", "x"]]],
    }
    for clicks in forms["clicks"]:
        for docs in forms["docs"]:
            table = pyarrow.table({"qid": ["a", "a", "b"], "docs": docs, "clicks": clicks})
            assert read_log(table).fingerprint() == expected, (docs, clicks)


def test_a_page_with_lists_of_different_lengths_or_without_documents_is_put_aside() -> None:
    table = pyarrow.table(
        {"qid": ["a", "b", "b"], "docs": [["x", "y"], ["y", "x"], []], "clicks": ["100", "01", ""], "d": [1, 2, 3]}
    )
    both = pyarrow.concat_tables([table, PAGES], promote_options="default")
    log, said = read_with_warning(both, factors=["d"], rare=0)
    assert said.startswith("3 of 13 rows were put aside (lists of different lengths: 2, no ")
    assert log.impressions.sum() == 4
    assert log.factors[1].levels == ("2", "missing")


def test_the_factors_of_a_page_may_be_lists() -> None:
    table = PAGES.append_column("kind", [[["web", "ad", "web"], ["web", "ad", "web"], ["ad", "web"]]])
    log = read_log(table, factors=["kind"], rare=0)
    assert log.factors[1].levels == ("ad", "web")
    assert sorted(log.factors[1].values.tolist()) == [0, 0, 1, 1, 1]


def test_a_mapping_file_names_the_columns(tmp_path: Path, expected: str) -> None:
    names = ["i", "what", "d", "place", "hit", "device"]
    table = frame(GOOD).rename_columns(names)
    mapping = tmp_path / "mapping.toml"
    mapping.write_text('impression = "i"\nquery = "what"\ndocument = "d"\nposition = "place"\nclick = "hit"\n')
    assert read_log(table, columns=mapping).fingerprint() == expected
    assert read_log(table.rename_columns([*names[:4], "seen", "device"]), columns=mapping, click="seen")
    mapping.write_text('querry = "what"\n')
    with pytest.raises(DataError, match=r"mapping.toml: a key must be one of .* did you mean 'query'"):
        read_log(table, columns=mapping)


def test_an_impression_may_be_several_columns(expected: str) -> None:
    table = frame(GOOD).append_column("session", pyarrow.array([row["impression"] % 2 for row in GOOD]))
    table = table.append_column("turn", pyarrow.array([row["impression"] // 2 for row in GOOD])).drop(["impression"])
    assert read_log(table, impression=["session", "turn"]).fingerprint() == expected


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    places = files(tmp_path)
    whole = (tmp_path / "one.parquet").read_bytes()
    (tmp_path / "half.parquet").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.csv").touch()
    (tmp_path / "notes.txt").write_text("nothing")
    (tmp_path / "broken.jsonl").write_text('{"query": "a"\n{"query": ')
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(b"query,document\n" * 2000)[:30])
    for place, message in {
        str(tmp_path / "half.parquet"): "half.parquet is not a whole Parquet file",
        str(tmp_path / "empty.csv"): "empty.csv is empty",
        str(tmp_path / "notes.txt"): "notes.txt has no ending that says its format",
        str(tmp_path / "broken.jsonl"): "broken.jsonl cannot be read by duckdb",
        str(tmp_path / "cut.csv.gz"): "cut.csv.gz",
        str(tmp_path / "nowhere.csv"): "there is no file",
        str(tmp_path): "files of several formats",
        str(tmp_path / "log.db"): "has no ending",
        f"duckdb:{tmp_path / 'log.db'}": "must end in .table=NAME or .sql=SELECT ...; its tables: shown",
        f"duckdb:{tmp_path / 'log.db'}?table=show": "did you mean 'shown'",
        f"duckdb:{tmp_path / 'no.db'}?table=shown": "there is no DuckDB file",
        f"duckdb:{tmp_path / 'log.db'}?sql=SELECT nothing FROM log.shown": "cannot be read by duckdb",
        "s3://bucket/log.parquet": "is not a file of this machine",
    }.items():
        with pytest.raises((DataError, OptionError), match=message) as caught:
            read_log(place)
        assert "\n" not in str(caught.value)
    with pytest.raises(OptionError, match="must be a path or a frame"):
        read_log(3)
    assert places


@pytest.mark.parametrize(
    ("drop", "message"),
    [
        ("impression", "tells one result page from another; name it with --impression"),
        ("query", "looks like the query; name it with --query, one of: impression, document"),
        ("position", "looks like the position, and document holds no lists; name the position with --position"),
        ("click", "looks like the click"),
    ],
)
def test_a_missing_column_is_asked_for(drop: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_log(frame(GOOD).drop([drop]))


def test_pages_cannot_have_features_of_their_own() -> None:
    with pytest.raises(DataError, match="must come from a second table; give --features-from"):
        read_log(PAGES.append_column("bm25", [[1.0, 2.0, 3.0]]), features=["bm25"])

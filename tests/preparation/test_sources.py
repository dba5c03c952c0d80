from __future__ import annotations

import gzip
import json
import time
import zlib
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import narwhals
import polars
import pyarrow
import pytest
from pyarrow import csv, parquet
from tests.preparation.test_log import GOOD, frame, page, read_with_warning

from ultr.errors import DataError, OptionError
from ultr.preparation.log import read_log

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


def test_log_and_features_may_come_from_two_databases(tmp_path: Path) -> None:
    places = files(tmp_path)
    with duckdb.connect(str(tmp_path / "features.db")) as connection:
        connection.execute("CREATE TABLE known AS SELECT 'x' AS document, 1 AS bm25 UNION ALL SELECT 'y', 2")
    for query in ("table=known", "sql=SELECT * FROM features.known"):
        log, _ = read_with_warning(places["table"], features_from=f"duckdb:{tmp_path / 'features.db'}?{query}")
        assert log.features[:, 0].tolist() == [1, 2, 1, 2]


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
    assert said.startswith("3 of 13 rows were put aside (lists of different lengths: 2, no document: 1)")
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


def test_an_empty_text_is_no_folder() -> None:
    with pytest.raises(OptionError, match=r"the log is an empty text; give a file, a folder or a pattern"):
        read_log("")


@pytest.mark.parametrize("pattern", ["**.csv", "***", "logs/**x/*.csv"])
def test_a_pattern_with_two_stars_beside_letters_is_refused(pattern: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"is no pattern: \*\* stands for folders, alone between slashes"):
        read_log(tmp_path / pattern)


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


GOOD_CSV = "\n".join(
    ["impression,query,document,position,click,device", *(",".join(map(str, row.values())) for row in GOOD), ""]
)


@pytest.mark.parametrize(
    "content",
    [
        GOOD_CSV.encode("utf-8-sig"),
        GOOD_CSV.replace("\n", "\r\n").encode(),
        GOOD_CSV.replace("impression", '"impression"').encode(),
        # A row that starts like a comment is a row.
        GOOD_CSV.replace("\n1,", "\n#1,").encode(),
    ],
)
def test_text_files_of_other_programs_are_read(content: bytes, expected: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(content)
    assert read_log(tmp_path / "log.csv").fingerprint() == expected


def test_quoted_texts_may_hold_separators_quotes_and_line_ends(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(GOOD_CSV.replace(",a,", ',"a, ""x""\nb",'))
    assert read_log(tmp_path / "log.csv").query_ids.tolist() == ['a, "x"\nb', "b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD_CSV + "9,a,x,1,0,phone,more\n", "Line: 10: Expected Number of Columns: 6 Found: 7"),
        (GOOD_CSV + "9,a,x\n", "Line: 10: Expected Number of Columns: 6 Found: 3"),
        (GOOD_CSV + '9,"a,x,1,0,phone\n', "Line: 10: Value with unterminated quote"),
        (GOOD_CSV.replace(",a,", ",\xe9,").encode("latin-1"), "log.csv is not written in UTF-8, see line 2; convert"),
        (GOOD_CSV.replace("device", "ger\xe4t").encode("latin-1"), "log.csv is not written in UTF-8, see line 1;"),
        (GOOD_CSV.encode("utf-16"), "is not a text file in UTF-8, perhaps in UTF-16"),
    ],
)
def test_a_text_file_that_is_wrong_is_not_read_in_part(content: str | bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=message) as caught:
        read_log(tmp_path / "log.csv")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["log.csv.gz", "log.jsonl.gz"])
def test_a_packed_file_that_was_cut_off_is_refused_even_between_two_lines(name: str, tmp_path: Path) -> None:
    lines = GOOD_CSV if "csv" in name else "".join(json.dumps(row) + "\n" for row in GOOD)
    packer = zlib.compressobj(wbits=31)
    (tmp_path / name).write_bytes(packer.compress(lines.encode()) + packer.flush(zlib.Z_SYNC_FLUSH))
    with pytest.raises(DataError, match=rf"{name} is damaged \(Truncated compressed stream\)"):
        read_log(tmp_path / name)


def test_json_may_be_one_array_and_change_late(expected: str, tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(json.dumps(GOOD, indent=1))
    assert read_log(tmp_path / "log.json").fingerprint() == expected
    pages = [row | {"impression": 3 * n + row["impression"], "device": None} for n in range(4_000) for row in GOOD]
    late = GOOD[0] | {"impression": "late", "device": "watch", "extra": 1}
    (tmp_path / "late.jsonl").write_text("\n".join(json.dumps(row) for row in [*pages, late]))
    log = read_log(tmp_path / "late.jsonl", factors=["extra"], rare=0)
    assert log.factors[1].levels == ("1", "missing")
    assert log.impressions.sum() == 12_001
    for text in ("", "1\n2\n"):
        (tmp_path / "no.jsonl").write_text(text)
        with pytest.raises(DataError, match=r"no.jsonl holds no JSON objects; write one object a line"):
            read_log(tmp_path / "no.jsonl")


def test_the_name_of_a_file_is_no_pattern(expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"log [1].csv": GOOD_CSV, "log*.csv": GOOD_CSV, "log?.csv": GOOD_CSV, "log 1.csv": "query\na\n"}
    for name, content in {**names, "log2.csv": "query\na\n"}.items():
        (tmp_path / name).write_text(content)
    assert read_log(tmp_path / "log?.csv").fingerprint() == expected
    assert read_log(tmp_path / "log [1].csv").fingerprint() == expected
    assert read_log(tmp_path / "log*.csv").fingerprint() == expected
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_log("~/log [1].csv").fingerprint() == expected


def test_columns_of_any_type_are_read(expected: str) -> None:
    table = frame(GOOD)

    def changed(name: str, kind: pyarrow.DataType, change: Callable[[Any], Any] = lambda value: value) -> pyarrow.Table:
        values = pyarrow.array([change(value) for value in table[name].to_pylist()], kind)
        return table.set_column(table.column_names.index(name), name, values)

    for each in [
        changed("click", pyarrow.bool_(), bool),
        changed("click", pyarrow.float32()),
        changed("click", pyarrow.decimal128(6, 2), Decimal),
        changed("position", pyarrow.float64()),
        changed("position", pyarrow.decimal128(6, 2), Decimal),
        changed("position", pyarrow.string(), lambda value: f" {value}.0 "),
        changed("position", pyarrow.uint8()),
        changed("impression", pyarrow.uint64(), lambda value: 2**64 - value),
        changed("query", pyarrow.large_string()),
        changed("query", pyarrow.dictionary(pyarrow.int8(), pyarrow.string())),
        changed("impression", pyarrow.timestamp("us"), lambda value: datetime(2024, 1, value)),
    ]:
        assert read_log(each).fingerprint() == expected, each.schema


@pytest.mark.parametrize("positions_from", [0, 1])
@pytest.mark.parametrize(("kind", "value"), [(pyarrow.int64(), 2**63 - 1), (pyarrow.uint64(), 2**64 - 1)])
def test_a_position_that_is_far_too_large_is_a_fault(kind: pyarrow.DataType, value: int, positions_from: int) -> None:
    values = pyarrow.array([value, *(row["position"] for row in GOOD[1:])], kind)
    table = frame(GOOD).drop(["position"]).append_column("position", values)
    log, said = read_with_warning(table, positions_from=positions_from)
    assert said.startswith("3 of 8 rows were put aside (position above 10,000: 3)")
    assert log.impressions.sum() == 2


def test_a_position_that_is_no_whole_number_is_none() -> None:
    wrong = [1.5, float("nan"), float("inf"), -float("inf"), 1e300]
    rows = GOOD + [row for number, _ in enumerate(wrong) for row in page(10 + number, "a", "xyz", "100")]
    places = [float(row["position"]) for row in rows]
    places[len(GOOD) :: 3] = wrong
    table, values = frame(rows).drop(["position"]), pyarrow.array(places)
    for column in (values, values.cast(pyarrow.string())):
        log, said = read_with_warning(table.append_column("position", column))
        assert said.startswith("15 of 23 rows were put aside (no position: 15)")
        assert log.impressions.sum() == 3


def test_a_frame_whose_columns_cannot_be_told_apart_is_refused() -> None:
    table = frame(GOOD)
    message = "several columns called 'query', upper and lower case being the same; rename one"
    for name in ("Query", "query"):
        with pytest.raises(DataError, match=message):
            read_log(table.append_column(name, table["document"]), query="query")
    pandas = table.to_pandas()
    mixed = pandas.assign(document=pandas["document"].astype(object).where(pandas["position"] > 1, 7))
    for each, what in ((mixed, "column document"), (pandas.rename(columns={"device": "query"}), "'query' 2 times")):
        with pytest.raises(DataError, match=f"the pandas frame cannot be used: .*{what}") as caught:
            read_log(each)
        assert "\n" not in str(caught.value)


def test_positions_of_a_page_may_be_a_list() -> None:
    positions = [[1, 2, 3], [1, 2, 3], [11, 13]]
    log = read_log(PAGES.append_column("position", pyarrow.array(positions)))
    assert sorted(log.positions.tolist()) == [1, 2, 3, 11, 13]
    once = PAGES.append_column("position", pyarrow.array([1, 1, 2]))
    assert sorted(read_log(once).positions.tolist()) == [1, 1, 2, 2, 3]
    with pytest.raises(DataError, match="so position must be a list like docs; without --position"):
        read_log(once, position="position")


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


def test_log_and_features_may_lie_in_two_databases(tmp_path: Path) -> None:
    features = pyarrow.table({"document": ["x", "y", "z"], "bm25": [1.0, 2.0, 3.0]})
    for name, table in {"log": frame(GOOD), "second": features}.items():
        parquet.write_table(table, tmp_path / f"{name}.parquet")
        with duckdb.connect(str(tmp_path / f"{name}.db")) as connection:
            connection.execute(f"CREATE TABLE rows AS FROM '{tmp_path / name}.parquet'")
    second = f"duckdb:{tmp_path / 'second.db'}?"
    for place in (f"{second}table=rows", f"{second}sql=SELECT * FROM features.rows"):
        log = read_log(f"duckdb:{tmp_path / 'log.db'}?table=rows", features_from=place)
        assert log.features[:, 0].tolist() == [1, 2, 3, 1, 2]


def test_pages_cannot_have_features_of_their_own() -> None:
    with pytest.raises(DataError, match="must come from a second table; give --features-from"):
        read_log(PAGES.append_column("bm25", [[1.0, 2.0, 3.0]]), features=["bm25"])


def once_more(table: pyarrow.Table) -> pyarrow.Table:
    """The same pages under other numbers."""
    column = table.column_names.index("impression")
    return table.set_column(column, "impression", pyarrow.compute.add(table["impression"], 100))


def test_numbers_of_any_file_are_read_as_they_are(tmp_path: Path) -> None:
    """A column may happen to be whole in the first file, which engines would take for the type of all."""
    table = frame(GOOD)
    parts = [table.append_column("price", pyarrow.array(range(len(table)), kind)) for kind in ("int64", "float64")]
    parts[1] = once_more(parts[1].set_column(table.num_columns, "price", pyarrow.compute.add(parts[1]["price"], 0.25)))
    for number, part in enumerate(parts):
        parquet.write_table(part, tmp_path / f"{number}.parquet")
    whole = pyarrow.concat_tables([parts[0].cast(parts[1].schema), parts[1]])
    found = read_log(str(tmp_path), features=["price"])
    assert found.fingerprint() == read_log(whole, features=["price"]).fingerprint()
    assert 0.25 in found.features


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_column_that_not_all_files_have_is_left_out_and_told(form: str, tmp_path: Path) -> None:
    table = frame(GOOD)
    wider = once_more(table).append_column("layout", pyarrow.array(["grid"] * len(table)))
    for name, part in {"a": table, "b": wider}.items():
        if form == "csv":
            csv.write_csv(part, tmp_path / f"{name}.csv")
        else:
            parquet.write_table(part, tmp_path / f"{name}.parquet")
    log, told = read_with_warning(str(tmp_path))
    assert told == f"columns that not all files have are left out: layout (not in a.{form})"
    assert log.impressions.sum() == 2 * read_log(table).impressions.sum()
    with pytest.raises(OptionError, match="has no column 'layout'"):
        read_with_warning(str(tmp_path), factors=["layout"])


def test_files_may_be_separated_otherwise(tmp_path: Path) -> None:
    table = frame(GOOD)
    csv.write_csv(table, tmp_path / "a.csv")
    csv.write_csv(once_more(table), tmp_path / "b.csv", csv.WriteOptions(delimiter=";"))
    both = pyarrow.concat_tables([table, once_more(table)])
    assert read_log(str(tmp_path)).fingerprint() == read_log(both).fingerprint()


def test_a_second_table_may_be_a_frame_of_any_kind() -> None:
    features = pyarrow.table({"document": ["x", "y", "z"], "f": [1.0, 2.0, 3.0]})
    frames = [features, features.to_pandas(), polars.from_arrow(features)]
    assert len({read_log(frame(GOOD), features_from=each).fingerprint() for each in frames}) == 1


def test_a_query_has_the_days_of_utc_wherever_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/Los_Angeles")
    time.tzset()
    try:
        parquet.write_table(frame(GOOD), tmp_path / "log.parquet")
        sql = (
            f"SELECT *, strftime('2024-01-01 12:00:00+00'::TIMESTAMPTZ, '%H') AS hour FROM '{tmp_path / 'log.parquet'}'"
        )
        assert read_log(f"sql:{sql}", factors=["hour"], rare=0).factors[1].levels == ("12",)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_times_of_files_may_have_other_units(tmp_path: Path) -> None:
    """Pandas writes times in nanoseconds or in microseconds, as it was given them."""
    table = frame(GOOD)
    for number, (part, unit) in enumerate([(table, "us"), (once_more(table), "ns")]):
        at = pyarrow.array([datetime(2024, 1, 1 + number)] * len(part), pyarrow.timestamp(unit))
        parquet.write_table(part.append_column("at", at), tmp_path / f"{number}.parquet")
    assert read_log(str(tmp_path), time="at", periods="day").period_names == ("2024-01-01", "2024-01-02")

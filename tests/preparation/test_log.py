from __future__ import annotations

import json
import tempfile
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from tests.preparation.naive import Row, collapsed, read_back

from ultr.data.click_log import ClickLog
from ultr.errors import DataError, OptionError
from ultr.methods import ClickBaseline
from ultr.preparation import assembly
from ultr.preparation.log import prepare, read_log
from ultr.relevance import MLP

TYPES = pyarrow.schema(
    {
        "impression": pyarrow.int64(),
        "query": pyarrow.string(),
        "document": pyarrow.string(),
        "position": pyarrow.int64(),
        "click": pyarrow.int64(),
        "device": pyarrow.string(),
    }
)


def page(impression: int, query: str, documents: str, clicks: str, device: str | None = "phone") -> list[Row]:
    return [
        {
            "impression": impression,
            "query": query,
            "document": document,
            "position": position,
            "click": int(click),
            "device": device,
        }
        for position, (document, click) in enumerate(zip(documents, clicks, strict=True), start=1)
    ]


GOOD = [*page(1, "a", "xyz", "100"), *page(2, "a", "xyz", "010"), *page(3, "b", "yx", "01")]
GOOD_FEATURES = {("a", "x"): 1.0, ("a", "y"): 2.0, ("a", "z"): 3.0, ("b", "x"): 4.0, ("b", "y"): 5.0}


def frame(rows: list[Row]) -> pyarrow.Table:
    return pyarrow.Table.from_pylist(rows, schema=TYPES)


def with_features(rows: list[Row]) -> pyarrow.Table:
    return frame(rows).append_column(
        "bm25", pyarrow.array([GOOD_FEATURES[row["query"], row["document"]] for row in rows], pyarrow.float64())
    )


def read_with_warning(table: object, **options: Any) -> tuple[ClickLog, str]:
    """The log, and the one warning of ours; `pytest.warns` would also raise those of the libraries below."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        log = read_log(table, **options)
    (said,) = [str(each.message) for each in caught if issubclass(each.category, UserWarning)]
    return log, said


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    """Pages of two queries on two devices, some of their rows spoiled, in any order."""
    rows: list[Row] = []
    for number in range(draw(st.integers(2, 24))):
        documents = "".join(draw(st.permutations("xyz")))[: draw(st.integers(1, 3))]
        clicks = draw(st.text("01", min_size=len(documents), max_size=len(documents)))
        device = draw(st.sampled_from(["phone", "phone", "desk", "watch", None]))
        rows += page(number, draw(st.sampled_from("ab")), documents, clicks, device)
    wrong: dict[str, list[Any]] = {
        "impression": [None, 0],
        "query": [None, "", "b"],
        "document": [None, "x"],
        "position": [None, 0, 1, 2],
        "click": [None, 2, -1],
        "device": ["watch"],
    }
    for _ in range(draw(st.integers(0, 8))):
        column = draw(st.sampled_from(sorted(wrong)))
        row = draw(st.integers(0, len(rows) - 1))
        rows[row] = rows[row] | {column: draw(st.sampled_from(wrong[column]))}
    always = [*page(100, "a", "xy", "10"), *page(101, "b", "xy", "11")]
    return draw(st.permutations(rows + always))


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(logs(), st.sampled_from([0, 2, 3]))
def test_a_log_collapses_as_it_does_by_hand(rows: list[Row], rare: int) -> None:
    expected = collapsed(rows, rare=rare)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "log"
        prepared = prepare(frame(rows), out, factors=["device"], rare=rare, pairs=True)
        assert read_back(prepared.log, out) == expected
        summary = prepared.summary
        assert (summary.rows.read, summary.rows.aside) == (len(rows), expected.aside)
        assert summary.rows.repeated == expected.repeated
        assert summary.pages.read == len({row["impression"] for row in rows} - {None})
        assert summary.pages.kept == sum(expected.impressions.values())
        assert summary.clicks.read == sum((row["click"] or 0) > 0 for row in rows)
        assert summary.several_clicks == sum((row["click"] or 0) > 1 for row in rows)
        assert summary.clicks.kept == sum(expected.clicks.values())
        rejected = parquet.read_table(out / "rejected.parquet").to_pylist()
        assert summary.clicks.aside == sum(row["click"] in ("1", "2") for row in rejected)


def test_the_order_of_the_rows_does_not_matter(tmp_path: Path) -> None:
    rows = [row for n in range(40) for row in page(n, "ab"[n % 2], ("xyz", "zyx")[n % 3 % 2], f"{n % 8:03b}")]
    logs = [
        read_log(frame([rows[i] for i in np.random.default_rng(seed).permutation(len(rows))]), factors=["device"])
        for seed in range(3)
    ]
    assert len({log.fingerprint() for log in logs}) == 1
    assert logs[0].impressions.sum() == 40


def spoiled(number: int, **changed: Any) -> list[Row]:
    """The good log with a fault in one row of its first page."""
    return [row | changed if i == number else row for i, row in enumerate(GOOD)]


FAULTS = [
    ("no query", spoiled(0, query=None), 3),
    ("no query", spoiled(0, query=" "), 3),
    ("two queries on one page", spoiled(0, query="b"), 3),
    ("no position", spoiled(0, position=None), 3),
    ("position below 1", spoiled(0, position=0), 3),
    ("position above 10,000", spoiled(0, position=10_001), 3),
    ("two documents at one position", spoiled(0, position=2), 3),
    ("same document twice on a page", spoiled(0, document="y"), 3),
    ("no impression id", spoiled(0, impression=None), 1),
    ("no document", spoiled(0, document=None), 1),
    ("click is no number of clicks", spoiled(0, click=-1), 1),
    ("click is no number of clicks", spoiled(0, click=None), 1),
]


@pytest.mark.parametrize(("reason", "rows", "count"), FAULTS)
def test_a_fault_puts_the_page_aside_or_only_the_row(reason: str, rows: list[Row], count: int, tmp_path: Path) -> None:
    prepared = prepare(frame(rows), tmp_path / "log")
    (found,) = prepared.summary.reasons
    assert (found.reason, found.rows, found.whole_page) == (reason, count, count == 3)
    rejected = parquet.read_table(tmp_path / "log" / "rejected.parquet").to_pylist()
    assert [row["reason"] for row in rejected] == [reason] * count
    assert prepared.summary.rows.kept == len(GOOD) - count
    with pytest.raises(DataError, match=f"{count} of 8 rows of .* have a fault .*{reason}"):
        prepare(frame(rows), tmp_path / "strict", strict=True)
    assert not (tmp_path / "strict").exists()


def test_the_last_position_that_is_no_mistake_is_kept() -> None:
    assert read_log(frame(spoiled(2, position=10_000))).positions.max() == 10_000


def test_what_was_given_stands_beside_the_reason(tmp_path: Path) -> None:
    texts = [{key: None if value is None else str(value) for key, value in row.items()} for row in GOOD]
    texts[0]["position"] = "top"
    texts[3]["click"] = "often"
    prepare(pyarrow.Table.from_pylist(texts), tmp_path / "log")
    rejected = parquet.read_table(tmp_path / "log" / "rejected.parquet").to_pylist()
    assert {row["position"] for row in rejected if row["reason"] == "no position"} == {"top", "2", "3"}
    assert [row["click"] for row in rejected if row["reason"] == "click is no number of clicks"] == ["often"]


def test_a_row_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    prepared = prepare(frame([*GOOD, GOOD[0], GOOD[7], GOOD[7]]), tmp_path / "log", pairs=True)
    assert prepared.summary.tallies() == {
        "rows": {"read": 11, "kept": 8, "aside": 0, "repeated": 3},
        "pages": {"read": 3, "kept": 3, "aside": 0, "repeated": 0},
        "clicks": {"read": 6, "kept": 3, "aside": 0, "repeated": 3},
    }
    assert prepared.log.fingerprint() == read_log(frame(GOOD), pairs=True).fingerprint()


def test_rows_of_one_document_that_differ_are_put_aside_both(tmp_path: Path) -> None:
    prepared = prepare(frame([*GOOD, GOOD[0] | {"click": 0}]), tmp_path / "log")
    assert [(each.reason, each.rows) for each in prepared.summary.reasons] == [("same document twice on a page", 4)]
    rejected = parquet.read_table(tmp_path / "log" / "rejected.parquet").to_pylist()
    assert sorted(row["click"] for row in rejected if row["document"] == "x") == ["0", "1"]


def test_several_clicks_on_a_row_are_a_click_and_their_number_is_kept(tmp_path: Path) -> None:
    prepared = prepare(frame(spoiled(0, click=3)), tmp_path / "log")
    assert prepared.summary.several_clicks == 1
    assert prepared.log.clicks.sum() == 3
    assert prepared.log.signal("click_events").sum() == 5
    assert not prepared.summary.reasons


def test_no_value_means_no_click_where_nothing_says_so(tmp_path: Path) -> None:
    plain = prepare(frame(GOOD), tmp_path / "plain")
    assert not plain.summary.null_is_no_click
    clicks = pyarrow.array([1 if row["click"] else None for row in GOOD], pyarrow.int64())
    for kind in (pyarrow.int64(), pyarrow.bool_(), pyarrow.string(), pyarrow.float64()):
        prepared = prepare(frame(GOOD).set_column(4, "click", clicks.cast(kind)), tmp_path / str(kind))
        assert prepared.summary.null_is_no_click, kind
        assert prepared.log.fingerprint() == plain.log.fingerprint(), kind


def test_a_log_of_clicked_rows_only_is_refused() -> None:
    with pytest.raises(DataError, match=r"every document .* was clicked whenever it was shown, so rows without"):
        read_log(frame([row | {"click": 1} for row in GOOD]))


def test_signals_stand_beside_the_click(tmp_path: Path) -> None:
    table = frame(GOOD).append_column("bought", pyarrow.array([True, *[None] * 6, True]))
    table = table.append_column("seconds", pyarrow.array([31.0, 0, 0, 0, 29.9, None, 0, 30]))
    signals = {"purchase": "bought", "long": "seconds>=30", "known": "seconds>=0"}
    prepared = prepare(table, tmp_path / "log", signals=signals)
    assert prepared.summary.signals == {"purchase": 2, "long": 2, "known": 7}
    log = ClickLog.load(tmp_path / "log")
    of_documents = dict(zip(log.documents.tolist(), log.signal("purchase").tolist(), strict=True))
    assert of_documents == {0: 1, 1: 0, 2: 0, 3: 1, 4: 0}


def test_a_signal_that_is_no_number_puts_the_row_aside() -> None:
    table = frame(GOOD).append_column("bought", pyarrow.array(["1", "often", *["0"] * 6]))
    _, said = read_with_warning(table, signals={"purchase": "bought"})
    assert said.startswith("1 of 8 rows were put aside (signal is no whole number: 1)")


def test_ids_of_pages_in_two_columns_are_not_confused() -> None:
    """Joined by what separates them, both pages of query a would have one id."""
    rows = [*page(1, "a", "xy", "10"), *page(2, "a", "xy", "01"), *page(3, "b", "yx", "01")]
    firsts, seconds = {1: "s\x1f", 2: "s", 3: "t"}, {1: "p", 2: "\x1fp", 3: "p"}
    table = frame(rows).append_column("session", pyarrow.array([firsts[row["impression"]] for row in rows]))
    table = table.append_column("page", pyarrow.array([seconds[row["impression"]] for row in rows]))
    assert read_log(table, impression=["session", "page"]).impressions.sum() == 3


@pytest.mark.parametrize("odd", ["it's", 'a "b"', "\x1f", "?", "; DROP TABLE log; --", "{0}%s"])
def test_names_and_values_may_hold_what_means_something_elsewhere(odd: str, tmp_path: Path) -> None:
    table = with_features(GOOD)
    values = {name: [f"{odd}{value}" for value in table[name].to_pylist()] for name in ("query", "document", "device")}
    for name, texts in values.items():
        table = table.set_column(table.column_names.index(name), name, pyarrow.array(texts))
    parquet.write_table(table.rename_columns([f"{name}{odd}" for name in table.column_names]), tmp_path / "raw.parquet")
    roles: dict[str, Any] = {name: f"{name}{odd}" for name in ("query", "document", "position", "click")}
    roles |= {"impression": [f"impression{odd}"], "factors": [f"device{odd}"], "features": [f"bm25{odd}"]}
    prepared = prepare(tmp_path / "raw.parquet", tmp_path / "log", rare=1, **roles)
    expected = read_log(with_features(GOOD), factors=["device"], features=["bm25"], rare=1)
    assert prepared.log.query_ids.tolist() == [f"{odd}{query}" for query in expected.query_ids]
    assert prepared.log.factors[1].levels == tuple(f"{odd}{level}" for level in expected.factors[1].levels)
    assert prepared.log.clicks.tolist() == expected.clicks.tolist()
    assert prepared.log.features.tolist() == expected.features.tolist()
    documents = parquet.read_table(tmp_path / "log" / "documents.parquet")["document"].to_pylist()
    assert documents == [f"{odd}{document}" for document in "xyzxy"]


def test_positions_that_start_at_zero_are_given_back_as_they_were(tmp_path: Path) -> None:
    rows = [row | {"position": row["position"] - 1} for row in spoiled(0, query=None)]
    prepare(frame(rows), tmp_path / "log", positions_from=0)
    rejected = parquet.read_table(tmp_path / "log" / "rejected.parquet").to_pylist()
    assert {row["document"]: row["position"] for row in rejected} == {"x": "0", "y": "1", "z": "2"}


def test_impressions_may_be_numbered_by_hashes_of_64_bits() -> None:
    hashes = pyarrow.array([2**64 - row["impression"] for row in GOOD], pyarrow.uint64())
    assert read_log(frame(GOOD).set_column(0, "impression", hashes)).impressions.tolist() == [2, 1]


@pytest.mark.parametrize(("largest", "refused"), [(2.0**53, True), (2.0**53 - 1, False)])
def test_ids_that_floats_have_rounded_are_refused(largest: float, refused: bool) -> None:  # noqa: FBT001
    ids = pyarrow.array([largest if row["impression"] == 1 else float(row["impression"]) for row in GOOD])
    table = frame(GOOD).set_column(0, "impression", ids)
    if not refused:
        assert read_log(table).impressions.sum() == 3
        return
    with pytest.raises(DataError, match=r"column 'impression' of .* holds ids as floats of 2\^53 and more"):
        read_log(table)


def test_features_come_from_columns_of_the_log(tmp_path: Path) -> None:
    prepared = prepare(with_features(GOOD), tmp_path / "log", features=["bm*"])
    assert prepared.log.feature_names == ("bm25",)
    assert prepared.log.features.dtype == np.float32
    assert prepared.log.features[:, 0].tolist() == [1, 2, 3, 4, 5]
    ClickBaseline(relevance=MLP(hidden=(4,), steps=2)).fit(ClickLog.load(tmp_path / "log"))


def test_features_may_be_truth_values_texts_or_decimals() -> None:
    table = frame(GOOD)
    keys = list(GOOD_FEATURES)
    numbers = [keys.index((row["query"], row["document"])) for row in GOOD]
    table = table.append_column("new", pyarrow.array([number % 2 == 0 for number in numbers]))
    table = table.append_column("text", pyarrow.array([f" {number}.5 " for number in numbers]))
    table = table.append_column(
        "price", pyarrow.array([Decimal(number) for number in numbers], pyarrow.decimal128(5, 1))
    )
    log = read_log(table, features=["new", "text", "price"])
    assert log.features.tolist() == [[n % 2 == 0, n + 0.5, n] for n in range(5)]


@pytest.mark.parametrize("keys", [["query", "document"], ["document"]])
def test_features_come_from_a_second_table(keys: list[str], tmp_path: Path) -> None:
    second: list[dict[str, Any]] = [
        {"query": query, "document": document, "a": ord(document), "b": str(ord(document) / 2)}
        for query, document in GOOD_FEATURES
    ]
    table = [{key: row[key] for key in (*keys, "a", "b")} for row in second]
    log = read_log(frame(GOOD), features_from=pyarrow.Table.from_pylist(table))
    assert log.feature_names == ("a", "b")
    assert log.features.tolist() == [[row["a"], row["a"] / 2] for row in second]
    only = read_log(frame(GOOD), features_from=pyarrow.Table.from_pylist(table), features=["b"])
    with pytest.raises(OptionError, match=r"has no column 'bm25'.*All features come from this table; .* sql:SELECT"):
        read_log(frame(GOOD), features_from=pyarrow.Table.from_pylist(table), features=["bm25", "b"])
    assert only.feature_names == ("b",)


@pytest.mark.parametrize(
    ("value", "reason", "count"),
    [
        (float("inf"), "infinity or text in the features", 1),
        (-float("inf"), "infinity or text in the features", 1),
        (1e300, "infinity or text in the features", 1),
    ],
)
def test_rows_with_features_that_cannot_be_used_are_put_aside(
    value: float | None, reason: str, count: int, tmp_path: Path
) -> None:
    table = with_features(GOOD)
    values = [value, *table["bm25"].to_pylist()[1:]]
    table = table.set_column(table.column_names.index("bm25"), "bm25", pyarrow.array(values, pyarrow.float64()))
    summary = prepare(table, tmp_path / "log", features=["bm25"]).summary
    assert [(each.reason, each.rows) for each in summary.reasons] == [(reason, count)]
    assert summary.pages.kept == 3
    assert not summary.missing


GAPS: dict[str, list[Any]] = {"floats": [None, float("nan")], "texts": [None, "", " ", "NaN", "NULL", "n/a", "NA"]}


@pytest.mark.parametrize("kind", GAPS)
def test_a_missing_feature_stays_missing_and_is_counted(kind: str, tmp_path: Path) -> None:
    """In all rows of two documents or of one, in the log and in a table of its own; two features for each gap."""
    types = pyarrow.float64() if kind == "floats" else pyarrow.string()

    def column(values: list[Any]) -> pyarrow.Array:
        return pyarrow.array([value if kind == "floats" or value is None else str(value) for value in values], types)

    pairs = [(row["query"], row["document"]) for row in GOOD]
    inline = frame(GOOD)
    second = pyarrow.table({"query": [q for q, _ in GOOD_FEATURES], "document": [d for _, d in GOOD_FEATURES]})
    for number, gap in enumerate(GAPS[kind]):
        told = {pair: gap if pair in {("a", "x"), ("b", "y")} else value for pair, value in GOOD_FEATURES.items()}
        other = {pair: gap if pair == ("b", "y") else 1.0 for pair in told}
        for name, values in {f"rare_{number}": other, f"bm25_{number}": told}.items():
            inline = inline.append_column(name, column([values[pair] for pair in pairs]))
            second = second.append_column(name, column(list(values.values())))
    known = np.array([[1, np.nan], [1, 2], [1, 3], [1, 4], [np.nan, np.nan]], dtype=np.float32)
    gaps = range(len(GAPS[kind]))
    missing = {f"bm25_{number}": 0.4 for number in gaps} | {f"rare_{number}": 0.2 for number in gaps}
    for number, options in enumerate(({"features": second.column_names[2:]}, {"features_from": second})):
        prepared = prepare(frame(GOOD) if number else inline, tmp_path / str(number), **options)
        np.testing.assert_array_equal(prepared.log.features, np.tile(known, len(gaps)))
        assert prepared.log.fingerprint() == ClickLog.load(tmp_path / str(number)).fingerprint()
        assert (prepared.summary.rows.aside, prepared.summary.changed) == (0, 0)
        assert list(prepared.summary.missing.items()) == list(missing.items())
        assert json.loads((tmp_path / str(number) / "summary.json").read_text())["missing"] == missing
    assert read_log(inline, features=second.column_names[2:]).fingerprint() == prepared.log.fingerprint()


@pytest.mark.parametrize("value", [None, float("nan"), 9.0])
def test_a_document_whose_features_change_is_one_for_each_set_of_them(value: float | None, tmp_path: Path) -> None:
    """Document x of query a is shown twice: with another value, then with its own."""
    first = [value, *(GOOD_FEATURES[row["query"], row["document"]] for row in GOOD[1:])]
    table = frame(GOOD).append_column("bm25", pyarrow.array(first, pyarrow.float64()))
    prepared = prepare(table, tmp_path / "log", features=["bm25"])
    other = np.nan if value is None else value
    np.testing.assert_array_equal(np.sort(prepared.log.features[:, 0]), np.sort([1, 2, 3, 4, 5, other]))
    assert (prepared.summary.rows.aside, prepared.summary.changed) == (0, 1)
    assert prepared.log.impressions.tolist() == [1, 1, 1]
    named = parquet.read_table(tmp_path / "log" / "documents.parquet").to_pylist()
    assert [(row["query"], row["document"]) for row in named[:2]] == [("a", "x")] * 2


def test_two_sets_of_features_of_one_document_on_a_page_are_a_document_shown_twice() -> None:
    rows = [*GOOD, GOOD[0] | {"position": 4}]
    table = frame(rows).append_column("bm25", pyarrow.array([float(n) for n in range(9)]))
    _, said = read_with_warning(table, features=["bm25"])
    assert "same document twice on a page: 4" in said


def test_text_in_the_features_is_put_aside() -> None:
    rows = [*GOOD, *page(4, "b", "yx", "01"), *page(5, "b", "yx", "01")]
    values = ["red", *(str(GOOD_FEATURES[row["query"], row["document"]]) for row in rows[1:])]
    table = frame(rows).append_column("bm25", pyarrow.array(values))
    log, said = read_with_warning(table, features=["bm25"])
    assert said.startswith("1 of 12 rows were put aside (infinity or text in the features: 1)")
    assert log.features[:, 0].tolist() == [1, 2, 3, 4, 5]


def test_text_that_is_mostly_no_number_is_a_category(tmp_path: Path) -> None:
    colours = {"x": "red", "y": "blue", "z": None}
    many = [row for n in range(30) for row in page(n, "ab"[n % 2], "xyz" if n % 2 else "yxz", "010")]
    for n, row in enumerate(many):
        row["document"] += str(n % 20)
    table = frame(many).append_column("colour", pyarrow.array([colours[row["document"][0]] for row in many]))
    prepared = prepare(table, tmp_path / "log", features=["colour"])
    assert prepared.log.categories == {"colour": ("blue", "red")}
    named = parquet.read_table(tmp_path / "log" / "documents.parquet").to_pylist()
    expected = [{"x": 1.0, "y": 0.0, "z": np.nan}[row["document"][0]] for row in named]
    np.testing.assert_array_equal(prepared.log.features[:, 0], expected)
    assert [row["category colour"] for row in named] == [colours[row["document"][0]] for row in named]
    assert ClickLog.load(tmp_path / "log").categories == prepared.log.categories


def test_rare_categories_are_other() -> None:
    many = [row for n in range(30) for row in page(n, "ab"[n % 2], "xyz", "010")]
    for n, row in enumerate(many):
        row["document"] += str(n)
    brands = ["rare" if n % 30 == 0 else "common" for n in range(len(many))]
    log = read_log(frame(many).append_column("brand", pyarrow.array(brands)), features=["brand"])
    assert log.categories == {"brand": ("common", "other")}
    assert int((log.features[:, 0] == 1).sum()) == 3


def test_an_embedding_is_a_feature_for_each_of_its_numbers() -> None:
    vectors = [[value, -value, 0.5] for value in (GOOD_FEATURES[row["query"], row["document"]] for row in GOOD)]
    log = read_log(frame(GOOD).append_column("vector", pyarrow.array(vectors)), features=["vector"])
    assert log.feature_names == ("vector[0]", "vector[1]", "vector[2]")
    assert log.features.tolist() == [[value, -value, 0.5] for value in (1, 2, 3, 4, 5)]


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (pyarrow.array([[1.0], *[[1.0, 2.0]] * 7]), "column 'odd' of .* holds lists of 1 to 2 numbers"),
        (pyarrow.array([{"a": 1}] * 8), "column 'odd' of .* holds struct.*, which cannot be a feature; leave it out"),
        (pyarrow.array(["2024-01-01"] * 8).cast(pyarrow.date32()), "column 'odd' of .* holds date"),
        (pyarrow.array([["a"]] * 8), "column 'odd' of .* holds array<string>"),
    ],
)
def test_a_column_that_cannot_be_a_feature_is_named(column: pyarrow.Array, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        read_log(frame(GOOD).append_column("odd", column), features=["odd"])


def test_features_may_be_left_out_by_pattern() -> None:
    table = with_features(GOOD).append_column("title", pyarrow.array([f"t{n}" for n in range(8)]))
    table = table.append_column("title_length", pyarrow.array([2] * 8))
    assert read_log(table, features=["*", "!title*", "!device"]).feature_names == ("bm25",)
    assert read_log(table, features=["!title", "!device"]).feature_names == ("bm25", "title_length")
    with pytest.raises(OptionError, match="has no column 'titel', did you mean 'title'"):
        read_log(table, features=["*", "!titel"])


def test_the_click_of_a_row_put_aside_does_not_count_for_another_row_of_its_document() -> None:
    rows = [GOOD[0] | {"click": 0}, GOOD[0], GOOD[1] | {"click": 1}, *GOOD[2:]]
    values = [float("inf") if n == 1 else GOOD_FEATURES[row["query"], row["document"]] for n, row in enumerate(rows)]
    table = frame(rows).append_column("bm25", pyarrow.array(values, pyarrow.float64()))
    log, said = read_with_warning(table, features=["bm25"], pairs=True)
    assert said.startswith("1 of 9 rows were put aside (infinity or text in the features: 1)")
    assert log.impressions.tolist() == [2, 1]
    assert sorted(log.clicks.tolist()) == [0, 0, 0, 1, 2]
    assert log.pair_clicks is not None
    assert not log.pair_clicks.any()


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (None, "no features"),
        ({"query": "a", "document": "x", "bm25": float("inf")}, "infinity or text in the features"),
        ({"query": "a", "document": "x", "bm25": 9.0}, "conflicting features"),
    ],
)
def test_a_second_table_may_have_faults_too(row: dict[str, Any] | None, reason: str, tmp_path: Path) -> None:
    known = [{"query": q, "document": d, "bm25": v} for (q, d), v in GOOD_FEATURES.items()]
    second = [row, *(known if reason == "conflicting features" else known[1:])] if row else known[1:]
    prepared = prepare(frame(GOOD), tmp_path / "log", features_from=pyarrow.Table.from_pylist(second))
    assert [(each.reason, each.rows) for each in prepared.summary.reasons] == [(reason, 2)]
    assert prepared.summary.pages.kept == 3
    assert sorted(prepared.log.features[:, 0].tolist()) == [2, 3, 4, 5]


def test_a_click_on_a_row_that_is_put_aside_leaves_its_page_without_one(tmp_path: Path) -> None:
    # Page 1 is clicked at x alone, page 2 at y, page 3 of query b at x.
    summaries = [
        prepare(with_features(GOOD), tmp_path / "all", features=["bm25"]).summary,
        prepare(frame(spoiled(0, document=None)), tmp_path / "row").summary,
        prepare(frame(spoiled(0, position=0)), tmp_path / "page").summary,
    ]
    assert [summary.empty_pages for summary in summaries] == [0, 1, 0]
    known = [{"query": q, "document": d, "bm25": v} for (q, d), v in GOOD_FEATURES.items() if (q, d) != ("a", "x")]
    features = prepare(frame(GOOD), tmp_path / "features", features_from=pyarrow.Table.from_pylist(known)).summary
    assert (features.pages.kept, features.empty_pages) == (3, 1)
    assert json.loads((tmp_path / "features" / "summary.json").read_text())["empty_pages"] == 1


def test_rare_values_of_a_factor_become_one_level() -> None:
    devices = ["phone"] * 5 + ["desk"] * 4 + ["watch"] * 2 + ["car", None]
    rows = [row for n, device in enumerate(devices) for row in page(n, "ab"[n % 2], "xyz", "100", device)]
    log = read_log(frame(rows), factors=["device"], rare=4)
    assert log.factors[1].levels == ("desk", "other", "phone")
    assert read_log(frame(rows), factors=["device"], rare=0).factors[1].levels == (
        *("car", "desk", "missing", "phone", "watch"),
    )


def test_rare_values_join_a_common_value_called_other(tmp_path: Path) -> None:
    devices = ["other", "other", "phone", "phone", "watch"]
    rows = [row for n, device in enumerate(devices) for row in page(n, "ab"[n % 2], "xyz", "100", device)]
    prepared = prepare(frame(rows), tmp_path / "log", factors=["device"], rare=2)
    assert prepared.log.factors[1].levels == ("other", "phone")
    (found,) = prepared.summary.factors
    assert (found.levels, found.rare_values, found.rare_impressions) == (2, 1, 1)


def test_pages_put_aside_do_not_make_a_value_common() -> None:
    rows = [*GOOD, *page(4, "a", "xyx", "100", "watch"), *page(5, "b", "yx", "01", "watch")]
    log, _ = read_with_warning(frame(rows), factors=["device"], rare=2)
    assert log.factors[1].levels == ("other", "phone")


def test_the_folder_tells_what_became_of_every_row(tmp_path: Path) -> None:
    rows = spoiled(0, position=0)
    prepare(frame(rows), tmp_path / "log", factors=["device"], rare=2)
    summary = json.loads((tmp_path / "log" / "summary.json").read_text())
    assert summary["rows"] == {"read": 8, "kept": 5, "aside": 3}
    assert summary["pages"] == {"read": 3, "kept": 2, "aside": 1}
    assert summary["clicks"] == {"read": 3, "kept": 2, "aside": 1}
    assert summary["columns"]["query"] == "query"
    assert summary["columns"]["guessed"] == ["impression", "query", "document", "position", "click"]
    assert summary["factors"] == [{"name": "device", "levels": 1, "rare_values": 0, "rare_impressions": 0, "edges": []}]
    assert {path.name for path in (tmp_path / "log").iterdir()} >= {"rejected.parquet", "documents.parquet"}
    assert not (tmp_path / "log" / ".work").exists()


def test_a_log_without_features_is_saved_and_loaded_but_not_trained_on(tmp_path: Path) -> None:
    log = prepare(frame(GOOD), tmp_path / "log").log
    assert log.features.shape == (5, 0)
    assert ClickLog.load(tmp_path / "log").fingerprint() == log.fingerprint()
    with pytest.raises(DataError, match=r"no features, so there is nothing to rank by; .* --features-from"):
        ClickBaseline(relevance=MLP(hidden=(4,), steps=2)).fit(log)


def test_rows_put_aside_are_a_warning_without_a_folder() -> None:
    _, said = read_with_warning(frame(spoiled(0, click=-1)))
    assert said == "1 of 8 rows were put aside (click is no number of clicks: 1); ultr.prepare keeps them in a file"


def test_positions_may_start_at_zero() -> None:
    rows = [row | {"position": row["position"] - 1} for row in GOOD]
    assert read_log(frame(rows), positions_from=0).fingerprint() == read_log(frame(GOOD)).fingerprint()
    with pytest.raises(DataError, match=r"no row of .* can be kept .position below 1: 8.; .* --positions-from 0"):
        read_log(frame(rows))


BAD: list[tuple[list[Row], dict[str, Any], str]] = [
    (GOOD, {"query": "qury"}, "has no column 'qury', did you mean 'query'; it has: impression, query, document"),
    (GOOD, {"features": ["bm25"]}, "has no column 'bm25'; it has: impression"),
    (GOOD, {"factors": ["Device "]}, "did you mean 'device'"),
    ([row | {"click": 0} for row in GOOD], {}, "has no click in the rows that are kept; check the column 'click'"),
    ([row for row in GOOD if row["position"] == 1], {}, "were shown at position 1, so position bias cannot be told"),
    (GOOD[:6], {}, "has one query only, 'a', and a ranker is learned from many; check the column 'query'"),
    ([], {}, "has no rows"),
    (GOOD, {"memory": "lots"}, "memory must be a size such as 4GB or 500MB, got 'lots'"),
    (GOOD, {"rare": -1}, "rare must be an integer of at least 0"),
    (GOOD, {"engine": "duckbd"}, "engine must be duckdb, spark or the connection string"),
    (GOOD, {"colums": "ubi"}, "did you mean 'columns'"),
    (GOOD, {"columns": "yandx"}, "did you mean 'yandex'"),
    (GOOD, {"columns": "nowhere.toml"}, "cannot read nowhere.toml"),
    (GOOD, {"features": "bm25"}, "features must be a list of columns, got 'bm25'"),
    (GOOD, {"factors": None}, "factors must be a list of columns, got None"),
    (GOOD, {"memory": "99999999999999GB"}, "memory must be a size such as 4GB or 500MB"),
    (GOOD, {"memory": 4}, "memory must be a size such as 4GB or 500MB, got 4"),
    (GOOD, {"memory": "1MB"}, "the memory is not enough .*; give more by --memory"),
    (GOOD, {"positions_from": "1"}, "positions_from must be an integer of at least 0, got '1'"),
    (GOOD, {"features_from": pyarrow.table({"thing": ["x"]})}, "the table of features, .* has no column 'document'"),
    (
        [row | {"query": None} if row["query"] == "b" else row for row in GOOD],
        {},
        r"one query only, 'a', .* column 'query' \(2 of 8 rows were put aside, no query: 2\)",
    ),
    (GOOD, {"factors": ["device", "device"]}, "a bias factor is given twice"),
    (GOOD, {"factors": ["device:1,inf"]}, "edges of bias factor 'device' must be ascending numbers"),
    (GOOD, {"factors": ["device:3,2"]}, "edges of bias factor 'device' must be ascending numbers"),
    (GOOD, {"factors": ["device:few"]}, "edges of bias factor 'device' must be numbers such as 0, 300 and 600"),
    (GOOD, {"factors": ["position"]}, "the position is a bias factor in any case"),
]


@pytest.mark.parametrize(("rows", "options", "message"), BAD)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    rows: list[Row], options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises((DataError, OptionError), match=message) as caught:
        prepare(frame(rows), tmp_path / "log", **options)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_queries_that_are_too_long_to_be_ids_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "MOST_QUERY_BYTES", 100)
    rows = [row | {"query": row["query"] * 20} for row in GOOD]
    with pytest.raises(DataError, match="2 queries of up to 20 characters are too much to keep as ids"):
        read_log(frame(rows))


def test_an_identifier_given_as_a_factor_is_refused(tmp_path: Path) -> None:
    count = 30_000
    table = pyarrow.table(
        {
            "impression": list(range(count)),
            "query": ["a", "b"] * (count // 2),
            "doc": ["x"] * count,
            "rank": [1, 2] * (count // 2),
            "click": [0, 1] * (count // 2),
            "user": list(range(count)),
        }
    )
    pages = pyarrow.table(
        {
            "query": ["a", "b"] * (count // 4),
            "docs": [["x", "y"]] * (count // 2),
            "clicks": ["10", "01"] * (count // 4),
            "user": [[2 * number, 2 * number + 1] for number in range(count // 2)],
        }
    )
    sentence = r"bias factor 'user' has about [0-9,]+ values, more than 10,000; give a column"
    for each in (table, pages):
        with pytest.raises(DataError, match=sentence):
            prepare(each, tmp_path / "log", factors=["user"])
    assert list(tmp_path.iterdir()) == []


def test_numbers_in_lists_are_cut_into_bins_like_any_others() -> None:
    count = 200
    pages = {
        "query": ["a", "b"] * (count // 2),
        "docs": [["x", "y"]] * count,
        "clicks": ["10", "01"] * (count // 2),
        "pixels": [[number + 0.5, 2 * number + 0.25] for number in range(count)],
    }
    log = read_log(pyarrow.table(pages), factors=["pixels"])
    assert log.factors[1].edges
    assert len(log.factors[1].levels) == len(log.factors[1].edges) + 1


def test_a_pair_with_a_document_that_is_put_aside_is_no_pair_of_another() -> None:
    rows = [*page(1, "a", "xyz", "101"), *page(2, "a", "xyz", "010"), *page(3, "b", "yxz", "101")]
    features = pyarrow.table({"document": ["x", "y"], "f": [1.0, 2.0]})
    log, _ = read_with_warning(frame(rows), features_from=features, pairs=True)
    assert log.lengths.tolist() == [2, 2]
    assert log.pair_clicks is not None
    assert not log.pair_clicks.any()


@pytest.mark.parametrize("kind", ["float64", "string"])
def test_an_amount_is_no_signal_but_may_be_one_from_a_threshold_on(kind: str) -> None:
    paid = pyarrow.array([12.99, 0, 0, 0, 5, 0, 0, 0.5]).cast(kind)
    table = frame(GOOD).append_column("revenue", paid)
    with pytest.raises(
        DataError, match=r"'revenue' of the pyarrow frame holds amounts such as (12.99|0.5), and a signal"
    ):
        read_log(table, signals={"sale": "revenue"})
    assert read_log(table, signals={"sale": "revenue>=0.01"}).signal("sale").sum() == 3
    whole = frame(GOOD).append_column("bought", pyarrow.array([2.0, 0, 0, 0, 1, 0, 0, 1]).cast(kind))
    assert read_log(whole, signals={"sale": "bought"}).signal("sale").sum() == 4

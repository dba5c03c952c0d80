from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from ultr.data.click_log import ClickLog
from ultr.errors import OptionError
from ultr.preparation.log import prepare, read_log

NAMED: dict[str, Any] = {"propensity": "p", "base_position": "before"}


def rows(pages: int = 6, *, day: int = 1) -> dict[str, list[Any]]:
    """Two documents a page, exchanged on every third one."""
    table: dict[str, list[Any]] = {name: [] for name in ("impression", "query", "document", "position", "click")}
    table |= {"p": [], "before": [], "day": []}
    for page in range(pages):
        order = [1, 0] if page % 3 == 2 else [0, 1]
        for place, base in enumerate(order):
            values: tuple[Any, ...] = (f"{day}-{page}", f"q{page % 2}", "xy"[base], place + 1, int(place == page % 2))
            values += (0.25 if page % 3 == 2 else 0.75, base + 1, f"2026-05-0{day}")
            for column, value in zip(table.values(), values, strict=True):
                column.append(value)
    return table


def placed(log: ClickLog) -> list[tuple[str, int, float, int, int]]:
    """Query, document, propensity, base position and impressions of each shown document."""
    assert log.placements is not None
    lists = np.repeat(np.arange(log.lists), log.lengths)
    found = zip(
        log.query_ids[log.queries[lists]].tolist(),
        log.documents.tolist(),
        log.placements.propensities.tolist(),
        log.placements.bases.tolist(),
        log.impressions[lists].tolist(),
        strict=True,
    )
    return sorted(found)


def test_columns_become_placements_and_pages_with_others_stay_apart() -> None:
    log = read_log(pyarrow.table(rows()), **NAMED)
    # A document is one of its query: those of q0 come first.
    assert placed(log) == [
        ("q0", 0, 0.25, 1, 1),
        ("q0", 0, 0.75, 1, 2),
        ("q0", 1, 0.25, 2, 1),
        ("q0", 1, 0.75, 2, 2),
        ("q1", 2, 0.25, 1, 1),
        ("q1", 2, 0.75, 1, 2),
        ("q1", 3, 0.25, 2, 1),
        ("q1", 3, 0.75, 2, 2),
    ]
    assert log.lists == 4
    one = rows()
    one["p"][0] = one["p"][1] = 0.5
    assert read_log(pyarrow.table(one), **NAMED).lists == 5


def test_a_log_that_says_nothing_of_them_is_what_it_was() -> None:
    table = pyarrow.table(rows())
    plain = read_log(table)
    assert plain.placements is None
    nothing = table.set_column(table.schema.get_field_index("p"), "p", pyarrow.nulls(len(table), pyarrow.float64()))
    assert read_log(nothing, **NAMED).fingerprint() == plain.fingerprint()


def test_pages_as_lists_have_lists_of_them() -> None:
    whole = rows()
    pages = {
        "query": [whole["query"][n] for n in range(0, 12, 2)],
        "docs": [whole["document"][n : n + 2] for n in range(0, 12, 2)],
        "clicks": ["".join(map(str, whole["click"][n : n + 2])) for n in range(0, 12, 2)],
        "p": [whole["p"][n : n + 2] for n in range(0, 12, 2)],
        "before": [whole["before"][n : n + 2] for n in range(0, 12, 2)],
    }
    assert placed(read_log(pyarrow.table(pages), **NAMED)) == placed(read_log(pyarrow.table(whole), **NAMED))


def test_what_is_missing_is_not_known_and_what_is_wrong_is_put_aside(tmp_path: Path) -> None:
    table = {name: [str(value) for value in column] for name, column in rows().items()}
    table["p"][:6] = ["0", "1.5", "x", "nan", "1", "0.5"]
    table["before"][5] = "-3"
    prepared = prepare(pyarrow.table(table), tmp_path / "log", **NAMED)
    (why,) = prepared.summary.reasons
    assert (why.reason, why.rows) == ("placement propensity or base position that is none", 4)
    log = prepared.log
    assert log.placements is not None
    assert np.isnan(log.placements.propensities).sum() == 1
    assert prepared.summary.placed == (7, 6)
    assert "7 of 8 shown documents have a placement propensity" in " ".join(prepared.summary.lines())


def test_days_are_added_with_theirs(tmp_path: Path) -> None:
    options: dict[str, Any] = {**NAMED, "time": "day", "periods": "day"}
    days = [pyarrow.table(rows(day=day)) for day in (1, 2)]
    prepare(days[0], tmp_path / "log", **options)
    grown = prepare(days[1], append=tmp_path / "log").log
    at_once = prepare(pyarrow.concat_tables(days), tmp_path / "once", **options).log
    assert grown.fingerprint() == at_once.fingerprint()
    assert placed(grown) == placed(at_once)


def test_a_base_position_needs_a_propensity() -> None:
    with pytest.raises(OptionError, match="--propensity"):
        read_log(pyarrow.table(rows()), base_position="before")
    with pytest.raises(OptionError, match="did you mean"):
        read_log(pyarrow.table(rows()), propensity="pp")


def ubi(folder: Path, *, explored: bool = True, parts: tuple[str, ...] = ("jsonl",)) -> Path:
    """The pages of `rows` as a service writes them, dealt out over files of these formats."""
    folder.mkdir()
    table, tables = rows(), {"ubi_queries": list[dict[str, Any]](), "ubi_events": list[dict[str, Any]]()}
    for n in range(0, 12, 2):
        shown = table["document"][n : n + 2]
        page = {"query_id": table["impression"][n], "timestamp": "2026-05-01T12:00:00.000Z"}
        attributes = {"ultr": {"policy": "abc", "epsilon": 0.25}}
        words = {"user_query": table["query"][n], "query_response_hit_ids": shown, "query_attributes": attributes}
        tables["ubi_queries"].append(page | words)
        for row in (n, n + 1):
            inside: dict[str, Any] = {"object": {"object_id": table["document"][row]}}
            inside["position"] = {"ordinal": table["position"][row]}
            ultr = {"ultr": {"propensity": table["p"][row], "base_rank": table["before"][row], "score": 0.5}}
            seen = inside | (ultr if explored else {})
            tables["ubi_events"].append(page | {"action_name": "impression", "event_attributes": seen})
            if table["click"][row]:
                tables["ubi_events"].append(page | {"action_name": "click", "event_attributes": inside})
    for name, content in tables.items():
        for part, ending in enumerate(parts):
            some = content[part :: len(parts)]
            if ending == "parquet":
                parquet.write_table(pyarrow.Table.from_pylist(some), folder / f"{name}-{part}.parquet")
            else:
                lines = "".join(json.dumps(row) + "\n" for row in some)
                (folder / f"{name}-{part}.jsonl").write_text(lines)
    return folder


def test_the_log_of_a_service_has_them_without_being_asked(tmp_path: Path) -> None:
    log = prepare(ubi(tmp_path / "shown"), tmp_path / "log", columns="ubi").log
    assert placed(log) == placed(read_log(pyarrow.table(rows()), **NAMED))
    plain = prepare(ubi(tmp_path / "plain", explored=False), tmp_path / "other", columns="ubi").log
    assert plain.placements is None
    assert plain.fingerprint() == read_log(pyarrow.table(rows())).fingerprint()


@pytest.mark.parametrize("parts", [("parquet",), ("parquet", "jsonl"), ("jsonl", "parquet", "parquet")])
def test_json_lines_and_parquet_are_read_alike_and_mixed(tmp_path: Path, parts: tuple[str, ...]) -> None:
    lines = prepare(ubi(tmp_path / "lines"), tmp_path / "one", columns="ubi", time="timestamp").log
    mixed = prepare(ubi(tmp_path / "mixed", parts=parts), tmp_path / "two", columns="ubi", time="timestamp").log
    assert mixed.fingerprint() == lines.fingerprint()
    assert mixed.placements is not None


def test_parquet_files_may_have_other_columns(tmp_path: Path) -> None:
    whole = prepare(ubi(tmp_path / "lines"), tmp_path / "one", columns="ubi").log
    folder = ubi(tmp_path / "hours", parts=("parquet",))
    (file,) = folder.glob("ubi_events*")
    rows = parquet.read_table(file).to_pylist()
    file.unlink()
    # An hour in which nothing was shown, only clicked: no event says how it was placed.
    for name, action in {"a": "click", "b": "impression"}.items():
        some = [row for row in rows if row["action_name"] == action]
        for row in some:
            if action == "click":
                del row["event_attributes"]["ultr"]
        parquet.write_table(pyarrow.Table.from_pylist(some), folder / f"ubi_events-{name}.parquet")
    assert prepare(folder, tmp_path / "two", columns="ubi").log.fingerprint() == whole.fingerprint()


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_lists_that_two_rankers_made_give_no_placements(tmp_path: Path, form: str) -> None:
    folder = ubi(tmp_path / "shown")
    (file,) = folder.glob("ubi_events*")
    events = [json.loads(line) for line in file.read_text().splitlines()]
    made = [event for event in events if event["action_name"] == "impression" and event["query_id"] == "1-0"]
    for number, event in enumerate(made):
        # The last one is below the places that are drafted.
        of_place = {"team": "new", "credited": True} if number < len(made) - 1 else {"team": None, "credited": False}
        event["event_attributes"]["ultr"] |= of_place
    file.unlink()
    if form == "jsonl":
        file.write_text("".join(json.dumps(event) + "\n" for event in events))
    else:
        parquet.write_table(pyarrow.Table.from_pylist(events), file.with_suffix(".parquet"))
    table = rows()
    table["p"] = [None if page == "1-0" else p for page, p in zip(table["impression"], table["p"], strict=True)]
    expected = read_log(pyarrow.table(table), **NAMED)
    assert prepare(folder, tmp_path / "log", columns="ubi").log.fingerprint() == expected.fingerprint()

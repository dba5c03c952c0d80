from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.preparation.test_log import GOOD, frame

from ultr.preparation.engine import connect
from ultr.preparation.log import prepare, read_log
from ultr.preparation.sources import open_table


def read(folder: Path, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    file = folder / "log.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "work").mkdir()
    with connect("duckdb", folder / "work", memory="1GB") as engine:
        found: list[dict[str, Any]] = engine.fetch(open_table(engine, file)).to_pylist()
        return found


def test_numbers_of_any_size_keep_all_their_digits(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {
            "id": 10**22 + number,
            "inside": {"id": 10**21 + number, "price": 1.5},
            "list": [10**20 + number, 3],
            "objects": [{"x": 0.5}, {"x": 2**70 + number}],
            "middle": 2**53 + number,
            "signed": -1 if number else 2**64 - 1,
        }
        for number in range(3)
    ]
    for given, found in zip(rows, sorted(read(tmp_path, rows), key=lambda row: row["middle"]), strict=True):
        assert found["id"] == str(given["id"])
        assert found["inside"] == {"id": str(10**21 + found["middle"] - 2**53), "price": 1.5}
        assert found["list"] == [str(value) for value in given["list"]]
        assert [each["x"] for each in found["objects"]] == ["0.5", str(given["objects"][1]["x"])]
        assert (found["middle"], int(found["signed"])) == (given["middle"], given["signed"])


def test_text_stays_text_and_numbers_among_text_are_text(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"day": "01-02-03", "when": "2024-01-01T10:00:00+02:00", "mixed": 1, "truth": True, "none": None, "age": 3},
        {"day": "10:00:00", "when": "2024-01-01T10:00:00+02:00", "mixed": "1", "truth": "no", "none": None, "age": 2.5},
        {"day": "04-05-06", "when": "2024-01-01T10:00:00+02:00", "mixed": "a", "truth": False, "none": None, "age": 1},
    ]
    found = sorted(read(tmp_path, rows), key=lambda row: -row["age"])
    assert [row["day"] for row in found] == [row["day"] for row in rows]
    assert {row["when"] for row in found} == {"2024-01-01T10:00:00+02:00"}
    assert [row["mixed"] for row in found] == ["1", "1", "a"]
    assert [row["truth"] for row in found] == ["true", "no", "false"]
    assert [row["none"] for row in found] == [None] * 3
    assert [row["age"] for row in found] == [3.0, 2.5, 1.0]


def test_days_that_look_otherwise_are_read_as_they_are_in_csv(tmp_path: Path) -> None:
    rows = [{"day": "01-02-03"}, {"day": "04-05-06"}]
    assert sorted(row["day"] for row in read(tmp_path, rows)) == ["01-02-03", "04-05-06"]


def test_documents_with_large_numbers_are_not_merged(tmp_path: Path) -> None:
    numbers = {name: 10**22 + place for place, name in enumerate("xyz")}
    rows = [row | {"document": numbers[row["document"]]} for row in GOOD]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    prepared = prepare(tmp_path / "log.jsonl", tmp_path / "log")
    assert prepared.summary.documents == 5
    assert prepared.log.fingerprint() == read_log(frame(GOOD)).fingerprint()


@pytest.mark.parametrize("name", ["order", 'a "b" c', "it's", "a.b", "SELECT 1; --"])
def test_a_column_may_have_any_name(name: str, tmp_path: Path) -> None:
    assert read(tmp_path, [{name: {name: [10**22]}}]) == [{name: {name: [str(10**22)]}}]


def test_times_with_zones_in_json_and_csv_are_the_same_moments(tmp_path: Path) -> None:
    # 23:30 in New York is 4:30 of the next day in UTC.
    zones = {1: "2024-01-31T23:30:00-05:00", 2: "2024-02-01T04:00:00Z", 3: "2024-02-01T06:15:00+02:00"}
    rows = [row | {"time": zones[row["impression"]]} for row in GOOD]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = frame(GOOD).append_column("time", [[row["time"] for row in rows]])
    logs = [read_log(each, time="time", periods=3) for each in (tmp_path / "log.jsonl", table)]
    assert logs[0].fingerprint() == logs[1].fingerprint()
    assert logs[0].period_names == ("2024-02-01 04:00:00", "2024-02-01 04:15:00", "2024-02-01 04:30:00")


def test_a_key_may_be_in_the_last_of_many_files_alone(tmp_path: Path) -> None:
    for number in range(40):
        device = {"device": "phone"} if number == 39 else {}
        rows = [page_row(number, place) | device for place in (1, 2)]
        (tmp_path / f"{number:02d}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_log(str(tmp_path), factors=["device"], rare=0).factors[1].levels == ("missing", "phone")


def page_row(page: int, place: int) -> dict[str, Any]:
    return {"impression": page, "query": f"q{page % 2}", "document": f"d{place}", "position": place, "click": place % 2}

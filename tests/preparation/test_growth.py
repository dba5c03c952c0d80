from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from ultr.data.click_log import ClickLog
from ultr.errors import DataError, OptionError
from ultr.preparation.log import prepare

OPTIONS: dict[str, Any] = {
    "time": "day",
    "periods": "day",
    "factors": ["device", "pixels:100,300"],
    "features": ["price", "brand"],
    "signals": {"purchase": "bought"},
    "label": "grade",
    "rare": 6,
    "pairs": True,
}


def day(number: int, pages: int = 25) -> pyarrow.Table:
    """Pages of one day: later days have queries, documents, devices and brands of their own, and other prices."""
    random = np.random.default_rng(number)
    rows = []
    for page in range(pages):
        query = int(random.integers(3 + number))
        for position, document in enumerate(random.permutation(4 + number)[:3], start=1):
            clicked = int(random.random() < 0.5)
            rows.append(
                {
                    "impression": f"{number}-{page}",
                    "query": f"q{query}",
                    "document": f"d{document}",
                    "position": position,
                    "click": clicked,
                    "bought": clicked * int(random.integers(2)),
                    "day": f"2024-03-0{number}",
                    "device": ["phone", "desk", f"new {number}"][min(int(random.integers(12)) // 5, 2)],
                    "pixels": float(position * 120 + int(random.integers(3))),
                    "price": float(document) + (number if document == 1 else 0),
                    "brand": None if document == 2 else f"brand {document % (1 + number)}",
                    "grade": str(document % 3) if document != 3 else str(number),
                }
            )
    rows[0]["position"] = 0
    rows.append(dict(rows[5]))
    return pyarrow.Table.from_pylist(rows)


def same_folder(one: Path, other: Path) -> None:
    names = sorted(path.name for path in one.glob("*.npy"))
    assert names == sorted(path.name for path in other.glob("*.npy"))
    for name in [*names, "manifest.json"]:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    tables = [parquet.read_table(folder / "documents.parquet") for folder in (one, other)]
    assert tables[0].equals(tables[1])
    assert ClickLog.load(one).fingerprint() == ClickLog.load(other).fingerprint()


def test_days_added_one_by_one_are_the_log_of_all_days_at_once(tmp_path: Path) -> None:
    days = [day(number) for number in (1, 2, 3)]
    whole = prepare(pyarrow.concat_tables(days), tmp_path / "whole", **OPTIONS)
    prepare(days[0], tmp_path / "grown", **OPTIONS)
    prepare(days[2], append=tmp_path / "grown")
    grown = prepare(days[1], append=tmp_path / "grown")
    same_folder(tmp_path / "whole", tmp_path / "grown")
    log = ClickLog.load(tmp_path / "grown")
    assert log.period_names == ("2024-03-01", "2024-03-02", "2024-03-03")
    assert {"brand 0", "other"} <= set(log.categories["brand"])
    assert len(log.factors[1].levels) > 2
    for name in ("rows", "pages", "clicks", "empty_pages", "lists", "documents", "factors", "missing", "signals"):
        assert getattr(grown.summary, name) == getattr(whole.summary, name), name
    assert {each.reason: each.rows for each in grown.summary.reasons} == {
        each.reason: each.rows for each in whole.summary.reasons
    }
    rejected = [parquet.read_table(tmp_path / name / "rejected.parquet").num_rows for name in ("whole", "grown")]
    assert rejected[0] == rejected[1]


def test_the_last_days_are_the_log_of_these_days(tmp_path: Path) -> None:
    # Labels of days that are dropped stay, so the log has none here.
    options = OPTIONS | {"rare": 0, "label": None}
    days = [day(number) for number in (1, 2, 3)]
    prepare(pyarrow.concat_tables(days[1:]), tmp_path / "two", **options)
    prepare(pyarrow.concat_tables(days[:2]), tmp_path / "grown", **options)
    prepare(days[2], append=tmp_path / "grown", last=2)
    same_folder(tmp_path / "two", tmp_path / "grown")


def test_a_day_is_not_added_twice(tmp_path: Path) -> None:
    prepare(day(1), tmp_path / "log", **OPTIONS)
    before = ClickLog.load(tmp_path / "log").fingerprint()
    with pytest.raises(DataError, match=r"has rows of 2024-03-01, a day that is in .* already"):
        prepare(day(1), append=tmp_path / "log")
    assert ClickLog.load(tmp_path / "log").fingerprint() == before


def test_another_folder_leaves_the_old_log_alone(tmp_path: Path) -> None:
    prepare(day(1), tmp_path / "old", **OPTIONS)
    before = ClickLog.load(tmp_path / "old").fingerprint()
    prepare(day(2), tmp_path / "new", append=tmp_path / "old")
    assert ClickLog.load(tmp_path / "old").fingerprint() == before
    assert len(ClickLog.load(tmp_path / "new").period_names) == 2


def test_what_would_make_another_log_is_refused(tmp_path: Path) -> None:
    prepare(day(1), tmp_path / "log", **OPTIONS)
    with pytest.raises(OptionError, match=r"was prepared with rare = 6, and what is added must be, too"):
        prepare(day(2), append=tmp_path / "log", rare=7)
    prepare(day(1), tmp_path / "plain", features=["price"])
    with pytest.raises(DataError, match="was not prepared by day; prepare it again with --time COLUMN --periods day"):
        prepare(day(2), append=tmp_path / "plain")
    with pytest.raises(OptionError, match="--last keeps days"):
        prepare(day(2), tmp_path / "last", features=["price"], last=2)
    with pytest.raises(OptionError, match="give the folder for the click log"):
        prepare(day(2))
    assert json.loads((tmp_path / "log" / "summary.json").read_text())["periods"] == ["2024-03-01"]


def test_numbers_have_no_days(tmp_path: Path) -> None:
    table = day(1).set_column(6, "day", pyarrow.array(range(len(day(1)))))
    with pytest.raises(DataError, match="are numbers, which have no days"):
        prepare(table, tmp_path / "log", **OPTIONS)


@pytest.mark.parametrize(
    "name",
    [
        *("documents.parquet", "features.npy", "manifest.json", "summary.json"),
        *("raw/settings.json", "raw/clicks.npy", "raw/manifest.json"),
    ],
)
def test_nothing_is_added_to_a_damaged_log(name: str, tmp_path: Path) -> None:
    prepare(day(1), tmp_path / "log", **OPTIONS)
    path = tmp_path / "log" / name
    whole = path.read_bytes()
    for place in range(len(whole) - 9, 9, -max(len(whole) // 5, 1)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(DataError):
            prepare(day(2), append=tmp_path / "log")
    path.write_bytes(whole)
    prepare(day(2), append=tmp_path / "log")

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
from ultr.preparation.robots import RobotRules

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


@pytest.mark.parametrize("unit", [1, 1_000, 10**6])
@pytest.mark.parametrize("kind", [pyarrow.int64(), pyarrow.float64(), pyarrow.string()])
def test_numbers_since_1970_have_days(unit: int, kind: pyarrow.DataType, tmp_path: Path) -> None:
    """One second before midnight, and at midnight, in any unit."""
    midnight, days = 1_709_251_200, [day(1), day(2)]
    times = [unit * (midnight - 1)] * len(days[0]) + [unit * midnight] * len(days[1])
    table = pyarrow.concat_tables(days).set_column(6, "day", pyarrow.array(times).cast(kind))
    prepare(table, tmp_path / "log", **OPTIONS)
    assert ClickLog.load(tmp_path / "log").period_names == ("2024-02-29", "2024-03-01")


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


def grown(folder: Path, first: pyarrow.Table, second: pyarrow.Table, later: dict[str, Any], **options: Any) -> Any:
    """Two days added one by one, checked against both at once if nothing but the log differs between them."""
    prepare(first, folder / "grown", time="day", periods="day", **options)
    added = prepare(second, append=folder / "grown", **later)
    if not later:
        prepare(pyarrow.concat_tables([first, second]), folder / "whole", time="day", periods="day", **options)
        same_folder(folder / "whole", folder / "grown")
    return added


def without_clicks(table: pyarrow.Table) -> pyarrow.Table:
    return table.drop_columns(["click", "bought"])


def events(table: pyarrow.Table, actions: dict[str, str], path: Path) -> str:
    """The clicks and purchases of a day as a table of their own, under other names."""
    found = [
        {"impression": row["impression"], "document": row["document"], "action": name}
        for row in table.to_pylist()
        for column, name in actions.items()
        if row[column] and row["position"] > 0
    ]
    parquet.write_table(pyarrow.Table.from_pylist(found), path)
    return str(path)


@pytest.mark.parametrize("several", [1, 2])
def test_one_day_alone_may_have_rows_of_several_clicks(several: int, tmp_path: Path) -> None:
    days = [day(1), day(2)]
    clicks = [
        3 * click if several == number else click
        for number in (1, 2)
        for click in days[number - 1]["click"].to_pylist()
    ]
    both = pyarrow.concat_tables(days)
    both = both.set_column(both.column_names.index("click"), "click", pyarrow.array(clicks))
    first, second = both.slice(0, len(days[0])), both.slice(len(days[0]))
    found = grown(tmp_path, first, second, {}, features=["price"])
    log = ClickLog.load(tmp_path / "grown")
    assert log.signal("click_events").sum() > log.clicks.sum()
    assert found.summary.signals == {"click_events": int(log.signal("click_events").sum())}


def test_added_days_have_the_actions_that_were_clicks_and_signals_before(tmp_path: Path) -> None:
    names = {"click": "tap", "bought": "order placed"}
    days = [day(1), day(2)]
    files = [events(each, names, tmp_path / f"events-{number}.parquet") for number, each in enumerate(days)]
    first, second = map(without_clicks, days)
    given: dict[str, Any] = {
        "action": "action",
        "click": "tap",
        "signals": {"sale": "order placed"},
        "features": ["price"],
    }
    found = grown(tmp_path, first, second, {"clicks_from": files[1]}, clicks_from=files[0], **given)
    at_once = pyarrow.concat_tables([parquet.read_table(file) for file in files])
    parquet.write_table(at_once, tmp_path / "events.parquet")
    both = pyarrow.concat_tables([first, second])
    options = {"time": "day", "periods": "day", "clicks_from": str(tmp_path / "events.parquet"), **given}
    whole = prepare(both, tmp_path / "whole", **options)
    same_folder(tmp_path / "whole", tmp_path / "grown")
    assert found.summary.signals == whole.summary.signals
    log = ClickLog.load(tmp_path / "grown")
    assert log.periods is not None
    assert (np.bincount(np.repeat(log.periods, log.lengths), log.signal("sale")) > 0).all()


def test_added_days_may_have_events_without_an_action(tmp_path: Path) -> None:
    days = [day(1), day(2)]
    files = [events(each, {"click": ""}, tmp_path / f"events-{number}.parquet") for number, each in enumerate(days)]
    first, second = map(without_clicks, days)
    found = grown(tmp_path, first, second, {"clicks_from": files[1]}, clicks_from=files[0], features=["price"])
    assert found.summary.clicks.read == sum(len(parquet.read_table(file)) for file in files)


def test_a_document_may_have_other_features_in_the_table_of_another_day(tmp_path: Path) -> None:
    """And none at all: then it is put aside for that, with no other document of its pages."""
    days = [without_features(day(1)), without_features(day(2))]
    names = [f"d{number}" for number in range(6)]
    tables = {
        "old": {"document": names, "price": [float(number) for number in range(6)]},
        "dearer": {"document": names, "price": [1.0 + number for number in range(6)]},
        "gone": {"document": names[1:], "price": [float(number) for number in range(1, 6)]},
    }
    for name, table in tables.items():
        parquet.write_table(pyarrow.table(table), tmp_path / f"{name}.parquet")
    prepare(days[0], tmp_path / "one", time="day", periods="day", features_from=str(tmp_path / "old.parquet"))
    dearer = prepare(days[1], tmp_path / "a", append=tmp_path / "one", features_from=str(tmp_path / "dearer.parquet"))
    alone = prepare(
        days[1], tmp_path / "two", time="day", periods="day", features_from=str(tmp_path / "dearer.parquet")
    )
    first = ClickLog.load(tmp_path / "one")
    assert dearer.log.impressions.sum() == first.impressions.sum() + alone.log.impressions.sum()
    assert dearer.log.clicks.sum() == first.clicks.sum() + alone.log.clicks.sum()
    assert dearer.summary.changed > 0
    gone = prepare(days[1], tmp_path / "b", append=tmp_path / "one", features_from=str(tmp_path / "gone.parquet"))
    shown = sum(row["document"] == "d0" and row["position"] > 0 for row in days[1].to_pylist()[:-1])
    faults = {each.reason: each.rows for each in gone.summary.reasons}
    assert faults["no features"] == shown
    assert "same document twice on a page" not in faults


def without_features(table: pyarrow.Table) -> pyarrow.Table:
    return table.drop_columns(["price", "brand"])


def test_robots_are_those_of_the_rules_of_the_log(tmp_path: Path) -> None:
    rules = RobotRules(page_results=3)
    found = grown(tmp_path, day(1), day(2), {}, features=["price"], drop_robots=True, robots=rules)
    assert "clicks of a robot" in {each.reason for each in found.summary.reasons}
    with pytest.raises(OptionError, match="was prepared with robots"):
        prepare(day(3), append=tmp_path / "grown", robots=RobotRules(page_results=4))


def test_numbers_of_pages_over_all_days_cannot_be_gone_on_with(tmp_path: Path) -> None:
    prepare(day(1), tmp_path / "log", **OPTIONS, fewest_pages=2)
    with pytest.raises(OptionError, match="fewest_pages = 2, which counts the pages of all days together"):
        prepare(day(2), append=tmp_path / "log")


def test_values_one_by_one_do_not_become_bins_on_a_later_day(tmp_path: Path) -> None:
    def with_width(table: pyarrow.Table, values: int) -> pyarrow.Table:
        return table.append_column("width", pyarrow.array([float(i % values) + 0.5 for i in range(len(table))]))

    one, other = day(1), day(2, pages=60)
    prepare(with_width(one, 3), tmp_path / "log", time="day", periods="day", factors=["width"], features=["price"])
    prepare(with_width(other, 4), tmp_path / "more", append=tmp_path / "log")
    with pytest.raises(DataError, match="'width' has so many values here that they are cut into bins"):
        prepare(with_width(other, 150), append=tmp_path / "log")

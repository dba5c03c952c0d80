from __future__ import annotations

import tempfile
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from tests.preparation.naive import Row, collapsed, read_back
from tests.preparation.test_log import GOOD, frame, logs, page, read_with_warning
from tests.preparation.test_ubi import EVENTS, QUERIES, write

from ultr.data.click_log import ClickLog
from ultr.errors import DataError, OptionError
from ultr.preparation.log import prepare, read_log


def timed(rows: list[Row], times: Any) -> pyarrow.Table:
    return frame(rows).append_column("time", [times] if isinstance(times, list) else times)


def periods_of(log: ClickLog) -> list[int]:
    assert log.periods is not None
    return [int(period) for period in log.periods]


SIX = [row for number in range(6) for row in page(number, "ab"[number % 2], "xy", "10")]
"""Six pages of two rows, three of each query."""


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(logs(), st.data(), st.integers(2, 5))
def test_a_log_with_times_collapses_as_it_does_by_hand(rows: list[Row], data: st.DataObject, periods: int) -> None:
    times = st.one_of(st.integers(-3, 6), st.sampled_from([*range(10)] * 5 + [None]))
    rows = [row | {"time": data.draw(times) if row["impression"] not in (100, 101) else 3} for row in rows]
    expected = collapsed(rows, rare=0, periods=periods)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "log"
        table = timed(rows, [row["time"] for row in rows])
        prepared = prepare(table, out, factors=["device"], rare=0, pairs=True, time="time", periods=periods)
        assert read_back(prepared.log, out) == expected
        assert prepared.summary.periods == prepared.log.period_names
        assert [factor.name for factor in prepared.log.factors] == ["position", "device"]


DAYS = [date(2024, 2, 28) + timedelta(days=number // 2) for number in range(12)]
MOMENTS = [datetime(2024, 2, 28, 23, 59, 58, tzinfo=UTC) + timedelta(seconds=number // 2) for number in range(12)]
DAY_NAMES = ("2024-02-28", "2024-03-01", "2024-03-03")
MOMENT_NAMES = ("2024-02-28 23:59:58", "2024-02-29 00:00:00", "2024-02-29 00:00:02")


@pytest.mark.parametrize(
    ("times", "names"),
    [
        ([10**18 + number // 2 for number in range(12)], tuple(str(10**18 + start) for start in (0, 2, 4))),
        (
            pyarrow.array([2**63 + number // 2 * 2048 for number in range(12)], pyarrow.uint64()),
            tuple(str(2**63 + 2048 * start) for start in (0, 2, 4)),
        ),
        ([number // 2 + 0.5 for number in range(12)], ("0.5", "2.5", "4.5")),
        ([float(number // 2) for number in range(12)], ("0", "2", "4")),
        (pyarrow.array([number // 2 for number in range(12)], pyarrow.decimal128(9, 2)), ("0", "2", "4")),
        ([f" {number // 2 + 8}" for number in range(12)], ("8", "10", "12")),
        (DAYS, DAY_NAMES),
        ([str(day) for day in DAYS], DAY_NAMES),
        (pyarrow.array([moment.replace(tzinfo=None) for moment in MOMENTS], pyarrow.timestamp("ms")), MOMENT_NAMES),
        (pyarrow.array(MOMENTS, pyarrow.timestamp("us", tz="Asia/Tokyo")), MOMENT_NAMES),
        ([moment.isoformat() for moment in MOMENTS], MOMENT_NAMES),
        ([moment.strftime("%Y-%m-%d %H:%M:%SZ") for moment in MOMENTS], MOMENT_NAMES),
        # Each row in a zone of its own: the order is that of the moments, not of the texts.
        (
            [
                (moment + timedelta(hours=number)).strftime("%Y-%m-%dT%H:%M:%S") + f"+{number:02}:00"
                for number, moment in enumerate(MOMENTS)
            ],
            MOMENT_NAMES,
        ),
    ],
)
def test_times_may_be_numbers_dates_moments_or_text(times: Any, names: tuple[str, ...]) -> None:
    log = read_log(timed(SIX, times), time="time", periods=3)
    assert log.period_names == names
    # Pages 0 and 1 are of queries a and b and in the first period, and so on.
    assert periods_of(log) == [0, 1, 2, 0, 1, 2]


def test_the_time_of_a_page_is_the_smallest_of_its_rows() -> None:
    latest_first = [9 - number // 2 - number % 2 for number in range(12)]
    log = read_log(timed(SIX, latest_first), time="time", periods=6)
    assert log.period_names == ("3", "4", "5", "6", "7", "8")
    assert log.impressions.tolist() == [1] * 6
    assert periods_of(log) == [1, 3, 5, 0, 2, 4]


def test_periods_have_about_as_many_pages_each_and_equal_times_stay_together() -> None:
    rows = [row for number in range(200) for row in page(number, "ab"[number % 2], "xy", "10")]
    random = np.random.default_rng(0)
    times = np.sort(random.integers(0, 1_000, size=200))
    log = read_log(timed(rows, times.repeat(2).tolist()), time="time", periods=8)
    sizes = np.bincount(periods_of(log), weights=log.impressions)
    assert len(sizes) == len(log.period_names) == 8
    # No time has more than four pages here, so that no cut is further off than two.
    assert np.bincount(times).max() <= 4
    assert np.abs(np.cumsum(sizes) - 25 * np.arange(1, 9)).max() <= 2
    few = read_log(timed(rows, [5] * 200 + [6] * 196 + [7] * 4), time="time", periods=10)
    assert few.period_names == ("5", "6", "7")
    assert read_log(timed(rows, [5] * 400), time="time").period_names == ("5",)


def test_the_same_list_in_two_periods_is_two_rows_and_the_clicks_stay_apart() -> None:
    rows = [*page(1, "a", "xy", "10"), *page(2, "a", "xy", "01"), *page(3, "a", "xy", "11"), *page(4, "b", "xy", "00")]
    log = read_log(timed(rows, [1, 1, 2, 2, 2, 2, 2, 2]), time="time", periods=4)
    assert log.impressions.tolist() == [1, 2, 1]
    assert log.clicks.tolist() == [1, 0, 1, 2, 0, 0]
    assert read_log(frame(rows)).impressions.tolist() == [3, 1]


@pytest.mark.parametrize("missing", [None, float("nan"), float("inf")])
def test_a_row_without_a_time_puts_its_page_aside(missing: float | None, tmp_path: Path) -> None:
    times = [1.0, missing, 1.0, *[2.0] * 3, 3.0, 3.0]
    prepared = prepare(timed(GOOD, times), tmp_path / "log", time="time")
    (found,) = prepared.summary.reasons
    assert (found.reason, found.rows, found.whole_page) == ("no time", 3, True)
    rejected = parquet.read_table(tmp_path / "log" / "rejected.parquet").to_pylist()
    assert [row["reason"] for row in rejected] == ["no time"] * 3
    assert prepared.log.period_names == ("2", "3")


def test_a_time_that_is_none_stands_beside_the_reason(tmp_path: Path) -> None:
    days = ["2024-01-01", "2024-02-30", "2024-01-01", *["2024-01-02"] * 5]
    prepare(timed(GOOD, days), tmp_path / "log", time="time")
    rejected = parquet.read_table(tmp_path / "log" / "rejected.parquet").to_pylist()
    assert {row["document"]: row["time"] for row in rejected} == {
        "x": "2024-01-01",
        "y": "2024-02-30",
        "z": "2024-01-01",
    }


def test_a_page_in_one_row_has_one_time() -> None:
    pages = pyarrow.table(
        {"q": ["a", "a", "b"], "docs": ["x,y", "x,y", "z,x"], "clicks": ["10", "01", "10"], "t": ["1", "2", None]}
    ).rename_columns(["query", "docs", "clicks", "t"])
    log, said = read_with_warning(
        pyarrow.concat_tables([pages, pages.set_column(3, "t", [["2", "1", "2"]])]), time="t", periods=2
    )
    assert said.startswith("2 of 12 rows were put aside (no time: 2)")
    assert log.impressions.tolist() == [2, 2, 1]
    assert periods_of(log) == [0, 1, 1]


def test_the_time_of_a_ubi_log_is_a_column_of_its_queries(tmp_path: Path) -> None:
    write(
        tmp_path, "ubi_queries", [row | {"timestamp": f"2024-05-0{i + 1}T10:00:00Z"} for i, row in enumerate(QUERIES)]
    )
    write(tmp_path, "ubi_events", EVENTS)
    log = prepare(tmp_path, tmp_path / "log", columns="ubi", time="timestamp", factors=["timestamp"], rare=0).log
    assert log.period_names == ("2024-05-01 10:00:00", "2024-05-02 10:00:00", "2024-05-03 10:00:00")


def test_a_mapping_may_name_the_time(tmp_path: Path) -> None:
    (tmp_path / "mapping.toml").write_text('time = "time"')
    log = read_log(timed(GOOD, [1, 1, 1, 2, 2, 2, 3, 3]), columns=tmp_path / "mapping.toml")
    assert log.period_names == ("1", "2", "3")
    assert log.split(0.3, by="time")[1].impressions.tolist() == [1]


@pytest.mark.parametrize(
    ("times", "options", "message"),
    [
        (["yesterday"] * 8, {}, r"column 'time' of .* holds no times; give a column of timestamps, of dates as"),
        ([True] * 8, {}, r"column 'time' of .* holds no times; give a column"),
        ([[1]] * 8, {}, r"column 'time' of .* holds no times; give a column"),
        ([1] * 8, {"time": "tiem"}, "has no column 'tiem', did you mean 'time'"),
        ([1] * 8, {"periods": 1}, "periods must be an integer of at least 2, got 1"),
        ([1] * 8, {"periods": 1_001}, "periods must be at most 1,000, got 1,001"),
    ],
)
def test_what_is_no_time_is_one_sentence(times: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises((DataError, OptionError), match=message):
        read_log(timed(GOOD, times), **{"time": "time"} | options)

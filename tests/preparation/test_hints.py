"""Columns that prepare does not use, and should be asked about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pytest
from tests.preparation.test_log import GOOD, frame

from ultr.preparation.log import prepare


def hints(folder: Path, column: str, values: list[Any], **options: Any) -> tuple[str, ...]:
    table = frame(GOOD).drop(["device"]).append_column(column, pyarrow.array(values))
    return prepare(table, folder / "log", **options).summary.hints


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ("created_at", "looks like a time: --time created_at"),
        ("platform", "may be a cause of bias: --factor platform"),
        ("random_bool", "may mark pages in random order"),
    ],
)
def test_what_looks_useful_is_named(column: str, sentence: str, tmp_path: Path) -> None:
    (hint,) = hints(tmp_path, column, [number % 2 for number in range(len(GOOD))])
    assert hint.startswith(column)
    assert sentence in hint


@pytest.mark.parametrize("column", ["random_bool", "colour"])
def test_what_is_the_same_for_all_rows_or_says_nothing_is_not(column: str, tmp_path: Path) -> None:
    assert hints(tmp_path, column, [1] * len(GOOD)) == ()


def test_what_is_used_is_not(tmp_path: Path) -> None:
    assert hints(tmp_path, "platform", ["phone"] * len(GOOD), factors=["platform"]) == ()


def test_what_the_position_says_is_no_further_cause_of_bias(tmp_path: Path) -> None:
    """Positions that go on over pages have the page in them."""
    assert hints(tmp_path, "page", [1 + (row["position"] > 2) for row in GOOD]) == ()
    (hint,) = hints(tmp_path / "other", "page", [1 + row["impression"] % 2 for row in GOOD])
    assert hint.startswith("page may be a cause of bias")


def test_a_log_without_a_first_position_is_asked_about(tmp_path: Path) -> None:
    (hint,) = hints(tmp_path, "colour", [1] * len(GOOD), positions_from=0)
    assert hint.startswith("nothing was shown at position 1, the first is 2; ")


def test_a_factor_whose_values_are_all_rare_is_asked_about(tmp_path: Path) -> None:
    given = {row["impression"]: str(row["impression"]) for row in GOOD}
    table = frame(GOOD).drop(["device"]).append_column("visitor", pyarrow.array([given[r["impression"]] for r in GOOD]))
    for rare, said in ((100, True), (1, False)):
        lines = list(prepare(table, tmp_path / str(rare), factors=["visitor"], rare=rare).summary.lines())
        assert any(line.startswith("hint: no value of visitor has as many impressions") for line in lines) is said


@pytest.mark.parametrize(("empty", "asked"), [(None, True), ("0", False)])
def test_rows_without_a_number_of_clicks_are_asked_about_if_none_has_a_click(
    empty: str | None, *, asked: bool, tmp_path: Path
) -> None:
    """Clicks are 0, 1 and, in one row, empty."""
    table = frame(GOOD)
    clicks = [str(int(click)) for click in table["click"].to_pylist()]
    changed = clicks.index("0")
    table = table.drop(["click"]).append_column(
        "click", pyarrow.array([*clicks[:changed], empty, *clicks[changed + 1 :]])
    )
    summary = prepare(table, tmp_path / "log").summary
    assert (summary.rows.aside > 0) is asked
    told = [line for line in summary.lines() if line.startswith("hint: none of the 1 row without a number")]
    assert bool(told) is asked
    assert all("REPLACE (coalesce(click, 0) AS click)" in line for line in told)

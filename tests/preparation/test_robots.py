from __future__ import annotations

from pathlib import Path

import pyarrow
import pytest
from tests.preparation.test_log import frame, page

from ultr.errors import OptionError
from ultr.preparation.log import prepare
from ultr.preparation.robots import RobotRules

PEOPLE = [row for n in range(20) for row in page(n, "ab"[n % 2], "uvwxyz", "010000")]


def prepared_with(rows: list[dict[str, object]], folder: Path, **options: object):  # type: ignore[no-untyped-def]
    return prepare(frame(rows), folder, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("results", "found"), [(4, 0), (5, 1), (6, 1)])
def test_a_page_of_five_results_that_are_all_clicked_is_a_robot(results: int, found: int, tmp_path: Path) -> None:
    robot = page(100, "a", "uvwxyz"[:results], "1" * results)
    summary = prepared_with([*PEOPLE, *robot], tmp_path / "log").summary
    assert (summary.robots.pages, summary.robots.clicks) == (found, found * results)
    assert summary.rows.aside == 0
    assert any("page looks like a robot's" in line for line in summary.lines()) == bool(found)


def test_robots_are_dropped_on_request_and_accounted_for(tmp_path: Path) -> None:
    robot = page(100, "a", "uvwxyz", "111111")
    prepared = prepared_with([*PEOPLE, *robot], tmp_path / "log", drop_robots=True)
    assert [(each.reason, each.rows, each.clicks) for each in prepared.summary.reasons] == [("clicks of a robot", 6, 6)]
    assert prepared.log.impressions.sum() == 20
    line = next(line for line in prepared.summary.lines() if "robot" in line)
    # Six of the 26 clicks that were read are those of the robot.
    assert "1 page looks like a robot's (all of 5 or more results of a page clicked), with 23.1% of all clicks" in line


@pytest.mark.parametrize(("pages", "found"), [(8, 0), (9, 1)])
def test_a_user_who_clicks_half_of_fifty_results_is_a_robot(pages: int, found: int, tmp_path: Path) -> None:
    """Nine pages of six results are 54, eight are 48; half of each is clicked."""
    rows = [*PEOPLE, *(row for n in range(pages) for row in page(100 + n, "b", "uvwxyz", "101010"))]
    users = [f"u{row['impression']}" if row["impression"] < 100 else "bot" for row in rows]
    table = frame(rows).append_column("user", pyarrow.array(users))
    summary = prepare(table, tmp_path / "log", user="user", drop_robots=True).summary
    assert summary.robots is not None
    assert (summary.robots.users, summary.robots.pages) == (found, found * pages)
    assert summary.pages.aside == found * pages


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_rows_that_are_there_several_times_make_no_robot_and_no_further_clicks(copies: int, tmp_path: Path) -> None:
    three, six = page(100, "a", "uvw", "111"), page(101, "a", "uvwxyz", "111111")
    summary = prepared_with([*PEOPLE, *three, *six] * copies, tmp_path / "pages", drop_robots=True).summary
    assert (summary.robots.pages, summary.robots.clicks, summary.pages.aside) == (1, 6, 1)
    # Six pages of four results that are all clicked: a user who has seen 24 results, not 48 or 72.
    rows = [*PEOPLE, *(row for n in range(6) for row in page(200 + n, "b", "uvwx", "1111"))] * copies
    users = [f"u{row['impression']}" if row["impression"] < 200 else "eager" for row in rows]
    table = frame(rows).append_column("user", pyarrow.array(users))
    by_user = prepare(table, tmp_path / "users", user="user").summary
    assert by_user.robots is not None
    assert (by_user.robots.users, by_user.robots.pages) == (0, 0)


def test_queries_and_users_with_few_pages_are_put_aside(tmp_path: Path) -> None:
    rows = [*PEOPLE, *page(100, "rare", "uv", "10")]
    users = [f"u{row['impression'] % 7}" for row in rows]
    table = frame(rows).append_column("user", pyarrow.array(users))
    fewest = prepare(table, tmp_path / "queries", fewest_pages=2).summary
    assert [(each.reason, each.rows) for each in fewest.reasons] == [("query with few pages", 2)]
    # Of pages 0 to 19 and 100, users 0 to 5 have three and user 6 has two.
    often = prepare(table, tmp_path / "users", fewest_user_pages=3, user="user").summary
    assert [(each.reason, each.pages) for each in often.reasons] == [("user with few pages", 2)]
    with pytest.raises(OptionError, match="needs the column of the user or session; name it with --user"):
        prepare(table, tmp_path / "none", fewest_user_pages=3)


def test_rules_that_make_no_sense_are_refused() -> None:
    for rules, sentence in [
        (RobotRules(page_results=1), "page_results must be an integer of at least 2"),
        (RobotRules(user_share=0.0), "user_share must be a share"),
    ]:
        with pytest.raises(OptionError, match=sentence):
            rules.check()

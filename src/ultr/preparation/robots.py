"""Pages and users whose clicks no person makes, by rules that are stated and can be changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ultr import checks
from ultr.counted import counted
from ultr.preparation.collapse import kept_pages, page_table, rows_once
from ultr.preparation.engine import Engine
from ultr.preparation.reasons import FEW_OF_QUERY, FEW_OF_USER, KEPT, ROBOT


@dataclass(frozen=True)
class RobotRules:
    """From when on pages and users count as robots."""

    page_results: int = 5
    """A page is a robot's if it has at least so many results and all of them were clicked."""
    user_results: int = 50
    """A user is a robot if at least so many results were shown to them,"""
    user_share: float = 0.5
    """and at least this share of them was clicked."""

    def check(self) -> None:
        """Raise an `OptionError` for a rule that makes no sense."""
        checks.integer("page_results", self.page_results, at_least=2)
        checks.integer("user_results", self.user_results, at_least=1)
        checks.share("user_share", self.user_share)

    def in_words(self, *, users: bool) -> str:
        """The rules as a part of a sentence."""
        page = f"all of {self.page_results} or more results of a page clicked"
        user = f"{self.user_share:.0%} of {self.user_results} or more results of a user clicked"
        return f"{page}, or {user}" if users else page


@dataclass(frozen=True)
class Robots:
    """Pages that look like a robot's."""

    pages: int
    """Number of such pages."""
    clicks: int
    """Clicks on them."""
    users: int
    """Users that are robots; their pages are among the pages."""
    dropped: bool
    """True if they were put aside."""
    rules: str
    """The rules in words."""

    def sentence(self, clicks: int) -> str:
        """One line on them, out of so many clicks."""
        users = f" of {counted(self.users, 'user')} and others" if self.users else ""
        share, one = self.clicks / max(clicks, 1), self.pages == 1
        look = "looks" if one else "look"
        what = (
            f"{counted(self.pages, 'page')}{users} {look} like a robot's ({self.rules}), with {share:.1%} of all clicks"
        )
        done = f"{'it was' if one else 'they were'} put aside"
        if not self.dropped:
            done = f"--drop-robots puts {'it' if one else 'them'} aside"
        return f"{what}; {done}"


def marked(engine: Engine, rows: Any, pages: Any, rules: RobotRules, *, drop: bool) -> tuple[Any, Robots]:
    """The pages with the fault of a robot where they look like one and are to be dropped, and how many these are."""
    robots, of_users = _like_robots(pages, rules)
    robots = engine.keep(robots.select("page", "clicks"))
    if engine.count(robots.limit(1)):
        # A result that is there twice is one result, and one click; few pages need to be counted again for that.
        robots, of_users = _like_robots(page_table(engine, rows_once(engine, rows, robots)), rules)
        robots = engine.keep(robots.select("page", "clicks"))
    counts = engine.counts(robots.aggregate(pages=robots.count(), clicks=robots.clicks.sum()))
    users = 0 if of_users is None else engine.count(of_users)
    found = Robots(**counts, users=users, dropped=drop, rules=rules.in_words(users=of_users is not None))
    if not (drop and found.pages):
        return pages, found
    robot = pages.page.isin(robots.page)
    return engine.keep(pages.mutate(fault=robot.ifelse(ROBOT.code, pages.fault).cast("int16"))), found


def _like_robots(pages: Any, rules: RobotRules) -> tuple[Any, Any | None]:
    """The pages that the rules are true of, and the users that are robots if users are known."""
    kept = pages.filter(pages.fault == KEPT)
    by_page = (kept.length >= rules.page_results) & (kept.clicks == kept.length)
    if "user" not in pages.columns:
        return kept.filter(by_page), None
    known = kept.filter(kept.user.notnull())
    users = known.group_by("user").agg(results=known.length.sum(), clicks=known.clicks.sum())
    users = users.filter(
        (users.results >= rules.user_results) & (users.clicks.cast("float64") >= rules.user_share * users.results)
    )
    return kept.filter(by_page | kept.user.isin(users.user)), users


def without_few(engine: Engine, pages: Any, *, of_query: int, of_user: int) -> Any:
    """The pages with a fault where their query or their user has too few of them, users being counted first."""
    for column, fewest, reason in (("user", of_user, FEW_OF_USER), ("query", of_query, FEW_OF_QUERY)):
        if fewest <= 1:
            continue
        kept = kept_pages(pages)
        often = kept.group_by(column).agg(pages=kept.count())
        often = often.filter(often.pages >= fewest).select(often=often[column])
        joined = pages.left_join(often, pages[column] == often.often)
        few = (joined.fault == KEPT) & joined.often.isnull()
        fault = few.ifelse(reason.code, joined.fault).cast("int16")
        pages = engine.keep(joined.mutate(fault=fault).drop("often"))
    return pages

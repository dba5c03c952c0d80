"""Pages and users whose clicks no person makes, by rules that are stated and can be changed."""

from __future__ import annotations

from dataclasses import dataclass

from ultr import checks


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

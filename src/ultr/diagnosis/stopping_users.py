"""Users who look at nothing further after a click."""

from __future__ import annotations

from dataclasses import asdict

from ultr.bias.stopping import Stopping
from ultr.pages import Section, Verdict, sentences

WIDE = 0.25
"""With a larger standard error, the log does not tell how many users stop."""


def stopping_users(found: Stopping | None) -> Section:
    """The answer on whether users stop after a click; None where the log does not tell."""
    verdict, advice = Verdict.UNKNOWN, ""
    if found is None:
        answer = [
            "the log does not tell: there are fewer queries than features and positions, or no list was shown "
            "twice, or hardly one without a click"
        ]
    elif found.known:
        verdict = Verdict.CAREFUL
        answer = [
            "the first click is the last one: lists come up to one click per impression, and hardly one has more"
            if found.known == 1 and found.once
            else f"{max(found.lower, 0):.0%} to {min(found.upper, 1):.0%} look at nothing further after a click",
            "clicks below documents that are clicked much are few because few users are left, and a method that "
            "knows positions alone takes that for irrelevance",
        ]
        advice = (
            "Take the default, which counts clicks among the users who are left, or ultr train vectorization --set "
            "stopping=auto; the other methods do not."
        )
    elif found.beyond:
        answer = [
            "the log does not tell: less is clicked below documents that are clicked much, as if "
            f"{max(found.lower, 0):.0%} or more of the users stopped there, but other lists have more clicks per "
            "impression than such users would make; queries for one document look like that"
        ]
    elif found.error > WIDE:
        answer = ["the log has too few queries or clicks to tell whether less is clicked below clicked documents"]
    else:
        verdict = Verdict.GOOD
        answer = [
            "nothing says so: position and relevance explain how little is clicked below documents that are clicked "
            "much"
        ]
    numbers = {} if found is None else asdict(found) | {"known": found.known}
    return Section("Do users stop after a click?", sentences(answer), verdict, advice, numbers=numbers, name="stopping")

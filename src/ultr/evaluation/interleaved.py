"""The winner of an interleaved comparison, by an answer that may be looked at every day."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from ultr.errors import DataError
from ultr.evaluation.trial import CANNOT_TELL, Answer
from ultr.metrics.always_valid import mean_interval, vote_interval, votes_needed
from ultr.metrics.intervals import Interval
from ultr.pages import Section
from ultr.preparation.interleaved_lists import InterleavedLists

NOTHING_CREDITED = "no place of the interleaved lists that was clicked gives credit"


@dataclass(frozen=True)
class InterleavedComparison:
    """Two rankers by the lists that they have made together; intervals hold at all looks together."""

    answer: Answer
    lists: int
    """Interleaved lists that count, with or without a click."""
    votes: int
    """Lists with a click that gives credit."""
    clicks: int
    """Clicks that one of both has won."""
    share: Interval | None
    """The mean vote of these lists for the new ranker, `CreditedClicks.vote`; None if there are none."""
    difference: Interval | None
    """Clicks per list that the new one has won more than the old one; None for one list per client, of which more are
    won as time goes by."""
    lists_needed: float | None
    """Further lists until there is a winner, if things stay as they are; None if there is one, inf for never."""
    clicks_needed: float | None
    """Clicks that are won in them."""

    def section(self, found: InterleavedLists, others: Sequence[InterleavedLists] = (), *, action: str) -> Section:
        """The winner in words, by how much and how much is missing; `others` are lists of other pairs of rankers."""
        return Section(
            "Which of both rankers do users vote for in the lists that they have made together?",
            f"{self.answer.verdict}: {self.answer.reason}",
            advice="\n\n".join(self._remarks(found, others, action=action)),
            numbers={
                "old": found.old,
                "new": found.new,
                "action": action,
                "unit": "client" if found.per_client else "list",
                **asdict(self),
                "young": found.young,
                "repeated": found.repeated,
                "other_pairs": [{"old": pair.old, "new": pair.new, "lists": pair.lists} for pair in others],
            },
            name="interleaved",
        )

    def _remarks(self, found: InterleavedLists, others: Sequence[InterleavedLists], *, action: str) -> Iterator[str]:
        unit = "clients" if found.per_client else "lists"
        what = f"{action} events" if action != "click" else "clicks"
        if self.difference is not None:
            low, high = self.difference.low, self.difference.high
            ends = "" if math.isnan(low) else f" ({low:+.4f} to {high:+.4f})"
            yield (
                f"Of {what} that give credit, new won {self.difference.mean:+.4f} per list more than old{ends}: "
                f"{self.clicks:,} on {self.lists:,} lists."
            )
        if self.share is not None:
            intervals = "A 95 % interval, which holds" if self.difference is None else "95 % intervals, which hold"
            yield f"{intervals} at all looks together: look as often as you like, stop at a winner."
        if self.lists_needed == math.inf:
            yield "However many more there are, at this share nobody wins."
        elif self.lists_needed is not None:
            yield (
                f"If this goes on, about {self.lists_needed:,.0f} more interleaved {unit}, "
                f"with {self.clicks_needed:,.0f} such {what}, make a winner."
            )
        yield f"old is the model {found.old}, new is {found.new}."
        if found.young:
            yield f"{found.young:,} {unit} are too young to count: what users do with them may be on its way."
        if found.repeated:
            yield f"{found.repeated:,} lists are left out because several have the same query_id."
        if others:
            pairs = ", ".join(f"{pair.short} ({pair.lists:,})" for pair in others)
            yield f"Lists of other pairs are in the folder: {pairs}; give both files to choose one."


def compare_interleaved(
    found: InterleavedLists, *, names: tuple[str, str] = ("old", "new"), level: float = 0.95
) -> InterleavedComparison:
    r"""The winner of a pair of rankers.

    Each list with a click that gives credit is one vote, shared between all that was clicked in it
    (`ultr.preparation.interleaved_lists.CreditedClicks.vote`), so that one user who clicks everything has one voice.
    The new ranker wins once 1/2 is outside of the interval of the mean vote
    (`ultr.metrics.always_valid.vote_interval`). If neither is better, that happens at any look, ever, with a
    probability of at most `1 - level`.

    >>> from ultr.preparation.interleaved_lists import CreditedClicks
    >>> outcomes = {CreditedClicks(0, 0, 0): 500, CreditedClicks(1, 0, 1): 200, CreditedClicks(0, 1, 1): 300}
    >>> lists = InterleavedLists("a", "b", 0, outcomes)
    >>> compare_interleaved(lists).answer.verdict
    'new is better'
    """
    if not found.lists:
        raise DataError(
            f"all {found.young:,} interleaved lists are too young to count: what users did with those of the last "
            "minutes may be in files to come; serve on, or count what comes in a shorter time (--minutes)"
        )
    credited = {outcome: count for outcome, count in found.outcomes.items() if outcome.old + outcome.new}
    clicks = sum((outcome.old + outcome.new) * count for outcome, count in credited.items())
    lists, decided = found.lists, sum(credited.values())
    if not decided:
        reason = f"nobody won a click: {NOTHING_CREDITED} ({lists:,} lists)"
        return InterleavedComparison(Answer(CANNOT_TELL, reason), lists, 0, 0, None, None, math.inf, math.inf)
    votes = np.array([outcome.vote for outcome in credited])
    counts = np.array([*credited.values()], dtype=np.float64)
    share = vote_interval(votes, counts, level=level)
    difference = None if found.per_client else _difference(found, level=level)
    winner = None if share.low <= 0.5 <= share.high else names[share.mean > 0.5]
    ends = f"{share.low:.1%} to {share.high:.1%}"
    unit = "clients" if found.per_client else "lists"
    numbers = f"{names[1]} has {share.mean:.1%} ({ends}) of the votes of {decided:,} {unit}"
    if winner is not None:
        verdict, reason, more = f"{winner} is better", numbers, None
    else:
        verdict, reason = CANNOT_TELL, f"{numbers}, which holds 50%"
        needed = votes_needed(votes, counts, level=level)
        more = math.inf if math.isinf(needed) else math.ceil((needed - decided) * lists / decided)
    won = clicks / lists
    return InterleavedComparison(
        Answer(verdict, reason, winner, difference),
        lists,
        decided,
        clicks,
        share,
        difference,
        more,
        None if more is None else more if math.isinf(more) else math.ceil(more * won),
    )


def _difference(found: InterleavedLists, *, level: float) -> Interval:
    """Clicks per list that the new ranker has won more than the old one."""
    lists = found.lists
    total = sum((each.new - each.old) * count for each, count in found.outcomes.items())
    squares = sum((each.new - each.old) ** 2 * count for each, count in found.outcomes.items())
    mean = total / lists
    variance = (squares - lists * mean**2) / max(lists - 1, 1)
    return mean_interval(lists, mean, variance, level=level)

"""The winner of an interleaved comparison, by an answer that may be looked at every day."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from ultr.errors import DataError
from ultr.evaluation.trial import CANNOT_TELL, Answer
from ultr.metrics.always_valid import contests_needed, mean_interval, share_interval
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
    wins: int
    """Lists in which the new ranker has won more clicks than the old one."""
    losses: int
    """Lists in which the old one has."""
    clicks: int
    """Clicks that one of both has won."""
    share: Interval | None
    """Share of the lists that somebody won that the new one did; None if nobody won any."""
    difference: Interval | None
    """Clicks per list that the new one has won more than the old one."""
    lists_needed: float | None
    """Further lists until there is a winner, if things stay as they are; None if there is one, inf for never."""
    clicks_needed: float | None
    """Clicks that are won in them."""

    def section(
        self, found: InterleavedLists, others: Sequence[InterleavedLists] = (), *, action: str, per_client: bool
    ) -> Section:
        """The winner in words, by how much and how much is missing; `others` are lists of other pairs of rankers."""
        return Section(
            "Which of both rankers won more of the lists that they have made together?",
            f"{self.answer.verdict}: {self.answer.reason}",
            advice="\n\n".join(self._remarks(found, others, action=action, unit="clients" if per_client else "lists")),
            numbers={
                "old": found.old,
                "new": found.new,
                "action": action,
                "unit": "client" if per_client else "list",
                **asdict(self),
                "young": found.young,
                "repeated": found.repeated,
                "other_pairs": [{"old": pair.old, "new": pair.new, "lists": pair.lists} for pair in others],
            },
            name="interleaved",
        )

    def _remarks(
        self, found: InterleavedLists, others: Sequence[InterleavedLists], *, action: str, unit: str
    ) -> Iterator[str]:
        what = f"{action} events" if action != "click" else "clicks"
        if self.difference is not None:
            low, high = self.difference.low, self.difference.high
            ends = "" if math.isnan(low) else f" ({low:+.4f} to {high:+.4f})"
            yield (
                f"Of {what} that give credit, new won {self.difference.mean:+.4f} per {unit.removesuffix('s')} "
                f"more than old{ends}: {self.clicks:,} on {self.lists:,} {unit}."
            )
            yield "95 % intervals, which hold at all looks together: look as often as you like, stop at a winner."
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

    A list counts as won by the ranker with more credited clicks, however many they are, so that one user who clicks
    everything has one voice. The new ranker wins once 1/2 is outside of the interval of the share of lists that it has
    won among those that somebody won (`ultr.metrics.always_valid.share_interval`). If neither is better, that happens
    at any look, ever, with a probability of at most `1 - level`.

    >>> lists = InterleavedLists("a", "b", 0, {(0, 0): 500, (1, 0): 200, (0, 1): 300})
    >>> compare_interleaved(lists).answer.verdict
    'new is better'
    """
    if not found.lists:
        raise DataError(
            f"all {found.young:,} interleaved lists are too young to count: what users did with those of the last "
            "minutes may be in files to come; serve on, or count what comes in a shorter time (--minutes)"
        )
    wins = sum(count for (old, new), count in found.outcomes.items() if new > old)
    losses = sum(count for (old, new), count in found.outcomes.items() if new < old)
    clicks = sum((old + new) * count for (old, new), count in found.outcomes.items())
    lists = found.lists
    if not wins + losses:
        reason = f"nobody won a list: {NOTHING_CREDITED}" if not clicks else "both won the same clicks in every list"
        return InterleavedComparison(
            Answer(CANNOT_TELL, f"{reason} ({lists:,} lists)"), lists, 0, 0, clicks, None, None, math.inf, math.inf
        )
    share = share_interval(wins, losses, level=level)
    difference = _difference(found, level=level)
    winner = None if share.low <= 0.5 <= share.high else names[share.mean > 0.5]
    ends = f"{share.low:.1%} to {share.high:.1%}"
    numbers = f"{names[1]} won {wins:,} of {wins + losses:,} lists that one of both won, {share.mean:.1%} ({ends})"
    if winner is not None:
        verdict, reason, more = f"{winner} is better", numbers, None
    else:
        verdict, reason = CANNOT_TELL, f"{numbers}, which holds 50%"
        more = _more(wins, losses, lists, level=level)
    won = clicks / lists
    return InterleavedComparison(
        Answer(verdict, reason, winner, difference),
        lists,
        wins,
        losses,
        clicks,
        share,
        difference,
        more,
        None if more is None else more if math.isinf(more) else math.ceil(more * won),
    )


def _difference(found: InterleavedLists, *, level: float) -> Interval:
    """Clicks per list that the new ranker has won more than the old one."""
    lists = found.lists
    total = sum((new - old) * count for (old, new), count in found.outcomes.items())
    squares = sum((new - old) ** 2 * count for (old, new), count in found.outcomes.items())
    mean = total / lists
    variance = (squares - lists * mean**2) / max(lists - 1, 1)
    return mean_interval(lists, mean, variance, level=level)


def _more(wins: int, losses: int, lists: int, *, level: float) -> float:
    """Further lists until there is a winner, if the shares stay as they are."""
    decided = wins + losses
    needed = contests_needed(wins / decided, level=level)
    return math.inf if math.isinf(needed) else math.ceil((needed - decided) * lists / decided)

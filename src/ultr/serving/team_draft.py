"""Team-draft interleaving: one list out of the orders of two rankers, and the exact probability of what it shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import count, islice

TEAM_DRAFT = "team-draft"
OLD, NEW = "old", "new"
DRAFTED = 20
"""Places that are drafted; those below are filled in the old order, and give no credit."""


@dataclass(frozen=True)
class Pick:
    """A document at its place in a draft."""

    rank: int
    """Its rank in the old order, from 0."""
    team: str | None
    """The ranker that brought it; None below the drafted places."""
    is_credited: bool
    """True if clicks on it count for its team."""


@dataclass(frozen=True)
class Draft:
    """A list that two rankers have made in turn (Radlinski, Kurup and Joachims, CIKM 2008).

    In each round a coin says who goes first; then both add the best document of their order that is not in the list
    yet. A place that would hold the same document whichever way the coin of its round had fallen gives no credit: the
    team of that document is the coin, and clicks on it would be noise. A prefix that both orders have in common is the
    best known of these. Whatever was taken before, each of the other places belongs to either team with probability
    one half, so that the clicks that both win of users who click at random have the same mean.
    """

    against: str
    """Digest of the new model."""
    share: float
    """The share of lists that are interleaved."""
    rival: tuple[int, ...]
    """The best documents of the new order by their ranks in the old one, as many as are shown."""
    picks: tuple[Pick, ...]

    @classmethod
    def of(cls, rival: Sequence[int], *, flips: int, against: str = "", share: float = 1.0) -> Draft:
        """The draft that coin flips give, one bit per round from the lowest: 0 if the old ranker goes first.

        >>> [(pick.rank, pick.team) for pick in Draft.of([2, 0, 1], flips=0b01).picks]
        [(2, 'new'), (0, 'old'), (1, 'old')]
        """
        size = len(rival)
        picks: list[Pick] = []
        taken: set[int] = set()
        for number in range(_rounds(size)):
            picks += _round(rival, taken, places=size - len(picks))[flips >> number & 1]
            taken.update(pick.rank for pick in picks[-2:])
        picks += [Pick(rank, None, is_credited=False) for rank in islice(_rest(taken), size - len(picks))]
        return cls(against, share, tuple(rival), tuple(picks))

    @cached_property
    def propensities(self) -> list[float]:
        """The probability, over the coin flips, of each document at its place."""
        chances = placements(self.rival)
        return [chances[place][pick.rank] for place, pick in enumerate(self.picks)]

    def of_query(self) -> dict[str, object]:
        """Its part of a line of `ubi_queries`."""
        return {"explore": TEAM_DRAFT, "epsilon": 0.0, "against": self.against, "share": self.share}

    def of_place(self, place: int) -> dict[str, object]:
        """Its part of the impression at a place, from 0."""
        pick = self.picks[place]
        return {"propensity": self.propensities[place], "team": pick.team, "credited": pick.is_credited}


def coin_flips(query_id: str, *, share: float, secret: bytes) -> int | None:
    """The coin flips for a query that is to be interleaved, as the bits of a number; None for the other queries.

    The same query id and secret give the same again, and without the secret they cannot be foreseen.
    """
    drawn = blake2b(query_id.encode(), key=secret, digest_size=16, person=b"team draft").digest()
    if int.from_bytes(drawn[:8], "little") >= share * 2**64:
        return None
    return int.from_bytes(drawn[8:], "little")


def placements(rival: Sequence[int]) -> list[dict[int, float]]:
    """The probability of each document at each place: a mapping per place, from ranks in the old order.

    All flips are followed at once: rounds that leave the same documents taken are one state, whose probabilities add
    up. They are multiples of a power of one half, so that the sums are exact.

    >>> placements([1, 0])
    [{0: 0.5, 1: 0.5}, {1: 0.5, 0: 0.5}]
    """
    size = len(rival)
    chances: list[dict[int, float]] = [defaultdict(float) for _ in range(size)]
    states = {frozenset[int](): 1.0}
    place = 0
    for _ in range(_rounds(size)):
        after: dict[frozenset[int], float] = defaultdict(float)
        for taken, chance in states.items():
            for picks in _round(rival, taken, places=size - place):
                for number, pick in enumerate(picks):
                    chances[place + number][pick.rank] += chance / 2
                after[taken.union(pick.rank for pick in picks)] += chance / 2
        states = after
        place = min(place + 2, size)
    for taken, chance in states.items():
        for below, rank in enumerate(islice(_rest(taken), size - place)):
            chances[place + below][rank] += chance
    return [dict(each) for each in chances]


def _rounds(size: int) -> int:
    return (min(size, DRAFTED) + 1) // 2


def _round(
    rival: Sequence[int], taken: set[int] | frozenset[int], *, places: int
) -> tuple[tuple[Pick, ...], tuple[Pick, ...]]:
    """The picks of a round if the old ranker goes first, and if the new one does; one pick if it is the last place."""
    old, new = _best(taken), _best(taken, rival)
    first = old != new
    if places == 1:
        return (Pick(old, OLD, first),), (Pick(new, NEW, first),)
    second_new, second_old = _best({*taken, old}, rival), _best({*taken, new})
    second = second_new != second_old
    return (
        (Pick(old, OLD, first), Pick(second_new, NEW, second)),
        (Pick(new, NEW, first), Pick(second_old, OLD, second)),
    )


def _best(taken: set[int] | frozenset[int], order: Sequence[int] | None = None) -> int:
    """The first document of an order that is not taken; the old order is 0, 1, 2, and so on."""
    return next(rank for rank in (count() if order is None else order) if rank not in taken)


def _rest(taken: set[int] | frozenset[int]) -> Iterator[int]:
    """The documents of the old order that are not taken."""
    return (rank for rank in count() if rank not in taken)

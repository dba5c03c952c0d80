"""Small random changes of a shown list, and the exact probability of what they show."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import accumulate

from ultr.data.exploration_plan import ExplorationPlan
from ultr.errors import OptionError

SWAPS, PLAN, NONE = "swaps", "plan", "none"
_BYTES = 8
"""Bytes of the random number of a query."""


@dataclass(frozen=True, slots=True)
class RankExchange:
    """Two ranks, from 0, whose documents change places with a probability."""

    first: int
    second: int
    probability: float


@dataclass(frozen=True)
class Exploration:
    """The random changes of shown lists: in each list at most one pair of documents is exchanged."""

    kind: str = NONE
    """Name in the log."""
    epsilon: float = 0.0
    """The probability that a pair is exchanged, on a page that shows all ranks."""
    pairs: tuple[RankExchange, ...] = ()
    """Pairs of a plan, which are exchanged on pages that show both; without them, adjacent ones are, all alike."""

    @property
    def active(self) -> bool:
        """True if lists are changed at all."""
        return self.epsilon > 0

    def exchanges(self, shown: int) -> tuple[RankExchange, ...]:
        """The pairs of a list of so many documents."""
        if not self.active or shown < 2:
            return ()
        if self.pairs:
            return tuple(pair for pair in self.pairs if pair.second < shown)
        return tuple(RankExchange(rank, rank + 1, self.epsilon / (shown - 1)) for rank in range(shown - 1))

    def in_words(self) -> str:
        """A sentence on the changes of lists."""
        if not self.active:
            return "nothing is explored"
        if not self.pairs:
            return f"one adjacent pair of the shown documents is exchanged in {self.epsilon:.2%} of the lists"
        lost = max(pair.second - pair.first for pair in self.pairs)
        pairs = ", ".join(f"{pair.first + 1} and {pair.second + 1} in {pair.probability:.2%}" for pair in self.pairs)
        return f"positions are exchanged: {pairs} of the lists; no document is shown more than {lost} ranks lower"

    def drawn(self, shown: int, *, query_id: str, secret: bytes) -> RankExchange | None:
        """The pair to exchange; None for none.

        The same query id and secret give the same pair again, and without the secret it cannot be foreseen.
        """
        exchanges, ends = _table(self, shown)
        number = int.from_bytes(blake2b(query_id.encode(), key=secret, digest_size=_BYTES).digest(), "little")
        place = bisect_right(ends, number / 2 ** (8 * _BYTES))
        return exchanges[place] if place < len(exchanges) else None

    def propensities(self, base_ranks: Sequence[int]) -> list[float]:
        r"""The probability that each document of a list is shown where it is; it had these ranks before, from 0.

        With $q_{ij}$ the probability that ranks $i$ and $j$ are exchanged, $P(i \to j) = q_{ij}$ and
        $P(i \to i) = 1 - \sum_j q_{ij}$.

        >>> Exploration(SWAPS, 0.1).propensities([0, 2, 1])
        [0.95, 0.05, 0.05]
        """
        moves: dict[tuple[int, int], float] = {}
        stays = [1.0] * len(base_ranks)
        for each in _table(self, len(base_ranks))[0]:
            for rank, other in ((each.first, each.second), (each.second, each.first)):
                moves[rank, other] = each.probability
                stays[rank] -= each.probability
        return [stays[base] if rank == base else moves.get((base, rank), 0.0) for rank, base in enumerate(base_ranks)]


@lru_cache(maxsize=32)
def _table(exploration: Exploration, shown: int) -> tuple[tuple[RankExchange, ...], tuple[float, ...]]:
    """The exchanges of a list, and where the part of each in the numbers from 0 to 1 ends."""
    exchanges = exploration.exchanges(shown)
    return exchanges, tuple(accumulate(each.probability for each in exchanges))


def exchanged(ranks: list[int], pair: RankExchange | None) -> list[int]:
    """The list with a pair exchanged.

    >>> exchanged([0, 1, 2, 3], RankExchange(1, 2, 0.1))
    [0, 2, 1, 3]
    """
    if pair is None:
        return ranks
    changed = list(ranks)
    changed[pair.first], changed[pair.second] = ranks[pair.second], ranks[pair.first]
    return changed


def parse_exploration(text: str | None) -> Exploration:
    """The exploration that `swaps=0.05` states, or the plan in a file `....json`; none without a text.

    >>> parse_exploration("swaps=0.05")
    Exploration(kind='swaps', epsilon=0.05, pairs=())
    """
    if text is None:
        return Exploration()
    if text.lower().endswith(".json"):
        return of_plan(ExplorationPlan.read(text))
    kind, _, number = text.partition("=")
    try:
        epsilon = float(number)
    except ValueError:
        epsilon = -1.0
    if kind.strip() != SWAPS or not 0 < epsilon < 1:
        raise OptionError(
            f"--explore must be like {SWAPS}=0.05, a probability between 0 and 1, or the file of a plan such as "
            f"plan.json, got {text!r}"
        )
    return Exploration(SWAPS, epsilon)


def of_plan(plan: ExplorationPlan) -> Exploration:
    """The exploration that a plan asks for; none if it asks for nothing."""
    if not plan.pairs:
        return Exploration()
    pairs = tuple(RankExchange(pair.first - 1, pair.second - 1, pair.probability) for pair in plan.pairs)
    return Exploration(PLAN, plan.epsilon, pairs)

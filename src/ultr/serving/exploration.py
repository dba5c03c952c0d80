"""Small random changes of a shown list, and the exact probability of what they show."""

from __future__ import annotations

from hashlib import blake2b

from ultr import checks
from ultr.errors import OptionError

SWAPS, NONE = "swaps", "none"
_HALF = 8
"""Bytes of each of the two random numbers of a query."""


def parse_exploration(text: str | None) -> float:
    """The probability of a swap that `swaps=0.05` states; 0 for no exploration.

    >>> parse_exploration("swaps=0.05")
    0.05
    """
    if text is None:
        return 0.0
    kind, _, number = text.partition("=")
    try:
        epsilon = float(number)
    except ValueError:
        epsilon = -1.0
    if kind.strip() != SWAPS or not 0 < epsilon < 1:
        raise OptionError(f"--explore must be like {SWAPS}=0.05, a probability between 0 and 1, got {text!r}")
    return epsilon


def swapped_pair(shown: int, *, epsilon: float, query_id: str, secret: bytes) -> int | None:
    """The first rank, from 0, of the adjacent pair to exchange; None for none.

    With probability epsilon it is one of the `shown - 1` pairs, all alike. The same query id and secret give the same
    pair again, and without the secret it cannot be foreseen.
    """
    if shown < 2:
        return None
    drawn = blake2b(query_id.encode(), key=secret, digest_size=2 * _HALF).digest()
    if int.from_bytes(drawn[:_HALF], "little") >= epsilon * 2 ** (8 * _HALF):
        return None
    return int.from_bytes(drawn[_HALF:], "little") % (shown - 1)


def exchange(ranks: list[int], pair: int | None) -> list[int]:
    """The list with an adjacent pair exchanged.

    >>> exchange([0, 1, 2, 3], 1)
    [0, 2, 1, 3]
    """
    if pair is None:
        return ranks
    return [*ranks[:pair], ranks[pair + 1], ranks[pair], *ranks[pair + 2 :]]


def placement_propensity(base_rank: int, rank: int, *, shown: int, epsilon: float) -> float:
    r"""The probability that the document of a base rank is shown at a rank, both from 0.

    $P(i \to i \pm 1) = \varepsilon / (n - 1)$ and $P(i \to i) = 1 - m_i \varepsilon / (n - 1)$ for lists of $n$, where
    $m_i$ is the number of neighbours, 1 at both ends and 2 between them.

    >>> placement_propensity(0, 1, shown=11, epsilon=0.1)
    0.01
    """
    checks.integer("shown", shown, at_least=1)
    if shown == 1:
        return float(rank == base_rank)
    a_pair = epsilon / (shown - 1)
    if rank == base_rank:
        return 1.0 - a_pair * ((rank > 0) + (rank < shown - 1))
    return a_pair if abs(rank - base_rank) == 1 else 0.0

"""The dimension of bias that can be identified: the rigidity of click rates r(document) . o(value) seen in part.

A document seen under the set S of values gives the rates O_S r, where the rows of O are the observation vectors. O can
be known up to a change of coordinates at best: O G and G^-1 r give the same rates. To first order, a movement dO leaves
the rates of a document as they are if its dr can make up for it: O_S dr + dO_S r = 0. That is so if and only if
n . dO_S r = 0 for all n with n . O_S = 0, which are |S| - d conditions. If no movements but changes of coordinates obey
the conditions of all documents, almost all O are identified, up to finitely many others (Singer and Cucuringu,
Uniqueness of Low-Rank Matrix Completion by Rigidity Theory, 2010). With d = 1 that is a connected graph of values.

That depends on who was seen where, not on the rates, unless these are special ones. So O and r are random, and as they
may be numbers of any field, they are integers modulo a prime: nothing is rounded, and there is no tolerance. With a
probability of about 10^-6 a condition is missed by chance; one too many is found with one of 10^-12.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ultr.arrays import Doubles, Integers, Mask
from ultr.seeding import generator

LARGEST = 5
"""Larger dimensions are not asked for."""
MOST_UNKNOWNS = 1_000
"""Values times dimension; beyond, it takes minutes."""
_PRIME = 2**20 - 3
"""Sums of 2^13 products of two numbers below it are exact in double precision."""
_ROWS = 512
"""Conditions that are looked at together."""


def largest_dimension(seen: Mask, documents: Integers, *, known: int = 0) -> int:
    """The largest dimension that is identified by documents seen under sets of values [sets, values]; 0 if none is.

    What identifies a dimension identifies the smaller ones. `known` is one that is known to be identified already.

    >>> seen = np.array([[True, True, True, False], [False, True, True, True]])
    >>> [largest_dimension(seen, np.array(documents)) for documents in ([1, 0], [1, 1], [2, 1], [2, 2])]
    [0, 1, 1, 2]
    """
    values = seen.shape[1]
    dimension = known
    while dimension < min(LARGEST, values - 1, MOST_UNKNOWNS // values - 1) and identified(
        seen, documents, dimension + 1
    ):
        dimension += 1
    return dimension


def identified(seen: Mask, documents: Integers, dimension: int, *, affine: bool = False, seed: int = 0) -> bool:
    """True if documents seen under sets of values [sets, values] identify observation vectors of this dimension.

    `affine` takes the last number of each r for 1, as trust bias with alpha g + beta does: then less has to be known.
    As many values as dimensions identify nothing: every matrix of rates is such a product.
    """
    values, unknown = seen.shape[1], dimension - affine  # numbers of r that are to be known
    if values <= unknown:
        return False
    random = generator(seed, "rigidity")
    observation = random.integers(1, _PRIME, size=(values, dimension))
    # A change of coordinates can keep some values where they are, as many as r has unknown numbers: they do not move.
    movements: Integers = np.eye(values * dimension, dtype=np.int64)[:, unknown * dimension :]
    for conditions in _conditions(seen, documents, observation, unknown, random):
        movements = _product(movements, _null_space(_product(conditions, movements)))
        if not movements.shape[1]:
            return True
    return False


def crossing(seen: Mask, sides: Mask, dimension: int) -> Integers:
    """The conditions of documents [sets] that tie the two sides [values, cuts] together: [sets, cuts].

    A document seen under a values of one side and b of the other has (a + b - d)+ conditions, of which (a - d)+ and
    (b - d)+ are about one side alone. That leaves min(a, d) + min(b, d) - min(a + b, d).
    """
    one, other = (seen.astype(np.float64) @ side for side in (sides, ~sides))
    tying = np.minimum(one, dimension) + np.minimum(other, dimension) - np.minimum(one + other, dimension)
    return tying.astype(np.int64)


def cut_dimensions(seen: Mask, documents: Integers, sides: Mask) -> Integers:
    """The largest dimension, for each cut of the values in two sides [values, cuts], that what crosses it may support.

    The two sides need as many conditions as d documents give that were seen under all values, and of documents seen
    under the same values d count. With that many it may still be that they do not suffice.
    """
    supported = np.zeros(sides.shape[1], dtype=np.int64)
    for dimension in range(1, min(LARGEST, len(sides) - 1) + 1):
        found = np.minimum(documents, dimension) @ crossing(seen, sides, dimension)
        needed = dimension * crossing(np.ones((1, len(sides)), dtype=np.bool_), sides, dimension)[0]
        supported[(supported == dimension - 1) & (found >= needed)] = dimension
    return supported


def _conditions(
    seen: Mask, documents: Integers, observation: Integers, unknown: int, random: np.random.Generator
) -> Iterator[Integers]:
    """Rows n x r over the movements [values * dimension], some documents at a time, the largest sets first."""
    values, dimension = observation.shape
    sizes = seen.sum(axis=1)
    found: list[Integers] = []
    for number in np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes > unknown)]:
        under = np.flatnonzero(seen[number])
        null = _null_space(observation[under, :unknown].T)  # [under, size - unknown]
        # The conditions of d documents with independent r are n . dO_S = 0 whatever r: more documents add none.
        relevance = random.integers(1, _PRIME, size=(min(int(documents[number]), dimension), dimension))
        rows = np.zeros((null.shape[1], len(relevance), values, dimension), dtype=np.int64)
        rows[:, :, under] = null.T[:, None, :, None] * relevance[None, :, None, :] % _PRIME
        found.append(rows.reshape(-1, values * dimension))
        if sum(map(len, found)) >= _ROWS:
            yield np.concatenate(found)
            found = []
    if found:
        yield np.concatenate(found)


def _null_space(matrix: Integers) -> Integers:
    """A basis [columns, rest] of the vectors that the matrix maps to 0, by Gauss-Jordan elimination."""
    matrix = matrix[matrix.any(axis=1)]
    columns = matrix.shape[1]
    pivots: list[int] = []
    for column in range(columns):
        row = len(pivots)
        below = np.flatnonzero(matrix[row:, column])
        if not len(below):
            continue
        matrix[[row, row + below[0]]] = matrix[[row + below[0], row]]
        matrix[row] = matrix[row] * pow(int(matrix[row, column]), -1, _PRIME) % _PRIME
        others = np.flatnonzero(matrix[:, column])
        others = others[others != row]
        matrix[others] = (matrix[others] - matrix[others, column, None] * matrix[row]) % _PRIME
        pivots.append(column)
        if len(pivots) == len(matrix):
            break
    rest = np.setdiff1d(np.arange(columns), pivots)
    basis = np.zeros((columns, len(rest)), dtype=np.int64)
    basis[rest, np.arange(len(rest))] = 1
    basis[pivots] = -matrix[: len(pivots), rest] % _PRIME
    return basis


def _product(first: Integers, second: Integers) -> Integers:
    """The matrix product modulo the prime; in double precision, which is exact here and fast."""
    product: Doubles = first.astype(np.float64) @ second.astype(np.float64)
    return product.astype(np.int64) % _PRIME

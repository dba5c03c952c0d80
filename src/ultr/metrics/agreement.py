"""The agreement of two rankers on the order of the same candidates."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ultr.arrays import Doubles, Integers, ratio
from ultr.data import ragged


def same_top(
    scores: npt.NDArray[np.floating[Any]], others: npt.NDArray[np.floating[Any]], offsets: Integers
) -> Doubles:
    """1 for each list whose best candidates by `others` are all best by `scores`, else 0, [lists].

    A list of fewer than two candidates gets NaN.

    >>> same_top(np.array([3.0, 2.0, 1.0, 1.0]), np.array([0.3, 0.1, 0.2, 0.2]), np.array([0, 2, 4])).tolist()
    [1.0, 1.0]
    """
    lists, count = ragged.list_numbers(offsets), len(offsets) - 1
    highest, others_highest = np.full((2, count), -np.inf)
    np.maximum.at(highest, lists, scores)
    np.maximum.at(others_highest, lists, others)
    wrong = (others == others_highest[lists]) & (scores < highest[lists])
    same = np.bincount(lists[wrong], minlength=count) == 0
    return np.where(np.diff(offsets) > 1, same, np.nan)


def kendall_tau(
    scores: npt.NDArray[np.floating[Any]], others: npt.NDArray[np.floating[Any]], offsets: Integers
) -> Doubles:
    """Kendall's tau-b of two scorings in each list, 1 for the same order and -1 for the reverse, [lists].

    tau = (pairs in the same order - pairs in the other order) / sqrt(pairs untied in one * pairs untied in the other)

    A list in which all candidates of one scoring are tied, such as one of a single candidate, gets NaN.

    >>> kendall_tau(np.array([3.0, 2.0, 1.0]), np.array([0.3, 0.1, 0.2]), np.array([0, 3])).round(4).tolist()
    [0.3333]
    """
    first, second = ragged.pair_members(offsets)
    lists = ragged.list_numbers(ragged.pair_offsets(offsets))
    one, other = (np.sign(values[first] - values[second]) for values in (scores, others))

    def total(values: npt.NDArray[np.floating[Any]]) -> Doubles:
        sums: Doubles = np.bincount(lists, weights=values, minlength=len(offsets) - 1).astype(np.float64)
        return sums

    untied = np.sqrt(total(one**2) * total(other**2))
    return ratio(total(one * other), untied, otherwise=np.nan)

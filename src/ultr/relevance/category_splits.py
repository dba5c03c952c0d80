"""Splits by sets of categories as splits by thresholds, which every program that follows trees knows."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from ultr.arrays import Integers

Node = dict[str, Any]
"""A node of LightGBM's dump, with all below it."""
_EVERYWHERE = (-inf, inf)


def by_thresholds(
    node: Node, codes: Mapping[int, Integers], within: Mapping[int, tuple[float, float]] | None = None
) -> Node:
    """The tree of a node, where splits by thresholds stand for those by sets of category codes.

    A code of the set goes left; others, unseen ones, negative ones and missing ones go right, as in LightGBM. `codes`
    has the category codes of a feature by the numbers that LightGBM knows them by; `within` has the interval that a
    feature lies in here, by what stands above, so that splits of one feature below each other cut it once.
    """
    if "split_feature" not in node:
        return node
    within = within or {}
    feature, sides = node["split_feature"], (node["right_child"], node["left_child"])
    if node["decision_type"] != "==":
        right, left = (by_thresholds(side, codes, within) for side in sides)
        return node | {"left_child": left, "right_child": right}
    low, high = within.get(feature, _EVERYWHERE)
    bounds = _bounds([int(codes[feature][int(number)]) for number in node["threshold"].split("||")])
    first, last = bisect_right(bounds, low), bisect_left(bounds, high)
    edges = [low, *bounds[first:last], high]
    # Intervals are outside and inside of the set in turn, the first and the last of them outside.
    pieces = [
        by_thresholds(sides[(first + number) % 2], codes, {**within, feature: (edges[number], edges[number + 1])})
        for number in range(last - first + 1)
    ]
    return _search(feature, edges[1:-1], pieces)


def _bounds(codes: Sequence[int]) -> list[float]:
    """The ends of the intervals that hold these codes and no others.

    >>> _bounds([8, 3, 7])
    [2.5, 3.5, 6.5, 8.5]
    """
    ends = [(code - 0.5, code + 0.5) for code in sorted(codes)]
    shared = {below for below, _ in ends} & {above for _, above in ends}
    return [bound for pair in ends for bound in pair if bound not in shared]


def _search(feature: int, cuts: Sequence[float], pieces: Sequence[Node]) -> Node:
    """A balanced tree that finds the interval of a value between the cuts; a missing one goes to the last."""
    if not cuts:
        return pieces[0]
    middle = len(cuts) // 2
    return {
        "split_feature": feature,
        "threshold": cuts[middle],
        "missing_type": "NaN",
        "default_left": False,
        "left_child": _search(feature, cuts[:middle], pieces[: middle + 1]),
        "right_child": _search(feature, cuts[middle + 1 :], pieces[middle + 1 :]),
    }

"""A tree as nested nodes, the form that most engines read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from ultr.arrays import Floats
from ultr.scoring.forest import LEAF, Forest

T = TypeVar("T")


@dataclass(frozen=True)
class InnerNode(Generic[T]):
    """A node that is no leaf, with what has been made of the nodes below it."""

    number: int
    feature: int
    threshold: np.float32
    missing_left: bool
    left: T
    right: T


def trees(forest: Forest, split: Callable[[InnerNode[T]], T], leaf: Callable[[int, float], T]) -> list[T]:
    """Every tree of a forest, made by these functions from the leaves up; nodes are numbered from 0 in each tree."""
    made: list[Any] = [None] * len(forest.features)
    first = forest.roots[forest.trees]
    # What follows a node has a higher number, so that backwards both sides are there before their node.
    for node in reversed(range(len(made))):
        number, feature = int(node - first[node]), int(forest.features[node])
        if feature == LEAF:
            made[node] = leaf(number, float(forest.values[node]))
        else:
            missing_left, below = bool(forest.missing_left[node]), (made[forest.left[node]], made[forest.right[node]])
            made[node] = split(InnerNode(number, feature, forest.thresholds[node], missing_left, *below))
    return [made[root] for root in forest.roots]


def next_above(thresholds: Floats) -> Floats:
    """The smallest float32 above each threshold: what is below it is at most the threshold.

    Above the largest there is only infinity, which JSON cannot write; all but the largest value itself are below that.

    >>> bool(np.float32(0.5) < next_above(np.float32([0.5]))[0])
    True
    """
    largest = np.finfo(np.float32).max
    return np.nextafter(thresholds, largest)

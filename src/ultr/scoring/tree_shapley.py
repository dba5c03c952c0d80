"""Exact Shapley values of a forest: what each feature of a document adds to its score, against its list.

The game of document i has the value of a set S of features

    v_i(S) = 1/n sum_k f( x_i on S, x_k elsewhere )

over the n documents k of the list: v_i of no feature is the mean score of the list and v_i of all is f(x_i), so the
Shapley values of document i add up to its score less the list's mean.

Lundberg et al.: From local explanations to global understanding with explainable AI for trees, Nature Machine
Intelligence 2020 (the interventional kind, which needs no assumption on how features depend on each other).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby, product
from math import comb, inf

import numpy as np

from ultr.arrays import Doubles, Floats, Integers, Mask
from ultr.scoring.forest import LEAF, Forest

MOST_LISTED = 6
"""With up to this many features on the way to a leaf, all patterns of them are looked at at once."""
AT_ONCE = 2**21
"""Comparisons of a value with the bounds of a leaf that are made at once."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """Leaves as boxes: the bounds that the splits above a leaf set for each feature that they look at.

    All leaves here have as many such features. A value lies inside if low < value <= high, a missing one if `missing`.
    """

    features: Integers
    """[leaves, features of a leaf]."""
    low: Floats
    high: Floats
    missing: Mask
    values: Doubles
    """[leaves], what they add."""

    @classmethod
    def of(cls, forest: Forest) -> list[Boxes]:
        """The leaves of a forest with one output, by their number of features; those without any move nothing."""
        found = sorted(_leaves(forest), key=lambda leaf: len(leaf[1]))
        return [cls._together(list(some)) for count, some in groupby(found, lambda leaf: len(leaf[1])) if count]

    @classmethod
    def _together(cls, leaves: list[tuple[float, _Bounds]]) -> Boxes:
        bounds = np.array([list(each.values()) for _, each in leaves])
        return cls(
            features=np.array([list(each) for _, each in leaves]),
            low=bounds[..., 0].astype(np.float32),
            high=bounds[..., 1].astype(np.float32),
            missing=bounds[..., 2].astype(bool),
            values=np.array([value for value, _ in leaves]),
        )

    def parts(self, documents: int) -> Iterator[Boxes]:
        """Some leaves at a time, fewer for more documents."""
        step = max(AT_ONCE // max(documents * self.features.shape[1], 1), 1)
        for start in range(0, len(self.values), step):
            part = slice(start, start + step)
            yield Boxes(*(getattr(self, name)[part] for name in self.__dataclass_fields__))

    def inside(self, features: Floats) -> Mask:
        """For each leaf and document, the features of the leaf that let the document in, [leaves, documents, own]."""
        values = features[:, self.features].swapaxes(0, 1)
        low, high, missing = (each[:, None] for each in (self.low, self.high, self.missing))
        return np.where(np.isnan(values), missing, (values > low) & (values <= high))


_Bounds = dict[int, tuple[float, float, bool]]
"""Bounds and whether a missing value is inside, by feature."""


def _leaves(forest: Forest) -> Iterator[tuple[float, _Bounds]]:
    """The value of each leaf and the bounds on the way to it."""
    splits, thresholds, missing_left = forest.features.tolist(), forest.thresholds.tolist(), forest.missing_left
    left, right, values = forest.left.tolist(), forest.right.tolist(), forest.values.tolist()
    ways: list[tuple[int, _Bounds]] = [(root, {}) for root in forest.roots.tolist()]
    while ways:
        node, bounds = ways.pop()
        feature, threshold = splits[node], thresholds[node]
        if feature == LEAF:
            yield values[node], bounds
            continue
        low, high, missing = bounds.get(feature, (-inf, inf, True))
        goes_left = bool(missing_left[node])
        ways.append((left[node], {**bounds, feature: (low, min(high, threshold), missing and goes_left)}))
        ways.append((right[node], {**bounds, feature: (max(low, threshold), high, missing and not goes_left)}))


def tree_shapley(boxes: list[Boxes], features: Floats, rows: Integers) -> Doubles:
    """The Shapley values of some documents of a list, [rows, features]; `features` are those of the whole list.

    For a leaf, a document is a pattern: which of the leaf's features let it in. Documents of one pattern are alike, so
    the work grows with the number of patterns and not with the square of the length of the list.
    """
    documents, width = features.shape
    totals = np.zeros(len(rows) * width)
    for group in boxes:
        for part in group.parts(documents):
            for leaves, codes, patterns in _patterns(part.inside(features)):
                counts = np.stack([np.bincount(each, minlength=len(patterns)) for each in codes])
                moves = _moves(patterns, counts) * (part.values[leaves, None, None] / documents)
                moved = np.take_along_axis(moves, codes[:, rows, None], axis=1)
                places = width * np.arange(len(rows))[:, None] + part.features[leaves, None]
                totals += np.bincount(places.ravel(), moved.ravel(), minlength=len(totals))
    return totals.reshape(len(rows), width)


def _patterns(inside: Mask) -> Iterator[tuple[slice, Integers, Mask]]:
    """Leaves, the pattern of each document in each of them, [leaves, documents], and these patterns, [patterns, own].

    All leaves share all patterns of few features; of many, each leaf has those that occur.
    """
    own = inside.shape[-1]
    if own <= MOST_LISTED:
        yield slice(None), inside @ (1 << np.arange(own)[::-1]), all_patterns(own)
        return
    packed = np.packbits(inside, axis=-1)
    for leaf, keys in enumerate(packed.view(f"S{packed.shape[-1]}")[..., 0]):
        _, firsts, codes = np.unique(keys, return_index=True, return_inverse=True)
        yield slice(leaf, leaf + 1), codes[None], inside[leaf, firsts]


@cache
def all_patterns(features: int) -> Mask:
    """All patterns of so many features, in the order of the numbers that they are in binary.

    >>> all_patterns(2).astype(int).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    return np.array(list(product([False, True], repeat=features)))


def _moves(patterns: Mask, counts: Integers) -> Doubles:
    """The Shapley values of a leaf of value 1 for a document of each pattern, [leaves, patterns, own].

    `counts` [leaves, patterns] are the documents k that it is compared with, by their pattern. Let document i be let in
    by a features that keep document k out, and k by b features that keep i out. The leaf is reached by a mix of both
    if and only if each feature lets one of them in and all of the a come from i and none of the b; so each of the a has
    the Shapley value (a - 1)! b! / (a + b)!, each of the b has -a! (b - 1)! / (a + b)!, and all others have 0.
    """
    given, kept = patterns.astype(np.float64), (~patterns).astype(np.float64)
    only_i, only_k = (each.round().astype(np.int64) for each in (given @ kept.T, kept @ given.T))
    possible = (kept @ kept.T) < 0.5
    shares = _shares(patterns.shape[1])
    up, down = (np.where(possible, each, 0.0) for each in (shares[only_i, only_k], shares[only_k, only_i]))
    others = counts[..., None].astype(np.float64)
    return given * (up @ (others * kept)) - kept * (down @ (others * given))


@cache
def _shares(most: int) -> Doubles:
    """(a - 1)! b! / (a + b)! = 1 / (a C(a + b, a)) for a and b from 0 to `most`; 0 where a is 0."""
    numbers = range(most + 1)
    return np.array([[1 / (a * comb(a + b, a)) if a else 0.0 for b in numbers] for a in numbers])

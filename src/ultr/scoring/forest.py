"""A forest: regression trees whose leaves add up, as plain arrays that every file format can be written from."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from ultr.arrays import Doubles, Floats, Integers, Mask

LEAF = -1
"""The feature of a node that splits nothing."""
AT_ONCE = 2**20
"""Pairs of a row and a tree that are followed at once."""


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees as arrays of nodes, those of each tree after those of the one before, its root first.

    A value goes left if it is at most the threshold, right if it is above, and where `missing_left` says if it is
    missing (NaN). Thresholds are float32 like the features, so that no two programs disagree about a comparison.
    """

    features: Integers
    """int64 [nodes], the feature that a node looks at; `LEAF` for a leaf."""
    thresholds: Floats
    """float32 [nodes]."""
    missing_left: Mask
    """[nodes]."""
    left: Integers
    """int64 [nodes], the node that follows on the left; a leaf follows itself."""
    right: Integers
    """int64 [nodes]."""
    values: Doubles
    """[nodes], what a leaf adds; 0 for the others."""
    roots: Integers
    """int64 [trees], the first node of each tree."""
    outputs: Integers
    """int64 [trees], the output that a tree adds to."""

    @classmethod
    def empty(cls) -> Self:
        """No trees: every output is 0."""
        return cls.of_matrix(np.zeros((0, 8)))

    @classmethod
    def constant(cls, value: float) -> Self:
        """One tree of one leaf."""
        return cls.of_matrix(np.array([[0, 0, LEAF, 0, 0, 0, 0, value]]))

    def lowest(self) -> float:
        """A bound that no sum of leaves is below."""
        leaves = np.where(self.features == LEAF, self.values, np.inf)
        return float(np.minimum.reduceat(leaves, self.roots).sum()) if len(self) else 0.0

    def __len__(self) -> int:
        """The number of trees."""
        return len(self.roots)

    @property
    def trees(self) -> Integers:
        """[nodes], the tree that each belongs to."""
        return np.repeat(np.arange(len(self)), np.diff(np.append(self.roots, len(self.features))))

    @property
    def depth(self) -> int:
        """The most comparisons between a root and a leaf."""
        reached, steps = self.roots, 0
        while len(reached := reached[self.features[reached] != LEAF]):
            reached, steps = np.concatenate([self.left[reached], self.right[reached]]), steps + 1
        return steps

    def add(self, other: Forest) -> Forest:
        """The trees of this forest and those of another behind them."""
        shift = len(self.features)
        moved = replace(other, left=other.left + shift, right=other.right + shift, roots=other.roots + shift)
        pairs = {each.name: (getattr(self, each.name), getattr(moved, each.name)) for each in fields(self)}
        return Forest(**{name: np.concatenate(pair) for name, pair in pairs.items()})

    def some(self, trees: slice) -> Forest:
        """Some consecutive trees."""
        bounds = np.append(self.roots, len(self.features))
        start, stop, _ = trees.indices(len(self))
        nodes = slice(bounds[start], bounds[max(stop, start)])
        return Forest(
            features=self.features[nodes],
            thresholds=self.thresholds[nodes],
            missing_left=self.missing_left[nodes],
            left=self.left[nodes] - nodes.start,
            right=self.right[nodes] - nodes.start,
            values=self.values[nodes],
            roots=self.roots[trees] - nodes.start,
            outputs=self.outputs[trees],
        )

    def with_missing(self, values: Floats) -> Forest:
        """The forest in which a missing value of a feature goes where this one of `values` [features] does.

        Where that is NaN, it goes where it went.
        """
        taken = values[self.features]
        return replace(self, missing_left=np.where(np.isnan(taken), self.missing_left, taken <= self.thresholds))

    def project(self, vector: Doubles) -> Forest:
        """The forest of r(x) . vector: each leaf times the component of its tree's output."""
        scale = np.asarray(vector, dtype=np.float64)[self.outputs[self.trees]]
        return replace(self, values=self.values * scale, outputs=np.zeros_like(self.outputs))

    def leaves(self, features: Floats) -> Integers:
        """The leaf of each row in each tree, [rows, trees]."""
        node = np.broadcast_to(self.roots, (len(features), len(self)))
        rows = np.arange(len(features))[:, None]
        for _ in range(self.depth):
            value = features[rows, self.features[node]]
            left = np.where(np.isnan(value), self.missing_left[node], value <= self.thresholds[node])
            node = np.where(left, self.left[node], self.right[node])
        return node

    def predict(self, features: Floats, outputs: int, *, start: Doubles | None = None) -> Doubles:
        """The sum of the leaves of each row, [rows, outputs], added to `start` tree by tree."""
        sums = np.zeros((len(features), outputs)) if start is None else start.copy()
        most = max(AT_ONCE // max(len(self), 1), 1)
        for first in range(0, len(features), most):
            part = slice(first, first + most)
            values = self.values[self.leaves(np.asarray(features[part]))]
            for tree, output in enumerate(self.outputs):
                sums[part, output] += values[:, tree]
        return sums

    def as_matrix(self) -> Doubles:
        """All of it as one matrix, [nodes, 8]; `of_matrix` reads it."""
        tree = self.trees
        columns = (
            tree,
            self.outputs[tree],
            self.features,
            self.thresholds,
            self.missing_left,
            self.left,
            self.right,
            self.values,
        )
        return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)

    @classmethod
    def of_matrix(cls, matrix: Doubles) -> Self:
        """The forest that `as_matrix` gave; a `ValueError` if it is none."""
        if matrix.ndim != 2 or matrix.shape[1] != 8:
            raise ValueError(f"a forest is a matrix with 8 columns, got the shape {matrix.shape}")
        if not np.isfinite(matrix).all():
            raise ValueError("the nodes of the forest are not all numbers")
        tree, outputs, features, missing_left, left, right = matrix[:, [0, 1, 2, 4, 5, 6]].T.astype(np.int64)
        roots = np.unique(tree, return_index=True)[1]
        nodes = np.arange(len(matrix))
        following = np.stack([left, right])
        known = (following >= 0) & (following < len(matrix)) & (features >= LEAF)
        inside = known & (tree[np.where(known, following, 0)] == tree)
        onwards = np.where(features == LEAF, following == nodes, following > nodes)
        if not (np.all(np.diff(tree) >= 0) and np.all(inside & onwards)):
            raise ValueError("the nodes of the forest do not make trees")
        return cls(
            features=features,
            thresholds=matrix[:, 3].astype(np.float32),
            missing_left=missing_left.astype(bool),
            left=left,
            right=right,
            values=matrix[:, 7].copy(),
            roots=roots,
            outputs=outputs[roots],
        )

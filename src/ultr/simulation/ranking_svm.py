"""The Ranking SVM whose lists users are shown before anything has been learned from clicks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Floats, Integers
from ultr.data import ragged
from ultr.data.judged import JudgedLists
from ultr.data.scaling import FeatureScaling
from ultr.errors import DataError, imported
from ultr.seeding import generator

MOST_PAIRS = 200_000
"""No fit uses more pairs than this: liblinear copies all of them, at 700 features about 2 GB."""
_BLOCK = 65_536


@dataclass(frozen=True, eq=False)
class RankingSVM:
    """A linear ranker that orders pairs of documents of one query by grade.

    It minimises `1/2 |w|^2 + sum max(0, 1 - w.(x_i - x_j))^2` over pairs where `i` has the higher grade, on
    features scaled to [-1, 1], those that are missing as the median. Joachims, Optimizing Search Engines using
    Clickthrough Data, KDD 2002.
    """

    weights: Doubles
    """[features], for scaled features."""
    scaling: FeatureScaling

    @classmethod
    def fit(cls, judged: JudgedLists, *, share: float = 0.01, pairs_per_query: int = 200, seed: int = 0) -> RankingSVM:
        """The ranker of a random share of the queries that have at least two different grades.

        A query gives a random sample of `pairs_per_query` of its pairs if it has more.
        """
        checks.share("share", share)
        checks.integer("pairs_per_query", pairs_per_query, at_least=1)
        queries = _queries_with_order(judged)
        if not len(queries):
            raise DataError("cannot fit a Ranking SVM: no query has documents of two different grades")
        count = max(1, round(share * len(queries)))
        chosen = np.sort(generator(seed, "ranking svm queries").permutation(queries)[:count])
        scaling = FeatureScaling.fit(judged.features)
        better, worse = _pairs(judged, chosen, most=max(1, min(pairs_per_query, MOST_PAIRS // count)), seed=seed)
        differences = scaling.apply(judged.features[better]) - scaling.apply(judged.features[worse])
        return cls(_separate(differences), scaling)

    def score(self, features: Floats) -> Doubles:
        """The score of each document."""
        if features.ndim != 2 or features.shape[1] != len(self.weights):
            raise DataError(f"the Ranking SVM knows {len(self.weights)} features, got {features.shape}")
        scores = np.empty(len(features))
        for start in range(0, len(features), _BLOCK):
            block = slice(start, start + _BLOCK)
            scores[block] = self.scaling.apply(features[block]) @ self.weights
        return scores


def _queries_with_order(judged: JudgedLists) -> Integers:
    query = ragged.list_numbers(judged.offsets)
    first = judged.labels[judged.offsets[:-1][query]]
    return np.unique(query[judged.labels != first])


def _pairs(judged: JudgedLists, queries: Integers, *, most: int, seed: int) -> tuple[Integers, Integers]:
    """The rows of the better and the worse document of each pair, at most `most` pairs from a query."""
    better, worse = [], []
    for query in queries.tolist():
        start, end = judged.offsets[query : query + 2].tolist()
        labels = judged.labels[start:end]
        above, below = np.nonzero(labels[:, None] > labels)
        if len(above) > most:
            kept = np.sort(generator(seed, "ranking svm pairs", query).choice(len(above), most, replace=False))
            above, below = above[kept], below[kept]
        better.append(start + above)
        worse.append(start + below)
    return np.concatenate(better), np.concatenate(worse)


def _separate(differences: Floats) -> Doubles:
    """The normal of the plane through the origin that has these vectors on its positive side."""
    sklearn_svm = imported("sklearn.svm", "train", why="the Ranking SVM needs scikit-learn")
    if len(differences) == 1:
        differences = np.repeat(differences, 2, axis=0)
    # Without an intercept a vector and its mirror image say the same, but the solver insists on two classes.
    signs = np.where(np.arange(len(differences)) % 2, -1, 1)
    # The primal solver is a deterministic Newton method and converges where the dual runs out of steps.
    svm = sklearn_svm.LinearSVC(dual=False, fit_intercept=False, tol=1e-4, max_iter=10_000, random_state=0)
    svm.fit(differences * signs[:, None].astype(np.float32), signs)
    weights: Doubles = svm.coef_[0].astype(np.float64)
    return weights

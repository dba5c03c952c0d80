"""A measure of how well the features of a document tell where it was shown.

The more they do, the better a model can hide position bias in relevance: it need not be wrong about a click to be wrong
about why. A log with random positions gives 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers, ratio
from ultr.bias.linear_inputs import centred
from ultr.data import ragged, row_blocks
from ultr.data.click_log import ClickLog
from ultr.data.scaling import FeatureScaling
from ultr.errors import DataError
from ultr.seeding import generator

_CHUNK = 2**22
"""The most feature values that are held at once."""
_PENALTIES = 10.0 ** np.arange(-6, 3)
"""Ridge penalties to choose from, in units of the mean square of the features."""


@dataclass(frozen=True)
class Predictability:
    """The quality of predictions of position, on queries (or lists) that they were not fitted on."""

    r_squared: float
    """The share of the variance of position within lists that a linear function of the features explains.

    About 0 or slightly below if it explains nothing. It is a lower bound: a ranker need not be linear.
    """
    ceiling: float
    """The share that knowing each document would explain: 1 if every document always stands at one position.

    No function of the features explains more. It is free of the chance agreement of documents with few impressions, and
    1 where every document has only one.
    """
    units: str
    """The units that were held out: `queries`, or `lists` where there are too few queries."""


def position_predictability(
    log: ClickLog, *, folds: int = 5, most_lists: int = 20_000, seed: int = 0
) -> Predictability:
    """Ridge regression of position on features, both centred within each list, cross-validated over queries.

    Lists count by their impressions; of more than `most_lists`, so many are chosen at random. Only sums over the rows
    of each fold are kept, so that memory does not grow with the log; the penalty is chosen within the training folds.
    Lists with one document say nothing and are left out. A missing feature counts as its median.
    """
    checks.integer("folds", folds, at_least=2)
    lists = np.flatnonzero(log.lengths > 1)
    if not len(lists):
        raise DataError("no list of the click log shows two documents, so there is no order to predict")
    if not log.features.shape[1]:
        raise DataError("the log has no features")
    ceiling = _ceiling(log, lists)
    if len(lists) > checks.integer("most_lists", most_lists, at_least=2):
        lists = np.sort(generator(seed, "lists").choice(lists, most_lists, replace=False))
    units, fold_of = _folds(log, lists, folds=folds, seed=seed)
    folds = int(fold_of.max()) + 1
    width = log.features.shape[1]
    grams, moments, squares = np.zeros((folds, width, width)), np.zeros((folds, width)), np.zeros(folds)
    scaling = FeatureScaling.fit(log.features)
    for chunk, features, positions, weights in _rows(log, lists, scaling):
        for fold in np.unique(fold_of[chunk]):
            of_row = np.repeat(fold_of[chunk] == fold, log.lengths[lists[chunk]])
            weighted = features[of_row] * weights[of_row, None]
            grams[fold] += weighted.T @ features[of_row]
            moments[fold] += weighted.T @ positions[of_row]
            squares[fold] += weights[of_row] @ positions[of_row] ** 2
    coefficients = _coefficients(grams, moments, squares)
    lost = squares - 2 * np.einsum("fi,fi->f", coefficients, moments)
    lost = lost + np.einsum("fi,fij,fj->f", coefficients, grams, coefficients)
    return Predictability(float(1 - lost.sum() / squares.sum()), ceiling, units)


def _folds(log: ClickLog, lists: Integers, *, folds: int, seed: int) -> tuple[str, Integers]:
    """The units that are held out, and the fold of each list."""
    numbers = np.unique(log.queries[lists], return_inverse=True)[1]
    units = "queries"
    if numbers.max() + 1 < folds:
        numbers, units = np.arange(len(lists)), "lists"
    count = int(numbers.max()) + 1
    if count < 2:
        raise DataError("a click log with one list cannot be cross-validated; log more lists")
    fold_of_unit = generator(seed, "folds").permutation(np.arange(count) % min(folds, count))
    return units, fold_of_unit[numbers]


def _rows(
    log: ClickLog, lists: Integers, scaling: FeatureScaling
) -> Iterator[tuple[Integers, Doubles, Doubles, Doubles]]:
    """Chunks of lists, as numbers into `lists`, with features, positions (both centred) and weights of their rows."""
    most = max(_CHUNK // log.features.shape[1], 1)
    for span in ragged.spans(ragged.from_lengths(log.lengths[lists]), most=most):
        rows, offsets = ragged.rows_of(lists[span.lists], log.offsets), ragged.from_lengths(span.lengths)
        features = centred(scaling.fill(log.features[log.documents[rows]]).astype(np.float64), offsets)
        positions = centred((log.position.values[rows] + 1).astype(np.float64), offsets)
        weights = span.spread(log.impressions[lists]).astype(np.float64)
        yield np.arange(span.lists.start, span.lists.stop), features, positions, weights


def _coefficients(grams: Doubles, moments: Doubles, squares: Doubles) -> Doubles:
    """[folds, features]: for each fold the ridge fit on the others, its penalty chosen among those."""
    folds = len(grams)
    scale = np.sqrt(np.einsum("fii->i", grams))
    unit = ratio(np.ones_like(scale), scale)
    grams, moments = grams * unit[:, None] * unit, moments * unit
    chosen = []
    for fold in range(folds):
        others = [other for other in range(folds) if other != fold]
        lost = np.zeros(len(_PENALTIES))
        for held in others if len(others) > 1 else []:
            path = _ridge(sum(grams[i] for i in others if i != held), sum(moments[i] for i in others if i != held))
            lost += squares[held] - 2 * path @ moments[held] + np.einsum("pi,ij,pj->p", path, grams[held], path)
        # With two folds nothing is left to choose by.
        best = int(lost.argmin()) if len(others) > 1 else len(_PENALTIES) // 2
        chosen.append(_ridge(grams[others].sum(axis=0), moments[others].sum(axis=0))[best])
    coefficients: Doubles = np.array(chosen) * unit
    return coefficients


def _ridge(gram: Doubles, moment: Doubles) -> Doubles:
    """[penalties, features]."""
    values, vectors = np.linalg.eigh(gram)
    turned = vectors.T @ moment
    penalties = _PENALTIES[:, None] * max(np.trace(gram) / len(gram), 1e-300)
    path: Doubles = (turned / (np.maximum(values, 0) + penalties)) @ vectors.T
    return path


def _ceiling(log: ClickLog, lists: Integers) -> float:
    """One-way analysis of variance of the centred position by document, with impressions as repetitions."""
    middle = np.zeros(log.lists)
    used = np.zeros(log.lists, dtype=np.bool_)
    used[lists] = True
    for span in ragged.spans(log.offsets):
        number = np.repeat(np.arange(len(span.lengths)), span.lengths)
        sums = np.bincount(number, log.position.values[span.rows] + 1, minlength=len(span.lengths))
        middle[span.lists] = sums / np.maximum(span.lengths, 1)
    within, total, impressions, known = 0.0, 0.0, 0.0, 0
    for rows in row_blocks.row_blocks(log.documents):
        numbers = row_blocks.lists_of(rows, log.offsets)
        rows, numbers = rows[used[numbers]], numbers[used[numbers]]
        weights = log.impressions[numbers].astype(np.float64)
        positions = log.position.values[rows] + 1 - middle[numbers]
        documents = np.unique(log.documents[rows], return_inverse=True)[1]
        shown = np.bincount(documents, weights)
        means = np.bincount(documents, weights * positions) / shown
        within += float(weights @ (positions - means[documents]) ** 2)
        total += float(weights @ positions**2)
        impressions += float(shown.sum())
        known += len(shown)
    if not impressions > known:
        return 1.0
    return 1 - (within / (impressions - known)) / (total / (impressions - 1))

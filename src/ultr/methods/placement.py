"""Where documents were shown: P(position | x), by which impressions are weighed so that placement looks random."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ultr.arrays import Doubles, Integers, ratio
from ultr.data.cells import Cells
from ultr.relevance.inputs import Inputs
from ultr.train.lists import Batch, TrainingLists

_MOST = 20_000
"""Cells that the multinomial model is fitted to, at even distances."""
_ROUNDS = 100


@dataclass(frozen=True, eq=False)
class PlacementWeights:
    """The weight of an impression of each document at each position that the log shows it at."""

    keys: Tensor
    """int64 [cells], ascending: the row of the document times the number of positions, plus the position."""
    weights: Tensor
    """[cells]."""
    positions: int

    @classmethod
    def of(cls, lists: TrainingLists, *, largest: float) -> PlacementWeights:
        """The weights of the lists of a log."""
        cells = lists.log.cells()
        chances = smoothed(cells, multinomial(cells, lists.inputs))
        keys = cells.ids[cells.documents] * cells.count + cells.positions
        weights = balanced(cells, chances, largest=largest)
        return cls(torch.from_numpy(keys), torch.from_numpy(weights).float(), cells.count)

    def __call__(self, batch: Batch) -> Tensor:
        """The weight of each document of a batch of the log, [documents]."""
        keys = batch.documents.rows * self.positions + batch.positions.cpu()
        return self.weights[torch.searchsorted(self.keys, keys)].to(batch.clicks)


def multinomial(cells: Cells, inputs: Inputs) -> Doubles:
    """P(position | x) of each cell by a multinomial logistic model of the features, [cells]."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(cells.positions)) < 2:
        return np.ones(len(cells.positions))

    def features(some: Integers) -> Doubles:
        rows = torch.from_numpy(cells.ids[cells.documents[some]])
        return inputs.gather(rows)[:, : inputs.preprocessing.layout.numbers].cpu().double().numpy()

    some = np.arange(0, len(cells.positions), -(-len(cells.positions) // _MOST))
    weights = cells.impressions[some] / cells.impressions[some].mean()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=_ROUNDS).fit(features(some), cells.positions[some], weights)
    column = np.zeros(cells.count, dtype=np.int64)
    column[model.classes_] = np.arange(len(model.classes_))
    chances: Doubles = np.empty(len(cells.positions))
    for part in np.array_split(np.arange(len(chances)), -(-len(chances) // _MOST)):
        found = model.predict_proba(features(part))
        chances[part] = found[np.arange(len(part)), column[cells.positions[part]]]
    return chances


def smoothed(cells: Cells, prior: Doubles) -> Doubles:
    """P(position | x) of each cell from how often its document was shown there, and from a prior, [cells].

    A document that was shown at several positions has (n_k + K prior_k) / (n + K) with K the number of positions: the
    prior counts like K impressions. One that was shown at a single position has its prior: counts would call that sure.
    """
    shown, moved = np.bincount(cells.documents, cells.impressions), np.bincount(cells.documents) > 1
    counted = (cells.impressions + cells.count * prior) / (shown[cells.documents] + cells.count)
    return np.where(moved[cells.documents], counted, prior)


def balanced(cells: Cells, chances: Doubles, *, largest: float) -> Doubles:
    """1 / P(position | x) of each cell, at most `largest`, over its mean at the position, [cells]."""
    weights: Doubles = np.minimum(1 / np.maximum(chances, 1e-12), largest)
    shown, sums = (np.bincount(cells.positions, each) for each in (cells.impressions, cells.impressions * weights))
    mean = ratio(sums, shown, otherwise=1.0)
    return weights / mean[cells.positions]

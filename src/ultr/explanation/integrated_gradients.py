"""Integrated gradients of a network, against the documents of a list.

On the straight line from document k to document i, feature j adds

    IG_j(i, k) = (x_ij - x_kj) integral over t from 0 to 1 of d f / d x_j at x_k + t (x_i - x_k)

and these add up to f(x_i) - f(x_k). The contribution of feature j to document i is the mean over all documents k of the
list, so that contributions add up to the score of i less the list's mean.

The line runs through what the network gets: scaled numbers with the typical value for a missing one, the indicators of
missing values, and the rows of categories, so that missing values and categories have a way too. A feature has the sum
of all that belongs to it.

Sundararajan, Taly, Yan: Axiomatic attribution for deep networks, ICML 2017; the mean over reference points as in
Erion et al.: Improving performance of deep learning models with axiomatic attribution priors and expected gradients,
Nature Machine Intelligence 2021, but over all of them and without sampling.
"""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import torch
from torch import Tensor

from ultr.arrays import Doubles, Floats, Integers
from ultr.data import ragged
from ultr.relevance.mlp import Layers, Network
from ultr.relevance.preprocessing import Preprocessing, normalised
from ultr.scoring.explanation import RankedList

STEPS = (16, 32, 64, 128, 256)
"""Points of the line at which gradients are taken: more until the contributions add up."""
AT_ONCE = 2**13
"""Points of all lines that go through the network at once."""


class NetworkGradients:
    """A network with one output as a function of numbers, whose gradients say what each feature adds."""

    def __init__(self, network: Network, preprocessing: Preprocessing) -> None:
        self._layers, self._preprocessing = network.layers, preprocessing
        # Gradients of many points are added up, so they are taken in double precision.
        self._double: Layers = deepcopy(network.layers).double().requires_grad_(False)
        numbers, codes = preprocessing.numbers, preprocessing.codes
        widths = torch.tensor([table.width for table in network.layers.tables], dtype=torch.int64)
        owners = torch.cat([numbers, numbers[preprocessing.indicated], codes.repeat_interleave(widths)])
        self._owners: Integers = owners.numpy()
        """The feature that each number belongs to."""

    def contributions(self, ranked: RankedList) -> Doubles:
        """Contributions to the scores of some documents of a list, [rows, features].

        Where they do not add up with the most steps, the gap stays.
        """
        points, rows = self._points(ranked.features), torch.from_numpy(ranked.rows)
        first, second = _pairs(rows, len(points))
        differences = ranked.scores[ranked.rows] - ranked.scores.mean()
        for steps in STEPS:
            by_number = torch.zeros_like(points)
            for part in ragged.slices(len(first), most=max(AT_ONCE // steps, 1)):
                i, k = first[part], second[part]
                added = self._along(points[k], points[i], steps) / len(points)
                by_number.index_add_(0, i, added).index_add_(0, k, -added)
            found = self._by_feature(by_number[rows].numpy(), ranked.features.shape[1])
            if np.abs(differences - found.sum(axis=1)).max() <= ranked.allowed:
                break
        return found

    def _points(self, features: Floats) -> Tensor:
        """Documents as numbers between which there is a straight line, [documents, numbers]."""
        with torch.no_grad():
            inputs = torch.cat(self._preprocessing.parts(torch.tensor(features)), dim=-1)
            return (self._layers.looked_up(inputs) if self._layers.tables else inputs).double()

    def _along(self, start: Tensor, end: Tensor, steps: int) -> Tensor:
        """Integrated gradients of each number on the lines between points, [lines, numbers]."""
        places, weights = (torch.from_numpy(each) for each in np.polynomial.legendre.leggauss(steps))
        shares = ((places + 1) / 2)[None, :, None]
        line = torch.lerp(start[:, None], end[:, None], shares).flatten(0, 1).requires_grad_()
        count = len(self._preprocessing.numbers)
        scaled, others = line[:, :count], line[:, count:]
        score = self._double.behind_tables(torch.cat([normalised(scaled), others], dim=-1))
        (slopes,) = torch.autograd.grad(score.sum(), line)
        mean: Tensor = torch.einsum("ksn,s->kn", slopes.reshape(len(start), steps, -1), weights / 2)
        return (end - start) * mean

    def _by_feature(self, by_number: Doubles, features: int) -> Doubles:
        found = np.zeros((len(by_number), features))
        np.add.at(found.T, self._owners, by_number.T)
        return found


def _pairs(rows: Tensor, documents: int) -> tuple[Tensor, Tensor]:
    """Each pair of a document to explain and another of the list once: a line says the same in both directions."""
    wanted = torch.zeros(documents, dtype=torch.bool)
    wanted[rows] = True
    first, second = torch.meshgrid(rows, torch.arange(documents), indexing="ij")
    once = (~wanted[second] & (first != second)) | (first > second)
    return first[once], second[once]

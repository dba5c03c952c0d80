"""Which weights are best: by labels or by held-out clicks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import torch

from ultr.arrays import Floats, Integers
from ultr.data import gathering, ragged
from ultr.data.judged import JudgedLists
from ultr.data.scaling import FeatureScaling
from ultr.errors import DataError
from ultr.metrics.ranking import ndcg
from ultr.train.inputs import Inputs
from ultr.train.lists import TrainingLists
from ultr.train.sampler import ListSampler
from ultr.train.stage import ScoreFunction, Stage

CHUNK = 8_192
"""About how many documents are scored at once."""
MOST = 20_000
"""Held-out lists that choose the weights, at most."""


class Validation(Protocol):
    """A number that says how good a stage's weights are; higher is better."""

    name: str

    def __call__(self, stage: Stage) -> float:
        """The value of the present weights."""
        ...


class LabelValidation:
    """Mean nDCG@10 over judged queries that have a relevant document."""

    name = "nDCG@10"

    def __init__(self, judged: JudgedLists, scaling: FeatureScaling) -> None:
        self._judged = judged.with_relevant()
        if not self._judged.queries:
            raise DataError("no query of the validation data has a relevant document, so they cannot choose weights")
        self._inputs = Inputs(self._judged.features, scaling)

    def __call__(self, stage: Stage) -> float:
        """The mean nDCG@10 of the stage's scores."""
        scores = score_lists(stage.score, self._inputs, self._judged.offsets)
        return float(ndcg(scores, self._judged.labels, self._judged.offsets, cutoff=10).mean())


class ClickValidation:
    """The stage's held-out loss, negated: needs no labels.

    Of a log with more than `most` lists, so many are drawn in proportion to their impressions, once for all: the mean
    over them is that of the log but for noise, which is the same at every step.
    """

    name = "held-out -loss"

    def __init__(self, lists: TrainingLists, *, most: int = MOST) -> None:
        self._lists = lists
        self._chosen, self._weights = np.arange(lists.lists), lists.weights
        if lists.lists > most:
            drawn = ListSampler(lists.weights, most, seed=0, purpose="validation")(0)
            self._chosen, self._weights = np.unique(drawn, return_counts=True)
        lengths = lists.offsets[1:][self._chosen] - lists.offsets[:-1][self._chosen]
        self._chunks = list(chunks(ragged.from_lengths(lengths)))

    @torch.no_grad()
    def __call__(self, stage: Stage) -> float:
        """Minus the mean loss an impression."""
        total = 0.0
        for chunk in self._chunks:
            losses = stage.held_out_losses(self._lists.batch(self._chosen[chunk])).double().numpy()
            total += float(losses @ self._weights[chunk])
        return -total / float(self._weights.sum())


@torch.no_grad()
def score_lists(score: ScoreFunction, inputs: Inputs, offsets: Integers) -> Floats:
    """Scores of all lists, some thousand documents at a time, float32 [documents]."""
    scores: Floats = gathering.new_array(int(offsets[-1]), np.float32)
    for chunk in chunks(offsets):
        bounds = offsets[chunk[0] : chunk[-1] + 2]
        rows = torch.arange(int(bounds[0]), int(bounds[-1]))
        lengths = np.diff(bounds)
        mask = ragged.mask(bounds - bounds[0], width=int(lengths.max()))
        scores[bounds[0] : bounds[-1]] = score(inputs.gather(rows), torch.from_numpy(mask)).numpy()
    return scores


def chunks(offsets: Integers) -> Iterator[Integers]:
    """Consecutive lists in groups of at most CHUNK documents with padding; lists without documents are left out."""
    for span in ragged.spans(offsets):
        filled = np.flatnonzero(span.lengths)
        starts, start, width = [], 0, 0
        for number, length in enumerate(span.lengths[filled].tolist()):
            width = max(width, length)
            if number > start and (number + 1 - start) * width > CHUNK:
                starts.append(number)
                start, width = number, length
        yield from np.split(span.lists.start + filled, starts) if len(filled) else ()

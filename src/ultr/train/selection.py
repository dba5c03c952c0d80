"""Which weights are best: by labels or by held-out clicks."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch

from ultr.arrays import Floats, Integers
from ultr.data import ragged
from ultr.data.judged import JudgedLists
from ultr.data.scaling import FeatureScaling
from ultr.errors import DataError
from ultr.metrics.ranking import ndcg
from ultr.train.inputs import Inputs
from ultr.train.lists import TrainingLists
from ultr.train.stage import ScoreFunction, Stage

CHUNK = 8_192
"""About how many documents are scored at once."""


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
    """The stage's held-out loss, negated: needs no labels."""

    name = "held-out -loss"

    def __init__(self, lists: TrainingLists) -> None:
        self._lists = lists

    @torch.no_grad()
    def __call__(self, stage: Stage) -> float:
        """Minus the mean loss an impression."""
        total = 0.0
        for chunk in chunks(self._lists.offsets):
            losses = (stage.held_out or stage.loss)(self._lists.batch(chunk)).double().numpy()
            total += float(losses @ self._lists.weights[chunk])
        return -total / float(self._lists.weights.sum())


@torch.no_grad()
def score_lists(score: ScoreFunction, inputs: Inputs, offsets: Integers) -> Floats:
    """Scores of all lists, some thousand documents at a time, float32 [documents]."""
    parts = [np.empty(0, dtype=np.float32)]
    for chunk in chunks(offsets):
        bounds = offsets[chunk[0] : chunk[-1] + 2]
        rows = torch.arange(int(bounds[0]), int(bounds[-1]))
        lengths = np.diff(bounds)
        mask = ragged.mask(bounds - bounds[0], width=int(lengths.max()))
        parts.append(score(inputs.gather(rows), torch.from_numpy(mask)).numpy())
    return np.concatenate(parts)


def chunks(offsets: Integers) -> list[Integers]:
    """Consecutive lists in groups of at most CHUNK documents with padding; lists without documents are left out."""
    lengths = np.diff(offsets)
    filled = np.flatnonzero(lengths)
    starts, start, width = [], 0, 0
    for number, length in enumerate(lengths[filled].tolist()):
        width = max(width, length)
        if number > start and (number + 1 - start) * width > CHUNK:
            starts.append(number)
            start, width = number, length
    return np.split(filled, starts) if len(filled) else []

"""Validation of weights, by labels or by held-out clicks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from ultr.arrays import Floats, Integers
from ultr.data import gathering, ragged
from ultr.data.judged import JudgedLists
from ultr.errors import DataError
from ultr.metrics.ranking import ndcg
from ultr.relevance.inputs import Documents, Inputs
from ultr.relevance.preprocessing import Preprocessing
from ultr.train.lists import TrainingLists
from ultr.train.ranking_model import RankingModel
from ultr.train.sampler import ListSampler
from ultr.train.stage import Stage

CHUNK = 8_192
"""Documents scored at once, padding included."""
MOST = 20_000
"""Most held-out lists that choose the weights."""


Validation = Callable[[RankingModel, Stage], float]
"""A number that says how good the present weights of a stage are; higher is better."""


class LabelValidation:
    """Mean nDCG@10 over judged queries that have a relevant document."""

    def __init__(self, judged: JudgedLists, preprocessing: Preprocessing) -> None:
        self._judged = judged.with_relevant()
        if not self._judged.queries:
            raise DataError("no query of the validation data has a relevant document, so they cannot choose weights")
        self._inputs = Inputs(self._judged.features, preprocessing)

    def __call__(self, model: RankingModel, stage: Stage) -> float:
        """The mean nDCG@10 of the stage's scores."""

        def score(documents: Documents, mask: Tensor) -> Tensor:
            r = model.outputs(documents, stage.ranks_with)
            return stage.score(r, mask.to(r.device))

        scores = score_lists(score, self._inputs, self._judged.offsets)
        return float(ndcg(scores, self._judged.labels, self._judged.offsets, cutoff=10).mean())


class ClickValidation:
    """The stage's held-out loss, negated: needs no labels.

    A log with more than `most` lists is sampled once, in proportion to impressions: the mean over the sample is that of
    the log but for noise, which is the same at every step.
    """

    def __init__(self, lists: TrainingLists, *, most: int = MOST) -> None:
        self._lists = lists
        self._chosen, self._weights = np.arange(lists.lists), lists.impressions
        if lists.lists > most:
            drawn = ListSampler(lists.impressions, most, seed=0, purpose="validation")(0)
            self._chosen, self._weights = np.unique(drawn, return_counts=True)
        lengths = lists.offsets[1:][self._chosen] - lists.offsets[:-1][self._chosen]
        self._chunks = list(chunks(ragged.from_lengths(lengths)))

    @torch.no_grad()
    def __call__(self, model: RankingModel, stage: Stage) -> float:
        """Minus the mean loss per impression."""
        total = 0.0
        for chunk in self._chunks:
            batch = self._lists.batch(self._chosen[chunk], readers=stage.readers)
            r = model.outputs(batch.documents, stage.uses)
            losses = stage.held_out_losses(r, batch.to(r.device)).double().cpu().numpy()
            total += float(losses @ self._weights[chunk])
        return -total / float(self._weights.sum())


@torch.no_grad()
def score_lists(score: Callable[[Documents, Tensor], Tensor], inputs: Inputs, offsets: Integers) -> Floats:
    """Scores of all lists, some thousand documents at a time, float32 [documents].

    `score` gives those of some lists from their documents and their mask.
    """
    scores: Floats = gathering.new_array(int(offsets[-1]), np.float32)
    for chunk in chunks(offsets):
        bounds = offsets[chunk[0] : chunk[-1] + 2]
        rows = torch.arange(int(bounds[0]), int(bounds[-1]))
        lengths = np.diff(bounds)
        mask = ragged.mask(bounds - bounds[0], width=int(lengths.max()))
        found = score(Documents(inputs, rows), torch.from_numpy(mask))
        scores[bounds[0] : bounds[-1]] = found.cpu().numpy()
    return scores


def chunks(offsets: Integers, *, most: int = CHUNK) -> Iterator[Integers]:
    """Consecutive lists in groups of at most so many documents with padding; lists without documents are left out."""
    for span in ragged.spans(offsets, most=max(most, ragged.SPAN)):
        filled = np.flatnonzero(span.lengths)
        starts, start, width = [], 0, 0
        for number, length in enumerate(span.lengths[filled].tolist()):
            width = max(width, length)
            if number > start and (number + 1 - start) * width > most:
                starts.append(number)
                start, width = number, length
        yield from np.split(span.lists.start + filled, starts) if len(filled) else ()

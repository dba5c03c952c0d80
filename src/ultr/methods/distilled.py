"""Trees or one network in the place of another ranker, taught by its scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ultr.arrays import Doubles, Floats, Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.errors import DataError
from ultr.losses import centred_squared_error
from ultr.methods.estimator import Estimator
from ultr.methods.factors import Factor
from ultr.methods.model_file import weights_digest
from ultr.methods.ranker import Ranker
from ultr.relevance.inputs import Inputs
from ultr.relevance.preprocessing import indicated
from ultr.relevance.relevance_model import Relevance
from ultr.relevance.trees import BoostedTrees, Trees
from ultr.seeding import generator
from ultr.train.lists import Batch, TrainingLists
from ultr.train.loop import train
from ultr.train.objective import ScalarObjective
from ultr.train.progress import Observer
from ultr.train.selection import ClickValidation, chunks
from ultr.train.stage import Stage

TREES = Trees(rounds=500, leaves=31, fewest_documents=20)
"""More than clicks would carry: scores are without noise."""
SMALLEST = 1e-9
"""Scores that spread less within lists are all alike but for rounding."""
COPIES, DOCUMENTS = 9, 50_000
"""Most mixed copies of the data, and most documents with them."""
MIXED = 0.3
"""The share of features that a document of a copy has from another one."""
PATIENCE = 5
"""Validations in a row without a new best one after which no more trees are grown; a network takes all its steps."""


@dataclass(kw_only=True, eq=False)
class Distilled(Estimator[ScalarObjective]):
    """A forest or a network f that orders each list as another ranker's scores s do.

    L = 1/2 sum_i ( f(x_i) - mean f - (s_i - mean s) / sigma )^2

    with means over the list, whose order does not depend on them, and one sigma, the spread of s - mean s, for all
    lists. A missing value counts as the typical one where it does for the teacher, and else as missing.

    Since a teacher scores whatever it is asked, small data are made larger: by copies of their lists in which documents
    have some of their features from other documents.
    Bucila, Caruana, Niculescu-Mizil: Model compression, KDD 2006.
    """

    name: ClassVar[str] = "distilled"
    learns_from: ClassVar[type[ClickLog] | type[JudgedLists]] = JudgedLists
    without: ClassVar[tuple[str, ...]] = ("seeds", "value")

    relevance: Relevance = TREES
    """The trees, or the network."""

    def objective(self, factors: Sequence[Factor]) -> ScalarObjective:
        """No bias parameters."""
        return ScalarObjective()

    def stages(self, objective: ScalarObjective, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """One stage, on the scores."""
        return [Stage("scores", steps, _loss, objective.score)]

    def teach(
        self,
        teacher: Ranker,
        data: ClickLog | JudgedLists,
        held_out: ClickLog | JudgedLists,
        *,
        observer: Observer | None = None,
    ) -> Ranker[ScalarObjective]:
        """A ranker by the teacher's scores of these data; those of others decide when it has learned enough."""
        self.check()
        copies = min(COPIES, DOCUMENTS // max(int(data.offsets[-1]), 1))
        lists, others = _lists(teacher, data, copies=copies, seed=self.seed), _lists(teacher, held_out)
        scores, held_out_scores = (_centred_scores(teacher, each) for each in (lists, others))
        sigma = scores.std()
        if not sigma > SMALLEST:
            raise DataError("the model gives all documents of a list the same score, so there is nothing to learn")
        model = self.build(teacher.preprocessing.layout, (), seed=self.seed)
        learner, training = model.by_name["relevance"], self.relevance.training()
        patience = self.patience or (PATIENCE if isinstance(learner, BoostedTrees) else None)
        history = train(
            model,
            self.stages(model.objective, lists, training.steps),
            _with_targets(lists, scores / sigma),
            training=training,
            seed=self.seed,
            evaluate_every=self.evaluate_every,
            patience=patience,
            validation=ClickValidation(_with_targets(others, held_out_scores / sigma)),
            observer=observer,
        )
        if isinstance(learner, BoostedTrees):
            learner.forest = learner.forest.with_missing(_filled_in(teacher))
        return Ranker(
            method=self.name,
            options=self.content(),
            model=model,
            feature_names=teacher.feature_names,
            scaling=teacher.scaling,
            categories=teacher.categories,
            factors=(),
            learned_factors=(),
            clicks_per_impression=teacher.clicks_per_impression,
            history=tuple(history),
            choices={
                "teacher": {"method": teacher.method, "weights_digest": weights_digest(teacher.model)},
                "copies": copies,
            },
            sample=teacher.sample,
            provenance=teacher.provenance,
        )


def _loss(r: Tensor, batch: Batch) -> Tensor:
    return centred_squared_error(batch.pad(r.squeeze(-1)), batch.clicks, mask=batch.mask)


def _lists(teacher: Ranker, data: ClickLog | JudgedLists, *, copies: int = 0, seed: int = 0) -> TrainingLists:
    """The lists of the data and mixed copies of them, missing values filled in as the teacher does."""
    features: Floats = data.features
    if np.isnan(features).any():
        features = np.where(np.isnan(features), _filled_in(teacher), features)
    documents: Integers = np.arange(len(features))
    offsets, impressions = data.offsets, np.ones_like(data.offsets[1:])
    if isinstance(data, ClickLog):
        documents, impressions = data.documents, data.impressions
    if copies:
        features = _mixed(features[documents], copies, seed=seed)
        documents = np.arange(len(features))
        offsets = ragged.from_lengths(np.tile(np.diff(offsets), copies + 1))
        impressions = np.tile(impressions, copies + 1)
    inputs, clicks = Inputs(features, teacher.preprocessing), np.zeros(len(documents), dtype=np.float32)
    return TrainingLists(inputs, documents, offsets, (), clicks, impressions)


def _filled_in(teacher: Ranker) -> Floats:
    """The value that the teacher takes for a missing one of each feature, NaN where it knows that it is missing."""
    values = teacher.scaling.typical.copy()
    values[[*indicated(teacher.scaling.missing), *teacher.preprocessing.categories]] = np.nan
    return np.full_like(values, np.nan) if teacher.model.takes_missing else values


def _mixed(features: Floats, copies: int, *, seed: int) -> Floats:
    """Documents and copies of them that have some of their features from another document each."""
    parts = [features]
    for number in range(copies):
        random = generator(seed, "mixed documents", number)
        others = features[random.integers(len(features), size=len(features))]
        parts.append(np.where(random.random(features.shape, dtype=np.float32) < MIXED, others, features))
    return np.concatenate(parts)


def _centred_scores(teacher: Ranker, lists: TrainingLists) -> Doubles:
    """The teacher's scores less the mean of their list, [shown documents]."""
    centred: Doubles = np.zeros(len(lists.documents))
    with torch.no_grad():
        for chunk in chunks(lists.offsets):
            batch = lists.batch(chunk)
            scores = batch.pad(teacher.model.score(batch.documents, batch.mask).double())
            means = scores.sum(dim=-1, keepdim=True) / batch.mask.sum(dim=-1, keepdim=True)
            centred[ragged.rows_of(chunk, lists.offsets)] = (scores - means)[batch.mask].numpy()
    return centred


def _with_targets(lists: TrainingLists, targets: Doubles) -> TrainingLists:
    """The lists with targets in the place of clicks, of which batches take the mean over impressions."""
    clicks: Floats = (targets * np.repeat(lists.impressions, np.diff(lists.offsets))).astype(np.float32)
    return replace(lists, clicks=clicks)

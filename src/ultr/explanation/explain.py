"""Why is this ranked here? Contributions of the features of candidates, against their list."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ultr import checks
from ultr.arrays import Floats, Integers
from ultr.data import ragged
from ultr.data.named_features import match_features
from ultr.errors import OptionError
from ultr.explanation.integrated_gradients import NetworkGradients
from ultr.methods.estimator import Estimator
from ultr.methods.ranker import Ranker
from ultr.relevance.inputs import Inputs, all_documents
from ultr.relevance.mlp import Network
from ultr.relevance.relevance_model import RelevanceModel
from ultr.relevance.trees import BoostedTrees
from ultr.scoring import Scorer
from ultr.scoring.explanation import (
    EXACT,
    GRADIENTS,
    SAMPLED,
    Explanation,
    Moves,
    RankedList,
    explain_lists,
    ranked_lists,
)
from ultr.scoring.file_explanation import explain_file
from ultr.scoring.sampled_shapley import sampled_shapley
from ultr.scoring.tree_shapley import Boxes, tree_shapley
from ultr.seeding import generator
from ultr.train.bounded import Bounded

FIXED = "what the whole list adds to its scores, the base vector, is held fixed"


def explain(
    ranker: Ranker | Estimator | Scorer,
    features: object,
    offsets: Integers | None = None,
    *,
    top: int | None = None,
    ids: Collection[str] = (),
    seed: int = 0,
) -> Explanation:
    """Contributions of the features to the scores of candidates, against the mean score of their list.

    Those of a candidate add up to its score less the mean score of its list; `gaps` are what is missing, and `complete`
    says where that is within the tolerance. Forests have exact Shapley values, networks integrated gradients, both with
    all documents of the list as the reference. Where the list adds to a score, as the base vector of Vectorization
    does, that is held fixed: what is explained is r(x) . b with the b of the list as it is.

    Args:
        ranker: A fitted estimator, the ranker that `load` gave, or the `Scorer` of an exported file.
        features: Candidates as `Ranker.score` takes them, an array or a frame.
        offsets: Query `i` has the rows `offsets[i]:offsets[i + 1]`; by default all are candidates of one query.
        top: Explain only so many of each query, the best; the others are still what they are compared with.
        ids: Columns of a frame that are no features.
        seed: Seed of the orders that are drawn for models that are neither forests nor networks of this package.

    """
    ranker = ranker.ranker_ if isinstance(ranker, Estimator) else ranker
    if top is not None:
        checks.integer("top", top, at_least=1)
    if not isinstance(features, np.ndarray | list | tuple):
        features = match_features(features, ranker.feature_names, categories=ranker.categories, ids=ids)
    matrix = np.asarray(features, dtype=np.float32)
    bounds = np.array([0, len(matrix)]) if offsets is None else np.asarray(offsets, dtype=np.int64)
    ragged.check_offsets(bounds, len(matrix), what="candidates")
    if isinstance(ranker, Scorer):
        return explain_file(ranker, matrix, bounds, top=top, seed=seed)
    if isinstance(ranker.model.ranking, Bounded):
        raise OptionError(
            "a safe ranker orders lists within bounds, which no sum over features explains; explain one that was "
            "trained without --safe"
        )
    lists = ranked_lists(ranker.score(matrix, bounds), matrix, bounds, top=top)
    how, contribute = _contributions(ranker, seed=seed)
    note = FIXED if ranker.model.ranking.by_list else ""
    return explain_lists(contribute, lists, names=ranker.feature_names, how=how, note=note)


def _contributions(ranker: Ranker, *, seed: int) -> tuple[str, Callable[[RankedList], Moves]]:
    """The way to explain a ranker, and the function that does so for a list."""
    models = ranker.model.by_name
    ways: dict[type[RelevanceModel], str] = {BoostedTrees: EXACT, Network: GRADIENTS}
    how = ways.get(type(models[ranker.model.ranking.ranks_with[0]]), SAMPLED)
    known: dict[str, tuple[Tensor, RelevanceModel, Callable[[RankedList], Moves]]] = {}

    def contribute(ranked: RankedList) -> Moves:
        directions = _directions(ranker, ranked.features)
        found = []
        for name, vector in directions.items():
            # Only a base vector differs from list to list.
            if name not in known or not torch.equal(known[name][0], vector):
                projected = models[name].project(vector)
                known[name] = vector, projected, _explained(how, projected, ranker, seed=seed)
            _, projected, explained = known[name]
            own = ranked
            if len(directions) > 1:
                share = ranked.allowed / len(directions)
                scores = _scores(projected, ranked.features, ranker).astype(np.float64)
                own = replace(ranked, scores=scores, allowed=share)
            found.append(explained(own))
        return _sum(found)

    return how, contribute


def _directions(ranker: Ranker, features: Floats) -> dict[str, Tensor]:
    """The vectors v by which the sum of r(x) . v over some relevance models are the scores of one list."""
    ranking = ranker.model.ranking
    r = torch.from_numpy(ranker.outputs(features, ranking.ranks_with))
    with torch.no_grad():
        found = ranking.directions(r[None], torch.ones(1, len(r), dtype=torch.bool))
    return {name: vector for name, vector in found.items() if vector.any()} or found


@torch.no_grad()
def _scores(model: RelevanceModel, features: Floats, ranker: Ranker) -> Floats:
    """Scores by one of the relevance models of a ranker, projected on a vector."""
    scores: Floats = model(all_documents(Inputs(features, ranker.preprocessing))).squeeze(-1).numpy()
    return scores


def _sum(found: Sequence[Moves]) -> Moves:
    """Contributions to a sum of scores: the sums of those to each, and the errors of independent draws."""
    moves = np.sum([each for each, _ in found], axis=0)
    errors = [each for _, each in found if each is not None]
    return moves, np.sqrt(np.sum(np.square(errors), axis=0)) if errors else None


def _explained(how: str, model: RelevanceModel, ranker: Ranker, *, seed: int) -> Callable[[RankedList], Moves]:
    """The function that explains scores by a model with one output in this way."""
    if how == EXACT:
        assert isinstance(model, BoostedTrees)
        boxes = Boxes.of(model.forest)
        return lambda ranked: (tree_shapley(boxes, ranked.features, ranked.rows), None)
    if how == GRADIENTS:
        assert isinstance(model, Network)
        gradients = NetworkGradients(model, ranker.preprocessing)
        return lambda ranked: (gradients.contributions(ranked), None)
    random, score = generator(seed, "sampled permutations"), partial(_scores, model, ranker=ranker)
    return lambda ranked: sampled_shapley(score, ranked.features, ranked.rows, random=random)

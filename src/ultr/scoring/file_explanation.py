"""Why an exported file ranks candidates where it does, without gradients and without torch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ultr.arrays import Floats, Integers
from ultr.errors import OptionError
from ultr.scoring.explanation import EXACT, SAMPLED, Explanation, Moves, RankedList, explain_lists, ranked_lists
from ultr.scoring.sampled_shapley import orders_drawn, sampled_shapley
from ultr.scoring.scorer import Scorer
from ultr.scoring.tree_shapley import tree_shapley
from ultr.seeding import generator


def explain_file(
    scorer: Scorer,
    features: Floats,
    offsets: Integers,
    *,
    top: int | None = None,
    seed: int = 0,
    most: int | None = None,
) -> Explanation:
    """The explanation of candidates by an exported file.

    A forest is read out of the file and explained exactly. Other models are explained by sampled permutations, if they
    score each candidate by itself; one whose scores depend on the whole list is an `OptionError`. `most` limits the
    mixed candidates that are scored for that.
    """
    matrix = np.ascontiguousarray(features, dtype=np.float32)
    lists = ranked_lists(scorer.score(matrix, offsets), matrix, offsets, top=top)
    names = scorer.card.feature_names
    boxes = scorer.boxes if _is_forest(scorer, lists) else None
    if boxes is not None:
        return explain_lists(
            lambda each: (tree_shapley(boxes, each.features, each.rows), None), lists, names=names, how=EXACT
        )

    def alone(features: Floats) -> Floats:
        return scorer.score(features, np.arange(len(features) + 1))

    def sampled(each: RankedList) -> Moves:
        return sampled_shapley(alone, each.features, each.rows, random=random)

    if any(np.abs(alone(each.features) - each.scores).max() > each.allowed for each in lists):
        raise OptionError(
            "scores of this file depend on the whole list (its base vector), which cannot be held fixed from outside; "
            "explain the model folder that it was exported from, or export it with --pointwise"
        )
    _check_effort(lists, len(names), most)
    random = generator(seed, "sampled permutations")
    return explain_lists(sampled, lists, names=names, how=SAMPLED)


def _is_forest(scorer: Scorer, lists: Sequence[RankedList]) -> bool:
    """True if the scores of the file are those of its forest."""
    forest = scorer.forest
    return forest is not None and all(
        np.abs(forest.predict(each.features, 1)[:, 0] - each.scores).max() <= each.allowed for each in lists
    )


def _check_effort(lists: Sequence[RankedList], features: int, most: int | None) -> None:
    pairs = [(len(each.rows) * (len(each.scores) - 1), orders_drawn(len(each.scores))) for each in lists]
    needed = sum(count * orders * (features + 1) for count, orders in pairs)
    if most is not None and needed > most:
        raise OptionError(
            f"explaining this takes the scores of {needed:,} mixed candidates, at most {most:,} may be; "
            "send fewer candidates"
        )

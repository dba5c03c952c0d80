"""Why candidates are ranked where they are: contributions of features, against the list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ultr.arrays import Doubles, Floats, Integers, Mask

EXACT, GRADIENTS, SAMPLED = "exact Shapley values", "integrated gradients", "sampled Shapley values"
TOLERANCE, ROUNDING = 1e-3, 1e-5
"""Largest gap: this share of the range of the list's scores, and this share of the largest score for float32."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """Contributions of the features to the scores of some candidates.

    Those of a candidate add up to its score less the mean score of its list, but for its gap.
    """

    feature_names: tuple[str, ...]
    how: str
    """`exact Shapley values`, `integrated gradients` or `sampled Shapley values`."""
    candidates: Integers
    """[explained], rows of the feature matrix: list by list, the best first."""
    lists: Integers
    """[explained], the list of each."""
    ranks: Integers
    """[explained], from 1."""
    scores: Doubles
    """[explained]."""
    means: Doubles
    """[explained], the mean score of its list."""
    contributions: Doubles
    """[explained, features]."""
    errors: Doubles | None
    """[explained, features], standard errors of sampled values; None if nothing was sampled."""
    allowed: Doubles
    """[explained], the largest gap of an explanation that counts as complete."""
    note: str = ""
    """A note on what is held fixed; empty if nothing is."""

    @property
    def gaps(self) -> Doubles:
        """[explained], what the contributions lack to the score less the mean of the list."""
        gaps: Doubles = self.scores - self.means - self.contributions.sum(axis=1)
        return gaps

    @property
    def complete(self) -> Mask:
        """[explained], True if the contributions add up."""
        return np.abs(self.gaps) <= self.allowed

    def largest(self, number: int, most: int) -> list[int]:
        """The columns of the features that moved an explained candidate most, those that did not move it left out."""
        sizes = np.abs(self.contributions[number])
        order = np.argsort(-sizes, kind="stable")[:most]
        return [int(column) for column in order if sizes[column] > 0]

    def as_json(self, number: int) -> dict[str, Any]:
        """The explanation of one candidate, the largest contributions first."""
        columns = self.largest(number, len(self.feature_names))
        moved = self.contributions[number]
        return {
            "mean_score": float(self.means[number]),
            "contributions": {self.feature_names[column]: float(moved[column]) for column in columns},
            "gap": float(self.gaps[number]),
            "complete": bool(self.complete[number]),
            **({} if self.errors is None else {"largest_error": float(self.errors[number].max(initial=0.0))}),
        }


@dataclass(frozen=True, eq=False)
class RankedList:
    """A list of which some candidates are to be explained."""

    number: int
    start: int
    """The row of its first candidate."""
    features: Floats
    scores: Doubles
    rows: Integers
    """Those to explain, the best first."""
    allowed: float
    """The largest gap."""


Moves = tuple[Doubles, Doubles | None]
"""Contributions and, if they were sampled, their standard errors, each [explained, features]."""


def explain_lists(
    contribute: Callable[[RankedList], Moves],
    lists: Sequence[RankedList],
    *,
    names: Sequence[str],
    how: str,
    note: str = "",
) -> Explanation:
    """The explanation of the candidates of some lists that are to be explained."""
    found = [contribute(each) for each in lists]
    lengths = [len(each.rows) for each in lists]

    def of_lists(values: list[float]) -> Doubles:
        return np.repeat(np.asarray(values, dtype=np.float64), lengths)

    nothing = np.zeros((0, len(names)))
    errors = [each for _, each in found if each is not None]
    return Explanation(
        feature_names=tuple(names),
        how=how,
        candidates=np.concatenate([*(each.start + each.rows for each in lists), np.zeros(0, np.int64)]),
        lists=np.repeat(np.array([each.number for each in lists], dtype=np.int64), lengths),
        ranks=np.concatenate([*(np.arange(length) + 1 for length in lengths), np.zeros(0, np.int64)]),
        scores=np.concatenate([*(each.scores[each.rows] for each in lists), np.zeros(0)]),
        means=of_lists([float(each.scores.mean()) for each in lists]),
        contributions=np.concatenate([*(moves for moves, _ in found), nothing]),
        errors=np.concatenate(errors) if errors else None,
        allowed=of_lists([each.allowed for each in lists]),
        note=note,
    )


def ranked_lists(scores: Floats, features: Floats, offsets: Integers, *, top: int | None = None) -> list[RankedList]:
    """The lists that are not empty, their best `top` candidates to be explained, by default all."""
    found = []
    for number, (start, end) in enumerate(pairwise(offsets.tolist())):
        if start < end:
            own = scores[start:end].astype(np.float64)
            rows = np.argsort(-own, kind="stable")[:top]
            allowed = TOLERANCE * float(np.ptp(own)) + ROUNDING * float(np.abs(own).max())
            found.append(RankedList(number, start, features[start:end], own, rows, allowed))
    return found

"""The check that an exported ranker scores as the model does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Floats
from ultr.data.categories import UNSEEN
from ultr.data.judged import JudgedLists
from ultr.errors import ExportError
from ultr.evaluation.judged import RankerLike
from ultr.metrics import kendall_tau, mean

LARGEST, SMALLEST_TAU = 1e-3, 0.999
"""Largest difference of scores, in standard deviations of all scores, and smallest agreement of their orders."""
DIGITS = 1e-5
"""Difference of scores that is allowed in any case, as a share of the largest."""
EXCHANGED = 0.002
"""Share of documents whose rank may differ by one: of two with nearly the same score, rounding decides."""
BLANK = 0.1
"""The share of features that are missing where that is checked."""


@dataclass(frozen=True)
class Parity:
    """Scores of the exported ranker against those of the model on real candidates."""

    queries: int
    documents: int
    largest_difference: float
    spread: float
    """The standard deviation of the model's scores, to see the largest difference in proportion."""
    size: float
    """The largest of the model's scores, whatever its sign."""
    kendall_tau: float
    """The mean over queries; scores that differ in no digit that counts are taken for equal."""
    missing_difference: float
    """The largest difference where a tenth of the features is missing and values of categories are unknown."""

    def check(self) -> None:
        """Raise an `ExportError` unless both score alike."""
        # Scores that are all alike have no spread, and still only so many digits.
        bound = max(LARGEST * self.spread, DIGITS * self.size)
        # Written so that NaN does not pass.
        if not (max(self.largest_difference, self.missing_difference) <= bound and self.kendall_tau >= SMALLEST_TAU):
            raise ExportError(
                f"the exported ranker disagrees with the model: scores differ by up to {self.largest_difference:.2g} "
                f"({self.missing_difference:.2g} with missing features), allowed are {bound:.2g}, and Kendall's tau is "
                f"{self.kendall_tau:.4f}; nothing was written, please report this"
            )


def parity(
    model: RankerLike,
    exported: RankerLike,
    lists: JudgedLists,
    *,
    categorical: Sequence[int] = (),
    by_rank: bool = False,
) -> Parity:
    """Both rankers on these candidates, and on them with a tenth of the features blanked out.

    Of categorical features, another tenth is a value that was never seen there. Scores `by_rank` are minus the ranks of
    documents, of which a few may change places with a neighbour.
    """
    wanted = model.score(lists.features, lists.offsets)
    found = exported.score(lists.features, lists.offsets)
    drawn = np.random.default_rng(0).random(lists.features.shape)
    blanked = np.where(drawn < BLANK, np.float32("nan"), lists.features)
    for column in categorical:
        blanked[drawn[:, column] > 1 - BLANK, column] = UNSEEN
    filled, guessed = (each.score(blanked, lists.offsets) for each in (model, exported))
    size = float(np.abs(wanted).max())
    # Equal candidates, whose scores only rounding tells apart, may change places.
    same = np.abs(found - wanted) <= DIGITS * size
    taus = kendall_tau(wanted, np.where(same, wanted, found), lists.offsets)
    return Parity(
        queries=lists.queries,
        documents=lists.documents,
        largest_difference=_largest(found, wanted, by_rank=by_rank),
        spread=float(wanted.std()),
        size=size,
        kendall_tau=1.0 if np.isnan(taus).all() else mean(taus),
        missing_difference=_largest(guessed, filled, by_rank=by_rank),
    )


def _largest(found: Floats, wanted: Floats, *, by_rank: bool) -> float:
    differences = np.abs(found - wanted)
    if by_rank and (differences > 0).mean() <= EXCHANGED:
        differences = np.where(differences <= 1, 0, differences)
    return float(differences.max())

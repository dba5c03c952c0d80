"""The protocol of click models, and the pieces that several of them share."""

from __future__ import annotations

from typing import Final, Protocol, runtime_checkable

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers, Mask
from ultr.errors import DataError, OptionError

EXAMINATION: Final = (0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06)
"""Examination by position, measured by eye tracking.

Joachims et al., Accurately Interpreting Clickthrough Data as Implicit Feedback, SIGIR 2005.
"""


@runtime_checkable
class ClickModel(Protocol):
    """Clicks of users on a shown list whose grades are known.

    Everywhere, `labels` holds one shown list a row, in shown order, filled up with -1 at the end where no
    document was shown. It may have fewer columns than the model has positions.
    """

    @property
    def name(self) -> str:
        """The name in the registry."""

    @property
    def positions(self) -> int:
        """Number of shown positions that the model knows."""

    def probabilities(self, labels: Integers, *, max_label: int) -> Doubles:
        """The exact marginal click probability of each shown document; 0 where no document was shown."""

    def counts(
        self, labels: Integers, impressions: Integers, generator: np.random.Generator, *, max_label: int
    ) -> Integers:
        """The clicks of `impressions[i]` independent sessions of list `i`, added up.

        The counts come from their exact joint distribution without a loop over the sessions, so the cost does
        not depend on the number of impressions.
        """

    def sessions(self, labels: Integers, generator: np.random.Generator, *, max_label: int) -> Mask:
        """The clicks of one session of each list."""


def relevance(labels: Integers, *, max_label: int, noise: float = 0.0) -> Doubles:
    """The probability that a document of each grade is found relevant.

    `noise + (1 - noise) (2^y - 1) / (2^max_label - 1)` (Chapelle et al., CIKM 2009, with the noise floor of
    Ai et al., SIGIR 2018).

    >>> relevance(np.arange(5), max_label=4, noise=0.1).round(2).tolist()
    [0.1, 0.16, 0.28, 0.52, 1.0]
    """
    top = checks.integer("max_label", max_label, at_least=1)
    grades: Doubles = np.expm1(np.asarray(labels) * np.log(2.0)) / np.expm1(top * np.log(2.0))
    return noise + (1 - noise) * grades


def checked_labels(labels: Integers, *, max_label: int, positions: int) -> Integers:
    """`labels` as an array, or an error that says why they are not shown lists of this many positions."""
    checks.integer("max_label", max_label, at_least=1)
    grades = np.asarray(labels)
    if grades.ndim != 2 or not np.issubdtype(grades.dtype, np.integer):
        raise DataError(f"labels must be integers [lists, positions], got {grades.dtype} {list(grades.shape)}")
    if grades.shape[1] > positions:
        raise OptionError(f"the click model knows {positions} positions, but {grades.shape[1]} were shown")
    lowest, highest = (int(grades.min()), int(grades.max())) if grades.size else (0, 0)
    if lowest < -1 or highest > max_label:
        raise DataError(f"labels must lie in 0..{max_label} (-1 = no document), got {lowest}..{highest}")
    if lowest < 0 and ((grades[:, :-1] < 0) & (grades[:, 1:] >= 0)).any():
        raise DataError("labels may only be -1 at the end of a list")
    return grades


def checked_impressions(impressions: Integers, *, lists: int) -> Integers:
    """`impressions` as an array, or an error if they are not one count for each list."""
    counts = np.asarray(impressions)
    if counts.shape != (lists,) or not np.issubdtype(counts.dtype, np.integer):
        raise DataError(f"impressions must be one integer for each of {lists} lists")
    if lists and counts.min() < 0:
        raise DataError(f"impressions cannot be negative, got {counts.min()}")
    return counts


def picked(by_grade: Doubles, labels: Integers) -> Doubles:
    """The entries of a table [grades, positions] for the documents of shown lists; 0 where there is no document."""
    padded = np.concatenate([by_grade, np.zeros_like(by_grade[:1])])
    return padded[labels, np.arange(labels.shape[1])]

"""Users whose attention depends on the position and on how far above they clicked last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ultr.arrays import Doubles, Integers, Mask
from ultr.clicks import parameters
from ultr.clicks.examination_chain import Array
from ultr.clicks.model import EXAMINATION, checked_impressions, checked_labels, picked, relevance


def by_distance(curve: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    """The examination table `gamma[last, p] = curve at the distance p - last`.

    >>> by_distance((0.5, 0.2))
    ((0.5, 0.2), (0.0, 0.5))
    """
    count = len(curve)
    return tuple(
        tuple(curve[position - last - 1] if position > last else 0.0 for position in range(1, count + 1))
        for last in range(count)
    )


@dataclass(frozen=True)
class UserBrowsing:
    """The user browsing model: `P(click at p | last click at l) = gamma[l, p] a_p`.

    `a` is the `relevance` of the document and `l` is the last clicked position above `p`, 0 if there is none.
    Dupret and Piwowarski, A User Browsing Model to Predict Search Engine Click Data from Past Observations,
    SIGIR 2008. By default `gamma[l, p]` is the examination curve of Joachims et al., SIGIR 2005, at the
    distance `p - l`: a click starts the curve anew.

    >>> UserBrowsing(noise=0).probabilities(np.array([[4, 4]]), max_label=4).round(4).tolist()
    [[0.68, 0.6576]]
    """

    name: ClassVar[str] = "user-browsing"

    noise: float = 0.1
    """The attraction of grade 0."""
    examination: tuple[tuple[float, ...], ...] = by_distance(EXAMINATION)
    """`gamma`: a row for each last clicked position 0..n-1, a column for each position 1..n.

    Only the cells with `last < position` are used.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", parameters.probability("noise", self.noise))
        object.__setattr__(self, "examination", parameters.table("examination", self.examination, square=True))

    @property
    def positions(self) -> int:
        """The number of columns of the examination table."""
        return len(self.examination)

    def probabilities(self, labels: Integers, *, max_label: int) -> Doubles:
        """The exact marginal click probability of each shown document."""
        attraction = self._attraction(labels, max_label)
        return self._followed(np.ones(len(attraction)), attraction, np.multiply)

    def counts(
        self, labels: Integers, impressions: Integers, generator: np.random.Generator, *, max_label: int
    ) -> Integers:
        """The clicks of `impressions[i]` sessions of list `i`, which are counted by their last click."""
        attraction = self._attraction(labels, max_label)
        readers = checked_impressions(impressions, lists=len(attraction)).astype(np.int64)
        return self._followed(readers, attraction, generator.binomial)

    def sessions(self, labels: Integers, generator: np.random.Generator, *, max_label: int) -> Mask:
        """The clicks of one session of each list."""
        attraction, gamma = self._attraction(labels, max_label), np.array(self.examination)
        clicks = np.zeros(attraction.shape, dtype=np.bool_)
        last = np.zeros(len(clicks), dtype=np.int64)
        for position, attracted in enumerate(attraction.T):
            clicks[:, position] = clicked = generator.random(len(clicks)) < gamma[last, position] * attracted
            last[clicked] = position + 1
        return clicks

    def _followed(self, readers: Array, attraction: Doubles, share: Callable[[Array, Doubles], Array]) -> Array:
        """The clicks of readers of each list, counted by their last click; `share` gives how many of some click."""
        gamma, clicks = np.array(self.examination), np.zeros(attraction.shape, dtype=readers.dtype)
        # last[:, l] are those whose last click so far was at position l.
        last = np.concatenate([readers[:, None], np.zeros_like(clicks)], axis=1)
        for position in range(attraction.shape[1]):
            above = slice(0, position + 1)
            click = share(last[:, above], gamma[above, position] * attraction[:, position, None])
            last[:, above] -= click
            last[:, position + 1] = clicks[:, position] = click.sum(axis=1)
        return clicks

    def _attraction(self, labels: Integers, max_label: int) -> Doubles:
        grades = checked_labels(labels, max_label=max_label, positions=self.positions)
        attraction = relevance(np.arange(max_label + 1), max_label=max_label, noise=self.noise)
        return picked(np.repeat(attraction[:, None], self.positions, axis=1), grades)

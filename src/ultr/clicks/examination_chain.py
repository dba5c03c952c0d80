"""Models of users who read from the top and stop somewhere: cascade, dependent click, dynamic Bayesian."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ultr.arrays import Doubles, Integers, Mask
from ultr.clicks.model import checked_impressions, checked_labels, picked

Array = TypeVar("Array", Doubles, Integers)


@dataclass(frozen=True, eq=False)
class Chain:
    """The chances of a reader who has just looked at a document, each [grades, positions] or broadcast to it."""

    click: Doubles
    """P(click | examined)."""
    after_click: Doubles | float
    """P(examines the next | examined and clicked)."""
    after_skip: Doubles | float
    """P(examines the next | examined and not clicked)."""


class ExaminationChain(ABC):
    """The first document is always examined, and each next one only if the one before was.

    Whether the reader goes on depends on the click, the grade and the position, so the number of readers at a
    position is all that the positions below need to know about the ones above.
    """

    @property
    @abstractmethod
    def positions(self) -> int:
        """Number of shown positions that the model knows."""

    @abstractmethod
    def chain(self, max_label: int) -> Chain:
        """The chances of the model at each grade and position."""

    def probabilities(self, labels: Integers, *, max_label: int) -> Doubles:
        """The exact marginal click probability of each shown document."""
        chances = self._chances(labels, max_label)
        return _followed(np.ones(chances.shape[1]), chances, np.multiply)

    def counts(
        self, labels: Integers, impressions: Integers, generator: np.random.Generator, *, max_label: int
    ) -> Integers:
        """The clicks of `impressions[i]` sessions of list `i`: the readers are split position by position."""
        chances = self._chances(labels, max_label)
        readers = checked_impressions(impressions, lists=chances.shape[1]).astype(np.int64)
        return _followed(readers, chances, generator.binomial)

    def sessions(self, labels: Integers, generator: np.random.Generator, *, max_label: int) -> Mask:
        """The clicks of one session of each list."""
        chances = self._chances(labels, max_label)
        clicks = np.zeros(chances.shape[1:], dtype=np.bool_)
        reading = np.ones(len(clicks), dtype=np.bool_)
        for position, (click, after_click, after_skip) in enumerate(np.moveaxis(chances, 2, 0)):
            clicks[:, position] = clicked = reading & (generator.random(len(clicks)) < click)
            reading &= generator.random(len(clicks)) < np.where(clicked, after_click, after_skip)
        return clicks

    def _chances(self, labels: Integers, max_label: int) -> Doubles:
        """The three chances of each shown document, [3, lists, positions]."""
        grades = checked_labels(labels, max_label=max_label, positions=self.positions)
        chain, shape = self.chain(max_label), (max_label + 1, self.positions)
        tables = (chain.click, chain.after_click, chain.after_skip)
        return np.stack([picked(np.broadcast_to(table, shape), grades) for table in tables])


def _followed(readers: Array, chances: Doubles, share: Callable[[Array, Doubles], Array]) -> Array:
    """The clicks of readers of each list, who are split at each position: `share` gives how many of some go one way."""
    clicks = np.zeros(chances.shape[1:], dtype=readers.dtype)
    for position, (click, after_click, after_skip) in enumerate(np.moveaxis(chances, 2, 0)):
        clicks[:, position] = clicked = share(readers, click)
        readers = share(clicked, after_click) + share(readers - clicked, after_skip)
    return clicks

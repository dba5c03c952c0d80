"""Models of users who read from the top and stop somewhere: cascade, dependent click, dynamic Bayesian."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Integers, Mask
from ultr.clicks.model import checked_impressions, checked_labels, with_padding


@dataclass(frozen=True, eq=False)
class Chain:
    """The chances of a reader who has just looked at a document, each [grades, positions]."""

    click: Doubles
    """P(click | examined)."""
    after_click: Doubles
    """P(examines the next | examined and clicked)."""
    after_skip: Doubles
    """P(examines the next | examined and not clicked)."""

    def at(self, labels: Integers, position: int) -> tuple[Doubles, Doubles, Doubles]:
        """The three chances for documents of these grades (-1 = no document) at one position, from 0."""
        tables = (self.click, self.after_click, self.after_skip)
        click, after_click, after_skip = (with_padding(table[:, position])[labels] for table in tables)
        return click, after_click, after_skip


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
        grades = checked_labels(labels, max_label=max_label, positions=self.positions)
        chain = self.chain(max_label)
        marginals = np.zeros(grades.shape)
        examined = np.ones(len(grades))
        for position in range(grades.shape[1]):
            click, after_click, after_skip = chain.at(grades[:, position], position)
            marginals[:, position] = examined * click
            examined = examined * (click * after_click + (1 - click) * after_skip)
        return marginals

    def counts(
        self, labels: Integers, impressions: Integers, generator: np.random.Generator, *, max_label: int
    ) -> Integers:
        """The clicks of `impressions[i]` sessions of list `i`: the readers are split position by position."""
        grades = checked_labels(labels, max_label=max_label, positions=self.positions)
        readers = checked_impressions(impressions, lists=len(grades))
        chain = self.chain(max_label)
        clicks = np.zeros(grades.shape, dtype=np.int64)
        for position in range(grades.shape[1]):
            click, after_click, after_skip = chain.at(grades[:, position], position)
            clicked = generator.binomial(readers, click)
            clicks[:, position] = clicked
            readers = generator.binomial(clicked, after_click) + generator.binomial(readers - clicked, after_skip)
        return clicks

    def sessions(self, labels: Integers, generator: np.random.Generator, *, max_label: int) -> Mask:
        """The clicks of one session of each list."""
        grades = checked_labels(labels, max_label=max_label, positions=self.positions)
        chain = self.chain(max_label)
        clicks = np.zeros(grades.shape, dtype=np.bool_)
        reading = np.ones(len(grades), dtype=np.bool_)
        for position in range(grades.shape[1]):
            click, after_click, after_skip = chain.at(grades[:, position], position)
            clicked = reading & (generator.random(len(grades)) < click)
            clicks[:, position] = clicked
            reading &= generator.random(len(grades)) < np.where(clicked, after_click, after_skip)
        return clicks

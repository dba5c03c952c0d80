"""Models whose clicks do not depend on each other once the shown list is known."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ultr.arrays import Doubles, Integers, Mask
from ultr.clicks.model import checked_impressions, checked_labels, picked


class IndependentClicks(ABC):
    """A click probability for each grade and position; clicks on one list are independent of each other."""

    @property
    @abstractmethod
    def positions(self) -> int:
        """Number of shown positions that the model knows."""

    @abstractmethod
    def rates(self, max_label: int) -> Doubles:
        """[grades, positions], the click probability of a document of each grade at each position."""

    def probabilities(self, labels: Integers, *, max_label: int) -> Doubles:
        """The exact click probability of each shown document."""
        grades = checked_labels(labels, max_label=max_label, positions=self.positions)
        return picked(self.rates(max_label), grades)

    def counts(
        self, labels: Integers, impressions: Integers, generator: np.random.Generator, *, max_label: int
    ) -> Integers:
        """The clicks of `impressions[i]` sessions of list `i`: one binomial number for each document."""
        rates = self.probabilities(labels, max_label=max_label)
        shown = checked_impressions(impressions, lists=len(rates))
        return generator.binomial(shown[:, None], rates)

    def sessions(self, labels: Integers, generator: np.random.Generator, *, max_label: int) -> Mask:
        """The clicks of one session of each list."""
        rates = self.probabilities(labels, max_label=max_label)
        return generator.random(rates.shape) < rates

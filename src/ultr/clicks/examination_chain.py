"""Models of users who read from the top and stop somewhere: cascade, dependent click, dynamic Bayesian."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from ultr import checks
from ultr.arrays import Doubles, Integers, Mask
from ultr.clicks import parameters
from ultr.clicks.model import checked_impressions, checked_labels, picked, relevance

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


@dataclass(frozen=True)
class Cascade(ExaminationChain):
    """The cascade model: `P(click at p) = a_p prod_{i < p} (1 - a_i)`, with the attraction `a` = `relevance`.

    A session has at most one click. Craswell et al., An Experimental Comparison of Click Position-Bias
    Models, WSDM 2008.

    >>> Cascade().probabilities(np.array([[0, 0, 4, 4]]), max_label=4).round(4).tolist()
    [[0.1, 0.09, 0.81, 0.0]]
    """

    name: ClassVar[str] = "cascade"

    noise: float = 0.1
    """The attraction of grade 0."""
    positions: int = 10
    """Number of shown positions."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", parameters.probability("noise", self.noise))
        checks.integer("positions", self.positions, at_least=1)

    def chain(self, max_label: int) -> Chain:
        """A click ends the session, a skip never does."""
        attraction = relevance(np.arange(max_label + 1), max_label=max_label, noise=self.noise)
        return Chain(attraction[:, None], after_click=0.0, after_skip=1.0)


@dataclass(frozen=True)
class DependentClick(ExaminationChain):
    """The dependent click model: after a click at `p` the user reads on with `lambda_p`, after a skip always.

    `P(E_1) = 1`, `P(click | E_p) = a_p`, `P(E_p+1 | E_p, click) = lambda_p`, `P(E_p+1 | E_p, no click) = 1`,
    with the attraction `a` = `relevance`. Guo et al., Efficient Multiple-Click Models in Web Search, WSDM
    2009.

    >>> DependentClick(noise=0).probabilities(np.array([[4, 4, 4]]), max_label=4).round(4).tolist()
    [[1.0, 0.6, 0.36]]
    """

    name: ClassVar[str] = "dependent-click"

    noise: float = 0.1
    """The attraction of grade 0."""
    continuation: tuple[float, ...] = (0.6,) * 10
    """`lambda_p`, by position; the default is a round number of ours, not a measurement."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", parameters.probability("noise", self.noise))
        object.__setattr__(self, "continuation", parameters.vector("continuation", self.continuation))

    @property
    def positions(self) -> int:
        """The number of continuation probabilities."""
        return len(self.continuation)

    def chain(self, max_label: int) -> Chain:
        """A click may end the session, a skip never does."""
        attraction = relevance(np.arange(max_label + 1), max_label=max_label, noise=self.noise)
        return Chain(attraction[:, None], after_click=np.array(self.continuation), after_skip=1.0)


@dataclass(frozen=True)
class DynamicBayesian(ExaminationChain):
    """The dynamic Bayesian network model: a click may satisfy, and an unsatisfied user reads on with `gamma`.

    `P(E_1) = 1`, `P(click | E_p) = a_p`, `P(satisfied | click) = s_p`, `P(E_p+1 | E_p, satisfied) = 0`,
    `P(E_p+1 | E_p, not satisfied) = gamma`, with the attraction `a` = `relevance` and `s` = `satisfaction`
    times the relevance without noise. Chapelle and Zhang, A Dynamic Bayesian Network Click Model for Web
    Search Ranking, WWW 2009; the defaults are round numbers of ours, not measurements.

    >>> model = DynamicBayesian(noise=0, satisfaction=0.5, persistence=0.8)
    >>> model.probabilities(np.array([[4, 4, 4]]), max_label=4).round(4).tolist()
    [[1.0, 0.4, 0.16]]
    """

    name: ClassVar[str] = "dynamic-bayesian"

    noise: float = 0.1
    """The attraction of grade 0."""
    satisfaction: float = 0.9
    """Probability that a clicked document of the highest grade ends the search."""
    persistence: float = 0.9
    """`gamma`, the probability that an unsatisfied user reads on."""
    positions: int = 10
    """Number of shown positions."""

    def __post_init__(self) -> None:
        for field in ("noise", "satisfaction", "persistence"):
            object.__setattr__(self, field, parameters.probability(field, getattr(self, field)))
        checks.integer("positions", self.positions, at_least=1)

    def chain(self, max_label: int) -> Chain:
        """Satisfaction ends the session, and so does lost patience, clicked or not."""
        grades = np.arange(max_label + 1)[:, None]
        click = relevance(grades, max_label=max_label, noise=self.noise)
        satisfied = self.satisfaction * relevance(grades, max_label=max_label)
        return Chain(click, after_click=self.persistence * (1 - satisfied), after_skip=self.persistence)

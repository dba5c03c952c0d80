"""Users who look at a position with a fixed chance, whatever is shown there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ultr.arrays import Doubles
from ultr.clicks import parameters
from ultr.clicks.independent import IndependentClicks
from ultr.clicks.model import EXAMINATION, relevance


@dataclass(frozen=True)
class PositionBased(IndependentClicks):
    """The position-based model: `P(click) = theta_p g_y`.

    `g_y` is `relevance`, `theta_p` the examination of position `p`. Craswell et al., An Experimental
    Comparison of Click Position-Bias Models, WSDM 2008; the examination curve of Joachims et al., SIGIR 2005.

    >>> PositionBased().probabilities(np.array([[4, 0]]), max_label=4).round(4).tolist()
    [[0.68, 0.061]]
    """

    name: ClassVar[str] = "position-based"

    noise: float = 0.1
    """The relevance of grade 0."""
    examination: tuple[float, ...] = EXAMINATION
    """`theta_p`, by position."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", parameters.probability("noise", self.noise))
        object.__setattr__(self, "examination", parameters.vector("examination", self.examination))

    @property
    def positions(self) -> int:
        """The length of the examination curve."""
        return len(self.examination)

    def taken(self, max_label: int) -> Doubles:
        """[grades, positions], the probability that an examined document is clicked."""
        grade = relevance(np.arange(max_label + 1), max_label=max_label, noise=self.noise)
        return np.repeat(grade[:, None], self.positions, axis=1)

    def rates(self, max_label: int) -> Doubles:
        """[grades, positions], the click probability of a document of each grade at each position."""
        return np.array(self.examination) * self.taken(max_label)

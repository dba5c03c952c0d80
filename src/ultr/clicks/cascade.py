"""Users who read from the top and leave with their first click."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ultr import checks
from ultr.clicks import parameters
from ultr.clicks.examination_chain import Chain, ExaminationChain
from ultr.clicks.model import relevance


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

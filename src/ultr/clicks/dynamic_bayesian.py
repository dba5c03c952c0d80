"""Users who read from the top until a clicked document satisfies them or their patience ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ultr import checks
from ultr.clicks import parameters
from ultr.clicks.examination_chain import Chain, ExaminationChain
from ultr.clicks.model import relevance


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

"""Users who read from the top and may go on after a click."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ultr.clicks import parameters
from ultr.clicks.examination_chain import Chain, ExaminationChain
from ultr.clicks.model import relevance


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

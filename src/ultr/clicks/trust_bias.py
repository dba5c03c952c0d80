"""Users who trust high positions: they also click what they would not find relevant lower down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ultr.arrays import Doubles
from ultr.clicks import parameters
from ultr.clicks.model import relevance
from ultr.clicks.position_based import PositionBased


@dataclass(frozen=True)
class TrustBias(PositionBased):
    """The trust-bias model: `P(click) = theta_p (e+_p g_y + e-_p (1 - g_y))`.

    `g_y` is `relevance`, `theta_p` the examination of position `p`, `e+_p` (`e-_p`) the chance that an
    examined (ir)relevant document is taken for relevant there. Agarwal et al., Addressing Trust Bias for
    Unbiased Learning-to-Rank, WWW 2019; the defaults `e+_p = 1 - (p + 1) / 100` and `e-_p = 0.65 / p` as in
    Vardasbi et al., When Inverse Propensity Scoring does not Work, CIKM 2020, and Chen et al., Scalar is Not
    Enough, KDD 2022.

    >>> TrustBias().probabilities(np.array([[0, 4]]), max_label=4).round(4).tolist()
    [[0.442, 0.5917]]
    """

    name: ClassVar[str] = "trust"

    noise: float = 0.0
    """The relevance of grade 0; 0.1 is what the code released with the KDD 2022 paper uses."""
    relevant_taken: tuple[float, ...] = tuple(1 - (p + 1) / 100 for p in range(1, 11))
    """`e+_p`, by position."""
    irrelevant_taken: tuple[float, ...] = tuple(0.65 / p for p in range(1, 11))
    """`e-_p`, by position."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("relevant_taken", "irrelevant_taken"):
            values = parameters.vector(field, getattr(self, field), length=self.positions)
            object.__setattr__(self, field, values)

    def taken(self, max_label: int) -> Doubles:
        """[grades, positions], the probability that an examined document is clicked."""
        grade = relevance(np.arange(max_label + 1), max_label=max_label, noise=self.noise)[:, None]
        return np.array(self.relevant_taken) * grade + np.array(self.irrelevant_taken) * (1 - grade)

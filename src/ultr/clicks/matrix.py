"""Clicks straight from a measured table of click rates by grade and position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ultr.arrays import Doubles
from ultr.clicks import parameters
from ultr.clicks.independent import IndependentClicks
from ultr.errors import OptionError

# fmt: off
TIANGONG = (
    (0.5905310300703774, 0.08679370891237413, 0.08582901120963694, 0.06621880998080615, 0.022320057335927103,
     0.00340866052266128, 0.004, 0.0023244062657908036, 0.001467682754727632, 0.002285600715492398),
    (0.4962264150943396, 0.15181518151815182, 0.014456379881537999, 0.0669090909090909, 0.0037186638456113354,
     0.006607201850016518, 0.005154639175257732, 0.0030540432877439916, 0.002560204816385311,
     0.002573529411764706),
    (0.5416453755748595, 0.09721024998040906, 0.03520277400874416, 0.021631205673758865, 0.01422913304972862,
     0.00721659817580435, 0.011511092507325241, 0.014282757193127717, 0.00854474398887196,
     0.004123014531936465),
    (0.6114125678277612, 0.12385946512847404, 0.07420938463294896, 0.029114099542492722, 0.055367057371992594,
     0.050325850832729904, 0.004773751092583877, 0.007993605115907274, 0.028296019900497512,
     0.014935391844269173),
    (0.7420619071392911, 0.1626205520452278, 0.2419871794871795, 0.039746543778801845, 0.013888888888888888,
     0.03205128205128205, 0.008333333333333333, 0.002058264724509183, 0.00975609756097561,
     0.003931847968545216),
)
"""Click rates of TianGong-ST by relevance level 0..4 (rows) and position 1..10 (columns)."""
# fmt: on


@dataclass(frozen=True)
class ClickMatrix(IndependentClicks):
    """The click rate of a grade at a position, read from a table: `P(click) = A[row(y), p]`.

    By default `A` is what was measured on TianGong-ST (Chen et al., TianGong-ST: A New Dataset with
    Large-scale Refined Real-world Web Search Sessions, CIKM 2019), the "real click" setting of Chen et al.,
    Scalar is Not Enough: Vectorization-based Unbiased Learning to Rank, KDD 2022. Mind its limits: on
    average, grade 0 is clicked more than grades 1 and 2 there.

    Fewer grades than rows are spread evenly, `row(y) = round(y (rows - 1) / max_label)`: three grades use
    rows 0, 2 and 4.

    >>> ClickMatrix().probabilities(np.array([[0, 4, -1]]), max_label=4).round(4).tolist()
    [[0.5905, 0.1626, 0.0]]
    """

    name: ClassVar[str] = "real"

    matrix: tuple[tuple[float, ...], ...] = TIANGONG
    """Click probabilities by grade (rows) and position (columns)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", parameters.table("matrix", self.matrix))

    @property
    def positions(self) -> int:
        """The number of columns."""
        return len(self.matrix[0])

    def rates(self, max_label: int) -> Doubles:
        """[grades, positions], the rows of the matrix that the grades map to."""
        rows = len(self.matrix)
        if not 1 <= max_label < rows:
            raise OptionError(
                f"a click matrix of {rows} rows serves data with a highest grade of 1..{rows - 1}, "
                f"got {max_label}; regrade the data or give a matrix with more rows"
            )
        # Not np.round, which takes halves to the even neighbour.
        row = np.floor(np.arange(max_label + 1) * (rows - 1) / max_label + 0.5).astype(np.int64)
        return np.array(self.matrix)[row]

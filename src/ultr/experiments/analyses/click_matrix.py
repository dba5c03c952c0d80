"""Click rates by grade and position, and how far they are from a product of two numbers."""

from __future__ import annotations

from functools import partial

import numpy as np

from ultr.clicks.independent import IndependentClicks
from ultr.clicks.registry import click_model
from ultr.errors import OptionError
from ultr.experiments.experiment import Experiment
from ultr.experiments.tables import figure
from ultr.pages import Draw, Section, Table, figures

NOTES = (
    "If clicks were observation times relevance, two numbers, the matrix would have rank 1 and all singular values but "
    "the first would be 0. The paper prints 1.40 0.15 0.07 0.06 0.03 for the real clicks.\n\n"
    "Share: how much of the sum of squares the first so many singular values hold."
)
GRADES = 5


def click_matrix(experiment: Experiment) -> Section:
    """The matrix of each click model and its singular values."""
    written: list[Table] = []
    content = []
    drawn: dict[str, Draw] = {}
    for clicks in experiment.spec.clicks:
        model = click_model(clicks)
        if not isinstance(model, IndependentClicks):
            raise OptionError(
                f"the clicks of {clicks} depend on each other, so that they have no matrix; choose others"
            )
        matrix = model.rates(GRADES - 1)
        values = np.linalg.svd(matrix, compute_uv=False).astype(np.float64)
        shares = np.cumsum(values**2) / np.sum(values**2)
        written += [
            Table.of_cells(
                f"{clicks} clicks: click rate by grade and position",
                "grade",
                {str(grade): [figure(rate) for rate in row] for grade, row in enumerate(matrix)},
                [str(place) for place in range(1, matrix.shape[1] + 1)],
            ),
            Table(
                f"{clicks} clicks: singular values",
                [
                    {"rank": str(rank), "singular value": f"{value:.4f}", "share": f"{share:.2%}"}
                    for rank, (value, share) in enumerate(zip(values, shares, strict=True), start=1)
                ],
            ),
        ]
        content.append({"clicks": clicks, "matrix": matrix.tolist(), "singular_values": values.tolist()})
        drawn[f"{clicks} clicks"] = partial(figures.rate_map, matrix, rows=range(len(matrix)), ylabel="grade")
        drawn[f"{clicks} clicks: singular values"] = partial(figures.singular_values, values)
    return Section(experiment.spec.title, NOTES, tables=written, figures=drawn, numbers=content)

"""How quality changes with the dimension of the vectors, as the paper's figure."""

from __future__ import annotations

from ultr.experiments import plots
from ultr.experiments.analyses.table import all_results, in_tables
from ultr.experiments.experiment import Experiment
from ultr.experiments.findings import Findings


def dimension(experiment: Experiment) -> Findings:
    """The table of all rankers, and a curve over the dimension for each click setting."""
    settings = all_results(experiment)
    figures = {f"{results[0].clicks}-clicks": plots.dimension_curve(results) for results in settings}
    return in_tables(experiment, settings, figures)

"""Analyses of the runs of an experiment, by name."""

from collections.abc import Callable

from ultr.experiments.analyses.click_matrix import click_matrix
from ultr.experiments.analyses.data_set import data_set
from ultr.experiments.analyses.embeddings import embeddings
from ultr.experiments.analyses.inference_time import inference_time
from ultr.experiments.analyses.projection import projection
from ultr.experiments.analyses.selection import selection
from ultr.experiments.analyses.table import dimension, table
from ultr.experiments.experiment import Experiment
from ultr.pages import Section

ANALYSES: dict[str, Callable[[Experiment], Section]] = {
    "table": table,
    "dimension": dimension,
    "embeddings": embeddings,
    "projection": projection,
    "inference-time": inference_time,
    "click-matrix": click_matrix,
    "data-set": data_set,
    "selection": selection,
}

__all__ = ["ANALYSES"]

"""Embeddings of a model of dimension 2: documents by grade, positions as directions, base vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from ultr.arrays import Doubles
from ultr.experiments.experiment import Experiment
from ultr.experiments.findings import Findings, file_name
from ultr.methods import load
from ultr.methods.vectorization import Embeddings
from ultr.pages import Table, model_figures

NOTES = (
    "Angle: the direction of each position's observation embedding, in degrees from the mean base vector. Documents "
    "are ranked by their projection on the base vector of their query.",
)


@dataclass(frozen=True, eq=False)
class Embedding:
    """The plane of one trained model."""

    clicks: str
    label: str
    relevance: Doubles
    """[test documents, 2]."""
    labels: Doubles
    observation: Doubles
    """[positions, 2]."""
    base: Doubles
    """[test queries, 2]."""


def embeddings(experiment: Experiment) -> Findings:
    """A scatter for each click setting, from the first seed and fold."""
    found = list(_planes(experiment))
    rows = [
        {
            "clicks": plane.clicks,
            "ranker": plane.label,
            **{str(place): f"{angle:.0f}°" for place, angle in enumerate(turned, start=1)},
        }
        for plane in found
        for turned in [model_figures.angles(plane.observation, plane.base)]
    ]
    content = [
        {
            "clicks": plane.clicks,
            "label": plane.label,
            "observation": plane.observation.tolist(),
            "mean_base": plane.base.mean(axis=0).tolist(),
            "mean_relevance_by_grade": [
                plane.relevance[plane.labels == grade].mean(axis=0).tolist() for grade in np.unique(plane.labels)
            ],
        }
        for plane in found
    ]
    drawn = {
        file_name(plane.clicks, plane.label): model_figures.plane(
            plane.relevance,
            plane.labels,
            plane.observation,
            plane.base,
            title=f"{plane.clicks} clicks: documents and positions",
        ).figure
        for plane in found
    }
    return Findings(experiment.spec.title, [Table("angle by position", rows)], NOTES, content, drawn)


def _planes(experiment: Experiment) -> Iterator[Embedding]:
    for clicks, contender in product(experiment.spec.clicks, experiment.contenders()):
        outcome = experiment.outcomes(contender, clicks, experiment.spec.validation[0])[0]
        ranker, test = load(outcome.model), outcome.run.source.read().test
        embeddings = Embeddings.of(ranker)
        assert embeddings is not None
        yield Embedding(
            clicks,
            contender.label,
            embeddings.relevance(test.features).astype(np.float64),
            test.labels.astype(np.float64),
            embeddings.observation()["position"].astype(np.float64),
            embeddings.base_vectors(test.features, test.offsets).astype(np.float64),
        )

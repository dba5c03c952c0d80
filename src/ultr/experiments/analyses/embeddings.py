"""What a model of dimension 2 learned: documents by grade, positions as directions, base vectors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from ultr.arrays import Doubles
from ultr.experiments import plots
from ultr.experiments.experiment import Experiment
from ultr.experiments.findings import Findings, TitledTable
from ultr.methods import load
from ultr.methods.vectorization import Embeddings
from ultr.reporting import figures

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

    def angles(self) -> Doubles:
        """Degrees from the mean base vector to each observation embedding."""
        turned = _degrees(self.observation) - _degrees(self.base.mean(axis=0, keepdims=True))
        return (turned + 180) % 360 - 180


def embeddings(experiment: Experiment) -> Findings:
    """A scatter for each click setting, from the first seed and fold."""
    found = list(_planes(experiment))
    rows = [
        {
            "clicks": plane.clicks,
            "ranker": plane.label,
            **{str(place): f"{angle:.0f}°" for place, angle in enumerate(plane.angles(), start=1)},
        }
        for plane in found
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
        plots.name(plane.clicks, plane.label): figures.plane(
            plane.relevance,
            plane.labels,
            plane.observation,
            plane.base,
            title=f"{plane.clicks} clicks: documents and positions",
        )
        for plane in found
    }
    return Findings(experiment.spec.title, [TitledTable("angle by position", rows)], NOTES, content, drawn)


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


def _degrees(vectors: Doubles) -> Doubles:
    return np.degrees(np.arctan2(vectors[:, 1], vectors[:, 0]))

"""Embeddings of a model of dimension 2: documents by grade, positions as directions, base vectors."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np

from ultr.experiments.experiment import Experiment
from ultr.methods import load
from ultr.methods.vector_objective import Embeddings
from ultr.pages import Draw, Section, Table, figures

NOTES = (
    "Angle: the direction of each position's observation embedding, in degrees from the mean base vector. Documents "
    "are ranked by their projection on the base vector of their query."
)


def embeddings(experiment: Experiment) -> Section:
    """A scatter for each click setting, from the first seed and fold."""
    rows, content = [], []
    drawn: dict[str, Draw] = {}
    for clicks, contender in product(experiment.spec.clicks, experiment.contenders()):
        outcome = experiment.outcomes(contender, clicks, experiment.spec.validation[0])[0]
        found, test = Embeddings.of(load(outcome.model)), outcome.run.source.read().test
        assert found is not None
        relevance = found.relevance(test.features).astype(np.float64)
        observation = found.observation()["position"].astype(np.float64)
        base = found.base_vectors(test.features, test.offsets).astype(np.float64)
        labels = test.labels.astype(np.float64)
        turned = figures.angles(observation, base)
        angles = {str(place): f"{angle:.0f}°" for place, angle in enumerate(turned, start=1)}
        rows.append({"clicks": clicks, "ranker": contender.label, **angles})
        content.append(
            {
                "clicks": clicks,
                "label": contender.label,
                "observation": observation.tolist(),
                "mean_base": base.mean(axis=0).tolist(),
                "mean_relevance_by_grade": [
                    relevance[labels == grade].mean(axis=0).tolist() for grade in np.unique(labels)
                ],
            }
        )
        caption = f"{clicks} clicks, {contender.label}"
        drawn[caption] = partial(figures.plane, relevance, labels, observation, base)
    tables = [Table("angle by position", rows)]
    return Section(experiment.spec.title, NOTES, tables=tables, figures=drawn, numbers=content)

"""Documents, positions and base vectors as directions of one plane, as in the paper's figure."""

from __future__ import annotations

from functools import partial

import numpy as np

from ultr.arrays import Doubles, Floats, Integers
from ultr.data import ragged
from ultr.pages import Draw, Section, figures
from ultr.reporting.inputs import ReportInputs

MOST_QUERIES = 500
TITLE = "Documents, positions and base vectors in one plane"


def plane(inputs: ReportInputs) -> Section | None:
    """A scatter for each model that has embeddings of two dimensions or more; None where there is none."""
    models = [(model.name, model.embeddings) for model in inputs.models if model.embeddings is not None]
    if not models:
        return None
    found = _documents(inputs)
    if found is None:
        return Section(TITLE, advice="This needs documents: give --log or --data.", name="plane")
    source, features, offsets, values, value_name = found
    drawn: dict[str, Draw] = {}
    numbers = {}
    for name, embeddings in models:
        relevance = embeddings.relevance(features).astype(np.float64)
        if relevance.shape[1] < 2:
            continue
        observation = embeddings.observation()["position"].astype(np.float64)
        base = embeddings.base_vectors(features, offsets).astype(np.float64)
        share, axis_names, note = 1.0, ("r₁", "r₂"), ""
        if relevance.shape[1] > 2:
            _, sizes, directions = np.linalg.svd(relevance, full_matrices=False)
            share = float((sizes[:2] ** 2).sum() / (sizes**2).sum())
            # Signs of singular vectors say nothing: base vectors point up and to the right.
            directions *= np.where(directions @ base.mean(axis=0) < 0, -1, 1)[:, np.newaxis]
            relevance, observation, base = (each @ directions[:2].T for each in (relevance, observation, base))
            axis_names = ("first direction", "second direction")
            note = f" The two directions hold {share:.0%} of the documents' sum of squares."
        vectors = relevance, values, observation, base
        drawn[name] = partial(figures.plane, *vectors, value_name=value_name, axis_names=axis_names, note=note)
        numbers[name] = {"share_of_two_directions": share}
    if not drawn:
        return None
    text = (
        f"Each dot is a document of {source}, shaded by its {value_name}. Clicks are the product of a document and an "
        "observation vector, so a position is a direction: the further a document lies along it, the more it is "
        "clicked there. A query's documents are ranked along its base vector. Vectors of more than two dimensions are "
        "shown in the two directions that hold most of the documents' sum of squares."
    )
    return Section(TITLE, text, figures=drawn, numbers=numbers, name="plane")


def _documents(inputs: ReportInputs) -> tuple[str, Floats, Integers, Doubles, str] | None:
    """Candidates of some queries: their source, features and offsets, and what they are shaded by, with its name."""
    if inputs.judged is not None:
        judged = inputs.judged.select(np.arange(min(MOST_QUERIES, inputs.judged.queries)))
        return inputs.judged_name, judged.features, judged.offsets, judged.labels.astype(np.float64), "grade"
    if inputs.log is None:
        return None
    log = inputs.log.select(np.sort(np.argsort(-inputs.log.impressions, kind="stable")[:MOST_QUERIES]))
    if log.grades is not None and (log.grades.values[log.documents] >= 0).all():
        values, name = log.grades.values[log.documents].astype(np.float64), "grade"
    else:
        values, name = log.clicks / log.impressions[ragged.list_numbers(log.offsets)], "click rate"
    return inputs.log_name, log.features[log.documents], log.offsets, values, name

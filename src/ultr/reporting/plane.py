"""Documents, positions and base vectors as directions of one plane, as in the paper's figure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ultr.arrays import Doubles, Floats, Integers
from ultr.data import ragged
from ultr.pages import Drawing, Section, model_figures
from ultr.reporting.inputs import ReportInputs
from ultr.reporting.model import Model
from ultr.reporting.report_section import ReportSection

MOST_QUERIES = 500
TITLE = "Documents, positions and base vectors in one plane"


def plane(inputs: ReportInputs) -> ReportSection | None:
    """A scatter for each model that has embeddings of two dimensions or more; None where there is none."""
    models = [model for model in inputs.models if model.embeddings is not None]
    if not models:
        return None
    documents = _ShadedDocuments.of(inputs)
    if documents is None:
        return ReportSection("plane", Section(TITLE, advice="This needs documents: give --log or --data."), {})
    drawings, numbers = [], {}
    for model in models:
        drawing, share = documents.drawing(model)
        if drawing is not None:
            drawings.append(drawing)
            numbers[model.name] = {"share_of_two_directions": share}
    if not drawings:
        return None
    text = (
        f"Each dot is a document of {documents.name}, shaded by its {documents.value_name}. Clicks are the product of "
        "a document and an observation vector, so a position is a direction: the further a document lies along it, the "
        "more it is clicked there. A query's documents are ranked along its base vector. Vectors of more than two "
        "dimensions are shown in the two directions that hold most of the documents' sum of squares."
    )
    return ReportSection("plane", Section(TITLE, text, drawings=drawings), numbers)


@dataclass(frozen=True, eq=False)
class _ShadedDocuments:
    """Candidates of some queries, and what they are shaded by."""

    name: str
    features: Floats
    offsets: Integers
    values: Doubles
    value_name: str

    @classmethod
    def of(cls, inputs: ReportInputs) -> _ShadedDocuments | None:
        if inputs.judged is not None:
            judged = inputs.judged.select(np.arange(min(MOST_QUERIES, inputs.judged.queries)))
            return cls(inputs.judged_name, judged.features, judged.offsets, judged.labels.astype(np.float64), "grade")
        if inputs.log is None:
            return None
        most = np.sort(np.argsort(-inputs.log.impressions, kind="stable")[:MOST_QUERIES])
        log = inputs.log.select(most)
        features = log.features[log.documents]
        if log.grades is not None and (log.grades.values[log.documents] >= 0).all():
            grades = log.grades.values[log.documents].astype(np.float64)
            return cls(inputs.log_name, features, log.offsets, grades, "grade")
        rates = log.clicks / log.impressions[ragged.list_numbers(log.offsets)]
        return cls(inputs.log_name, features, log.offsets, rates, "click rate")

    def drawing(self, model: Model) -> tuple[Drawing | None, float]:
        """The plane of a model, and how much of its documents' spread lies in it; None for one dimension."""
        embeddings = model.embeddings
        assert embeddings is not None
        relevance = embeddings.relevance(self.features).astype(np.float64)
        if relevance.shape[1] < 2:
            return None, 1.0
        observation = embeddings.observation()["position"].astype(np.float64)
        base = embeddings.base_vectors(self.features, self.offsets).astype(np.float64)
        share, names = 1.0, ("r₁", "r₂")
        if relevance.shape[1] > 2:
            _, sizes, directions = np.linalg.svd(relevance, full_matrices=False)
            share = float((sizes[:2] ** 2).sum() / (sizes**2).sum())
            relevance, observation, base = (each @ directions[:2].T for each in (relevance, observation, base))
            names = ("first direction", "second direction")
        drawing = model_figures.plane(
            relevance,
            self.values,
            observation,
            base,
            title=model.name,
            value_name=self.value_name,
            axis_names=names,
            note="" if share == 1.0 else f" The two directions hold {share:.0%} of the documents' sum of squares.",
        )
        return drawing, share

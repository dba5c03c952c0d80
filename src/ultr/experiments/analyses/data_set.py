"""The size of a data set, beside those of the paper (its table in appendix C)."""

from __future__ import annotations

from ultr.data.judged import JudgedLists
from ultr.experiments.experiment import Experiment
from ultr.experiments.tables import Row
from ultr.pages import Section, Table

PUBLISHED = {
    "paper, Yahoo!": (28_719, 700_153, 700, 5),
    "paper, Istella-S": (32_968, 3_406_167, 220, 5),
    "paper, TianGong-ST": (3_449, 333_813, 33, 5),
}
"""Queries, documents, features and grades."""
NOTES = "The paper does not say which queries it counts; nDCG is over those that have a relevant document."


def data_set(experiment: Experiment) -> Section:
    """Queries, documents, features and grades of each part of the first fold, and of all three together."""
    splits = experiment.sources[0].read()
    parts = {"training": splits.train, "validation": splits.validation, "test": splits.test}
    sizes = {name: _sizes([part]) for name, part in parts.items()}
    sizes["all"] = _sizes(list(parts.values()))
    sizes["all, with a relevant document"] = _sizes([part.with_relevant() for part in parts.values()])
    rows = [_row(name, *numbers) for name, numbers in (sizes | PUBLISHED).items()]
    return Section(experiment.spec.title, NOTES, tables=[Table(experiment.source.name, rows)], numbers=sizes)


def _sizes(parts: list[JudgedLists]) -> tuple[int, int, int, int]:
    first = parts[0]
    queries, documents = (sum(getattr(part, name) for part in parts) for name in ("queries", "documents"))
    return queries, documents, len(first.feature_names), first.max_label + 1


def _row(name: str, queries: int, documents: int, features: int, grades: int) -> Row:
    return {
        "part": name,
        "queries": f"{queries:,}",
        "documents": f"{documents:,}",
        "features": str(features),
        "grades": str(grades),
        "documents per query": f"{documents / queries:.2f}",
    }

"""What a model learned about each bias factor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ultr.arrays import Doubles, Floats
from ultr.data.click_log import ClickLog
from ultr.data.log_checks import trusted
from ultr.pages import Drawing, Section, Table
from ultr.pages.drawing import BLUE, GREEN, ORANGE, PURPLE, RED
from ultr.reporting import figures
from ultr.reporting.material import Material
from ultr.reporting.model import Embeddings
from ultr.reporting.part import Part
from ultr.seeding import generator

MOST_LISTS = 1_000
"""Ratios are averaged over so many lists of the log at most."""
GROUPS = {"lowest third": ORANGE, "middle third": PURPLE, "highest third": BLUE}
"""Of the documents by score, with the colours of their curves."""
RATIO = "clicks over the first"
ALIKE = 0.02
"""Curves of groups that differ by less everywhere are one."""


def bias(material: Material) -> Part:
    """For each factor: how clicks change with its levels, and the observation embeddings where there are some."""
    subject = material.subject
    colours = figures.colours(material.models)
    sample = None if material.log is None else _sample(material.log)
    drawings: list[Drawing | None] = []
    tables: list[Table] = []
    numbers: dict[str, Any] = {}
    differ = False
    for name, names in subject.ranker.factors_:
        columns: dict[str, Doubles] = {}
        if sample is not None:
            rivals = [model for model in material.click_models if (name, names) in model.ranker.factors_]
            ratios = {model.name: model.ranker.click_ratios(sample, name) for model in rivals}
            overall = {rival: _mean(each) for rival, each in ratios.items()}
            drawings.append(
                figures.levels(overall, names, colours, factor=name, ylabel=RATIO, title="all documents", ratios=True)
            )
            groups = _by_score(ratios[subject.name], subject.ranker.score(sample.features)[sample.documents])
            if _differ(groups):
                differ = True
                title = f"{subject.name}, by score"
                drawings.append(
                    figures.levels(groups, names, GROUPS, factor=name, ylabel=RATIO, title=title, ratios=True)
                )
            columns |= overall | groups
        if isinstance(subject.ranker, Embeddings):
            vectors = subject.ranker.observation_embeddings()[name].astype(np.float64)
            found = {f"o{number}": vector for number, vector in enumerate(vectors.T, start=1)}
            shades = dict(zip(found, _cycled(len(found)), strict=True))
            drawings.append(
                figures.levels(found, names, shades, factor=name, ylabel="value", title=f"{subject.name}: embedding o")
            )
            columns |= found
        rows = [
            {name: level} | {column: f"{values[place]:.3f}" for column, values in columns.items()}
            for place, level in enumerate(names)
        ]
        if columns:
            tables.append(Table(f"numbers by {name}", rows, folded=True))
        numbers[name] = {"levels": list(names), **{column: values.tolist() for column, values in columns.items()}}
    return Part("bias", _section(material, drawings, tables, differ=differ), numbers)


def _section(material: Material, drawings: list[Drawing | None], tables: list[Table], *, differ: bool) -> Section:
    title = "What was learned about bias?"
    if not material.subject.ranker.factors_:
        return Section(title, f"{material.subject.name} learned from labels, so it knows no bias factor.")
    text = ""
    if material.log is not None:
        text = (
            "How many times as many clicks the same documents get under each level as under the first, by what each "
            "model learned. A flat line at 1 is a model that knows no bias."
        )
        if differ:
            text += (
                f" For {material.subject.name} this depends on the document, which one number for each level cannot "
                "say: its documents are also shown in thirds by score."
            )
    advice = "" if material.log is not None else "How clicks change with each level needs the log: give --log FOLDER."
    return Section(title, text, advice, drawings=[each for each in drawings if each is not None], tables=tables)


def _sample(log: ClickLog) -> ClickLog:
    """Some lists of the log, drawn by their impressions, with the features of no other documents."""
    if log.lists > MOST_LISTS:
        shares = log.impressions / log.impressions.sum()
        log = log.select(np.sort(generator(0, "report").choice(log.lists, size=MOST_LISTS, replace=False, p=shares)))
    rows, documents = np.unique(log.documents, return_inverse=True)
    return trusted(log, features=log.features[rows], documents=documents, grades=None)


def _by_score(ratios: Doubles, scores: Floats) -> dict[str, Doubles]:
    """The ratios of the lowest, middle and highest third of the shown documents by score."""
    groups = np.searchsorted(np.quantile(scores, [1 / 3, 2 / 3]), scores)
    return {name: _mean(ratios[groups == number]) for number, name in enumerate(GROUPS) if (groups == number).any()}


def _mean(ratios: Doubles) -> Doubles:
    """The geometric mean over documents, [levels]."""
    means: Doubles = np.exp(np.log(ratios).mean(axis=0))
    return means


def _differ(groups: Mapping[str, Doubles]) -> bool:
    values = np.stack(list(groups.values()))
    return bool((np.ptp(values, axis=0) > ALIKE).any())


def _cycled(count: int) -> list[str]:
    return [(BLUE, ORANGE, GREEN, PURPLE, RED)[number % 5] for number in range(count)]

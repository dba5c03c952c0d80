"""The bias that a model learned, by bias factor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ultr.arrays import Doubles, Floats
from ultr.data.click_log import ClickLog
from ultr.data.log_checks import trusted
from ultr.pages import Drawing, Section, Table, model_figures
from ultr.pages.drawing import BLUE, GREEN, ORANGE, PURPLE, RED
from ultr.reporting.inputs import ReportInputs
from ultr.reporting.model import colours
from ultr.reporting.report_section import ReportSection
from ultr.seeding import generator

MOST_LISTS = 1_000
"""Most lists of the log that ratios are averaged over."""
GROUPS = {"lowest third": ORANGE, "middle third": PURPLE, "highest third": BLUE}
"""Groups of documents by score, with the colours of their curves."""
RATIO = "clicks over the first"
ALIKE = 0.02
"""Curves of groups that differ by less everywhere are one."""


def bias(inputs: ReportInputs) -> ReportSection:
    """For each factor: how clicks change with its levels, and the observation embeddings where there are some."""
    subject = inputs.subject
    by_model = colours(inputs.models)
    sample = None if inputs.log is None else _sample(inputs.log)
    drawings: list[Drawing | None] = []
    tables: list[Table] = []
    numbers: dict[str, Any] = {}
    differ = False
    for factor in (each for each in subject.ranker.factors if subject.knows(each)):
        name, names = factor.name, factor.levels
        columns: dict[str, Doubles] = {}
        if sample is not None:
            rivals = [model for model in inputs.click_models if model.knows(factor)]
            ratios = {model.name: model.ranker.click_ratios(sample, name) for model in rivals}
            overall = {rival: _mean(each) for rival, each in ratios.items()}
            drawings.append(
                model_figures.levels(
                    overall, names, by_model, factor=name, ylabel=RATIO, title="all documents", ratios=True
                )
            )
            groups = _by_score(ratios[subject.name], subject.ranker.score(sample.features)[sample.documents])
            if _differ(groups):
                differ = True
                title = f"{subject.name}, by score"
                drawings.append(
                    model_figures.levels(groups, names, GROUPS, factor=name, ylabel=RATIO, title=title, ratios=True)
                )
            columns |= overall | groups
        if subject.embeddings is not None:
            vectors = subject.embeddings.observation()[name].astype(np.float64)
            found = {f"o{number}": vector for number, vector in enumerate(vectors.T, start=1)}
            shades = dict(zip(found, _cycled(len(found)), strict=True))
            drawings.append(
                model_figures.levels(
                    found, names, shades, factor=name, ylabel="value", title=f"{subject.name}: embedding o"
                )
            )
            columns |= found
        rows = [
            {name: level} | {column: f"{values[place]:.3f}" for column, values in columns.items()}
            for place, level in enumerate(names)
        ]
        if columns:
            tables.append(Table(f"numbers by {name}", rows, folded=True))
        numbers[name] = {"levels": list(names), **{column: values.tolist() for column, values in columns.items()}}
    return ReportSection("bias", _section(inputs, drawings, tables, differ=differ), numbers)


def _section(inputs: ReportInputs, drawings: list[Drawing | None], tables: list[Table], *, differ: bool) -> Section:
    title = "What was learned about bias?"
    if not inputs.subject.ranker.factors:
        return Section(title, f"{inputs.subject.name} learned from labels, so it knows no bias factor.")
    text = ""
    if inputs.log is not None:
        text = (
            "How many times as many clicks the same documents get under each level as under the first, by what each "
            "model learned. A flat line at 1 is a model that knows no bias."
        )
        if differ:
            text += (
                f" For {inputs.subject.name} this depends on the document, which one number for each level cannot "
                "say: its documents are also shown in thirds by score."
            )
    if left_out := inputs.subject.ranker.left_out_factors:
        text += f" {inputs.subject.name} leaves out {' and '.join(left_out)}, whose bias its method cannot learn."
    advice = "" if inputs.log is not None else "How clicks change with each level needs the log: give --log FOLDER."
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

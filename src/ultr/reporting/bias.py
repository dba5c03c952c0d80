"""The bias that a model learned, by bias factor."""

from __future__ import annotations

from functools import partial
from itertools import cycle
from typing import Any

import numpy as np

from ultr.arrays import Doubles, Floats
from ultr.data.click_log import ClickLog
from ultr.data.log_checks import trusted
from ultr.pages import Draw, Section, Table, figures
from ultr.pages.drawing import BLUE, GREEN, ORANGE, PURPLE, RED
from ultr.reporting.inputs import ReportInputs
from ultr.reporting.model import colours
from ultr.seeding import generator

MOST_LISTS = 1_000
"""Most lists of the log that ratios are averaged over."""
GROUPS = {"lowest third": ORANGE, "middle third": PURPLE, "highest third": BLUE}
"""Groups of documents by score, with the colours of their curves."""
RATIO = "clicks over the first"
ALIKE = 0.02
"""Curves of groups that differ by less everywhere are one."""


def bias(inputs: ReportInputs) -> Section:
    """For each factor: how clicks change with its levels, and the observation embeddings where there are some."""
    subject, by_model = inputs.subject, colours(inputs.models)
    sample = None if inputs.log is None else _sample(inputs.log)
    drawn: dict[str, Draw] = {}
    tables: list[Table] = []
    numbers: dict[str, Any] = {}
    differ = False
    for factor in (each for each in subject.ranker.factors if subject.knows(each)):
        name, names = factor.name, factor.levels
        columns: dict[str, Doubles] = {}
        charts: list[tuple[str, str, dict[str, Doubles], dict[str, str]]] = []
        if sample is not None:
            rivals = [model for model in inputs.click_models if model.knows(factor)]
            ratios = {model.name: model.ranker.click_ratios(sample, name) for model in rivals}
            overall = {rival: _mean(each) for rival, each in ratios.items()}
            charts.append(("all documents, by model", RATIO, overall, by_model))
            groups = _by_score(ratios[subject.name], subject.ranker.score(sample.features)[sample.documents])
            if np.ptp(list(groups.values()), axis=0).max() > ALIKE:
                differ = True
                charts.append((f"documents of {subject.name} by score", RATIO, groups, GROUPS))
            columns |= overall | groups
        if subject.embeddings is not None:
            vectors = subject.embeddings.observation()[name].astype(np.float64)
            found = {f"o{number}": vector for number, vector in enumerate(vectors.T, start=1)}
            shades = dict(zip(found, cycle((BLUE, ORANGE, GREEN, PURPLE, RED)), strict=False))
            charts.append((f"observation embedding of {subject.name}", "value", found, shades))
            columns |= found
        for title, label, curves, shades in charts:
            bands = {curve: (values, *[np.full(len(values), np.nan)] * 2) for curve, values in curves.items()}
            drawn[f"{name}: {title}"] = partial(
                figures.curves, bands, names, shades, xlabel=name, ylabel=label, from_zero=label == RATIO
            )
        if columns:
            cells = {level: [f"{each[place]:.3f}" for each in columns.values()] for place, level in enumerate(names)}
            tables.append(Table.of_cells(f"numbers by {name}", name, cells, list(columns), folded=True))
        numbers[name] = {"levels": list(names), **{column: values.tolist() for column, values in columns.items()}}
    text, advice = _words(inputs, differ=differ)
    return Section(
        "What was learned about bias?", text, advice=advice, figures=drawn, tables=tables, numbers=numbers, name="bias"
    )


def _words(inputs: ReportInputs, *, differ: bool) -> tuple[str, str]:
    """The text of the section and its advice."""
    name = inputs.subject.name
    if not inputs.subject.ranker.factors:
        return f"{name} learned from labels, so it knows no bias factor.", ""
    text, advice = "", "How clicks change with each level needs the log: give --log FOLDER."
    if inputs.log is not None:
        advice = ""
        text = (
            "How many times as many clicks the same documents get under each level as under the first, by what each "
            "model learned. A flat line at 1 is a model that knows no bias."
        )
    if differ:
        text += (
            f" For {name} this depends on the document, which one number for each level cannot say: its documents are "
            "also shown in thirds by score."
        )
    if left_out := inputs.subject.ranker.left_out_factors:
        text += f" {name} leaves out {' and '.join(left_out)}, whose bias its method cannot learn."
    return text, advice


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

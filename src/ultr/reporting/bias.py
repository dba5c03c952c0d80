"""The bias that a model learned, by bias factor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ultr.arrays import Doubles, Floats
from ultr.data.click_log import ClickLog
from ultr.data.log_checks import trusted
from ultr.methods.factors import Factor
from ultr.pages import Draw, Section, Table, figures
from ultr.pages.drawing import BLUE, ORANGE, PURPLE
from ultr.reporting.inputs import ReportInputs
from ultr.reporting.model import Model, colours
from ultr.seeding import generator

MOST_LISTS = 1_000
"""Most lists of the log that ratios are averaged over."""
GROUPS = {"lowest third": ORANGE, "middle third": PURPLE, "highest third": BLUE}
"""Groups of documents by score, with the colours of their curves."""
RATIO = "clicks over the first"
ALIKE = 0.02
"""Curves of groups that differ by less everywhere are one."""
MOST_CURVES = 6
"""Most values of a page-wide factor that have a curve, the most frequent ones."""


def bias(inputs: ReportInputs) -> Section:
    """For each factor: how clicks change with its levels, and the observation embeddings where there are some."""
    subject = inputs.subject
    sample = None if inputs.log is None else _sample(inputs.log)
    drawn: dict[str, Draw] = {}
    tables: list[Table] = []
    numbers: dict[str, Any] = {}
    differ = False
    for factor in (each for each in subject.ranker.factors if subject.knows(each)):
        if factor.by_page:
            along, names = "position", subject.ranker.factors[0].levels
            charts = [] if sample is None else [_by_page(subject, sample, factor)]
        else:
            along, names = factor.name, factor.levels
            charts = _by_level(inputs, sample, factor)
        differ = differ or any(chart.shades is GROUPS for chart in charts)
        for chart in charts:
            unknown = np.full(len(names), np.nan)
            bands = {curve: (values, unknown, unknown) for curve, values in chart.curves.items()}
            drawn[chart.caption] = partial(
                figures.curves,
                bands,
                names,
                chart.shades,
                xlabel=along,
                ylabel=chart.ylabel,
                from_zero=chart.ylabel == RATIO,
            )
        columns = {column: values for chart in charts for column, values in chart.curves.items()}
        if columns:
            cells = {level: [f"{each[place]:.3f}" for each in columns.values()] for place, level in enumerate(names)}
            tables.append(Table.of_cells(f"numbers by {factor.name}", along, cells, list(columns), folded=True))
        numbers[factor.name] = {"levels": list(names), **{name: values.tolist() for name, values in columns.items()}}
    text, advice = _words(inputs, differ=differ)
    return Section(
        "What was learned about bias?", text, advice=advice, figures=drawn, tables=tables, numbers=numbers, name="bias"
    )


@dataclass(frozen=True)
class Chart:
    """Curves over the levels of a factor."""

    caption: str
    ylabel: str
    curves: Mapping[str, Doubles]
    """By name, [levels]."""
    shades: Mapping[str, str] | None


def _by_level(inputs: ReportInputs, sample: ClickLog | None, factor: Factor) -> list[Chart]:
    """Clicks at each level over those at the first, by all models and by score; and the subject's embeddings."""
    subject, name, charts = inputs.subject, factor.name, []
    if sample is not None:
        rivals = [model for model in inputs.click_models if model.knows(factor)]
        ratios = {model.name: model.ranker.click_ratios(sample, name) for model in rivals}
        overall = {rival: _mean(each) for rival, each in ratios.items()}
        charts.append(Chart(f"{name}: all documents, by model", RATIO, overall, colours(inputs.models)))
        groups = _by_score(ratios[subject.name], subject.ranker.score(sample.features)[sample.documents])
        if np.ptp(list(groups.values()), axis=0).max() > ALIKE:
            charts.append(Chart(f"{name}: documents of {subject.name} by score", RATIO, groups, GROUPS))
    if subject.embeddings is not None:
        vectors = subject.embeddings.observation()[name].astype(np.float64)
        found = {f"o{number}": vector for number, vector in enumerate(vectors.T, start=1)}
        charts.append(Chart(f"{name}: observation embedding of {subject.name}", "value", found, None))
    return charts


def _by_page(subject: Model, sample: ClickLog, factor: Factor) -> Chart:
    """The subject's position curve on the pages of each level of a factor that is the same for a whole page.

    What such a factor does to all documents of a page alike cancels in a list-wise loss, so that it is not shown.
    """
    known = next(each for each in sample.factors if each.name == factor.name)
    level = known.values[sample.offsets[:-1]]
    pages = np.bincount(level, sample.impressions, minlength=len(known.levels))
    shown = [int(each) for each in np.argsort(-pages, kind="stable")[:MOST_CURVES] if pages[each]]
    found = {
        known.levels[each]: _mean(subject.ranker.click_ratios(sample.part(level == each, sample.splits), "position"))
        for each in shown
    }
    return Chart(f"position, by {factor.name}, as {subject.name} learned it", RATIO, found, None)


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
    if by_page := [each.name for each in inputs.subject.ranker.factors if each.by_page and inputs.subject.knows(each)]:
        are = "is" if len(by_page) == 1 else "are"
        text += (
            f" {' and '.join(by_page)} {are} the same for a whole page: how much it is clicked altogether, clicks "
            "within pages do not tell, but how far down its users look they do."
        )
    if left_out := inputs.subject.ranker.left_out_factors:
        text += f" {name} leaves out {' and '.join(left_out)}, whose bias its method cannot learn."
    return text, advice


def _sample(log: ClickLog) -> ClickLog:
    """Some lists of the log, drawn by their impressions, with the features of no other documents."""
    if not log.lengths.all():
        log = log.select(log.lengths > 0)
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

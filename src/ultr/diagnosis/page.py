"""A diagnosis as an HTML page."""

from __future__ import annotations

from dataclasses import replace
from shlex import quote

import numpy as np

from ultr.arrays import Doubles
from ultr.bias.identifiability import BiasGraph
from ultr.bias.rank_test import RankTest
from ultr.diagnosis.diagnosis import Diagnosis
from ultr.diagnosis.finding import Finding
from ultr.pages import Badge, Drawing, Page, Section, log_figures
from ultr.version import __version__


def diagnosis_page(diagnosis: Diagnosis) -> Page:
    """A page with a section for each question."""
    drawings = drawings_of(diagnosis)
    return Page(
        title=f"Examination of {diagnosis.source}",
        summary=diagnosis.headline,
        steps=diagnosis.steps,
        sections=[section(finding, drawings.get(finding.name, [])) for finding in diagnosis.findings],
        footer=f"ultr {__version__}: ultr doctor {quote(diagnosis.source)}",
    )


def section(finding: Finding, drawings: list[Drawing]) -> Section:
    """A finding as a section of any page."""
    return Section(
        title=finding.question,
        text=finding.answer,
        advice=finding.advice,
        badge=Badge(str(finding.verdict), str(finding.verdict)),
        drawings=drawings,
        tables=[replace(table, folded=bool(drawings)) for table in finding.tables],
    )


def drawings_of(diagnosis: Diagnosis) -> dict[str, list[Drawing]]:
    """The figures that belong to each finding, by its name."""
    bias, test, drift = diagnosis.position_bias, diagnosis.dimension.scalar.test, diagnosis.drift
    graph = diagnosis.linkage.whole
    curves = {each.estimator: (each.values, each.low, each.high) for each in bias.curves.curves if each.problem is None}
    found: dict[str, list[Drawing | None]] = {
        "click rates": [
            log_figures.click_rates(each.name, each.levels, each.rates.band) for each in diagnosis.click_rates.factors
        ],
        "drift": [] if drift is None else [log_figures.rates_over_time(drift.period_names, drift.periods.band)],
        "scalar": [] if test is None else [_click_matrix(test)],
        "identifiability": [
            log_figures.links(
                [name.removeprefix("position ") for name in graph.names],
                _strengths(graph),
                parts=int(graph.parts.max()) + 1,
            )
        ],
        "position bias": [log_figures.position_bias(curves, bias.positions)],
    }
    return {name: [drawing for drawing in drawn if drawing is not None] for name, drawn in found.items()}


def _click_matrix(test: RankTest) -> Drawing:
    values = test.singular_values / test.singular_values[0]
    titles = ("click rates", "singular values over the first")
    return log_figures.click_matrix(test.rates, values, ylabel="relevance group", titles=titles)


def _strengths(graph: BiasGraph) -> Doubles:
    """Strength of the link between each pair of values, 0 where there is none."""
    strength = np.zeros((len(graph.names), len(graph.names)))
    for link in graph.links:
        strength[link.first, link.second] = strength[link.second, link.first] = link.strength
    return strength

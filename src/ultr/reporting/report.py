"""A run as one page, or two runs compared in one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ultr.pages import Page, Section
from ultr.reporting.bias import bias
from ultr.reporting.click_matrix import click_matrix
from ultr.reporting.examination import examination
from ultr.reporting.inputs import MAIN, ReportInputs
from ultr.reporting.learning import learning
from ultr.reporting.model import Model
from ultr.reporting.orders import orders
from ultr.reporting.plane import plane
from ultr.reporting.provenance import differences, provenance, reproduction
from ultr.reporting.quality import quality
from ultr.version import __version__

FORMAT = "ultr report 1"


@dataclass(frozen=True, eq=False)
class Report:
    """The sections of a report, one after the other."""

    title: str
    summary: str
    command: str
    sections: dict[str, Section]
    """By name."""

    def page(self) -> Page:
        """For people."""
        return Page(
            title=self.title,
            summary=self.summary,
            sections=list(self.sections.values()),
            footer=f"ultr {__version__}: {self.command}",
        )

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "format": FORMAT,
            "title": self.title,
            "summary": self.summary,
            **{name: section.numbers for name, section in self.sections.items()},
        }


def report(inputs: ReportInputs, *, name: str, command: str) -> Report:
    """The report on one run: its training, its quality, what it learned, its log, and the orders that change."""
    sections = {
        "models": provenance(inputs),
        "quality": quality(inputs),
        "learning": learning(inputs),
        "bias": bias(inputs),
        "plane": plane(inputs),
        "click_matrix": click_matrix(inputs),
        "examination": examination(inputs),
        "orders": orders(inputs),
        "reproduce": reproduction(inputs, command),
    }
    return _of_sections(f"Report on {name}", inputs, command, sections)


def comparison_report(inputs: ReportInputs, other: Model, *, command: str) -> Report:
    """The report on two models: their differences, their quality, what both learned, where their orders differ."""
    sections = {
        "differences": differences(inputs, other),
        "quality": quality(inputs),
        "learning": learning(inputs),
        "bias": bias(inputs),
        "plane": plane(inputs),
        "orders": orders(inputs, against=other),
        "reproduce": reproduction(inputs, command),
    }
    return _of_sections(f"{inputs.subject.name} beside {other.name}", inputs, command, sections)


def _of_sections(title: str, inputs: ReportInputs, command: str, sections: dict[str, Section | None]) -> Report:
    found = {name: section for name, section in sections.items() if section is not None}
    return Report(title, _summary(inputs, found["quality"].numbers), command, found)


def _summary(inputs: ReportInputs, judged: Mapping[str, Any]) -> str:
    """The main result in a sentence or two."""
    name = inputs.subject.name
    if not inputs.evaluations:
        method = inputs.subject.manifest.method
        told = f"{name} is a ranker by the method {method}; there are no labels to measure it by."
        if "answers" in judged:
            told += f" By clicks alone, against {judged['against']}: {judged['answers']['value']['verdict']}."
        return told
    own = inputs.evaluations[name].interval(MAIN)
    interval = f"95 % interval {own.low:.3f} to {own.high:.3f}"
    sentence = f"{name} has an {MAIN} of {own.mean:.3f} on {inputs.judged_name} ({interval})"
    leads = [
        f"{abs(test.difference):.3f} {'above' if test.difference > 0 else 'below'} {other}"
        f" ({'beyond' if test.low > 0 or test.high < 0 else 'within'} chance)"
        for other, test in inputs.leads.items()
    ]
    return f"{sentence}: {', '.join(leads)}." if leads else f"{sentence}."

"""A run as one page, or two runs compared in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from shlex import quote
from typing import Any

from ultr.pages import Page, Section
from ultr.reporting.bias import bias
from ultr.reporting.inputs import MAIN, ReportInputs
from ultr.reporting.learning import learning
from ultr.reporting.model import Model
from ultr.reporting.orders import orders
from ultr.reporting.plane import plane
from ultr.reporting.provenance import differences, provenance, reproduction
from ultr.reporting.quality import quality
from ultr.version import __version__

FORMAT = "ultr report 1"


def report(inputs: ReportInputs, *, name: str, command: str) -> Page:
    """The report on one run: its training, its quality, what it learned, its log, and the orders that change."""
    sections = [
        provenance(inputs),
        quality(inputs),
        learning(inputs),
        bias(inputs),
        plane(inputs),
        examination(inputs),
        orders(inputs),
        reproduction(inputs, command),
    ]
    return _of_sections(f"Report on {name}", inputs, command, sections)


def comparison_report(inputs: ReportInputs, other: Model, *, command: str) -> Page:
    """The report on two models: their differences, their quality, what both learned, where their orders differ."""
    sections = [
        differences(inputs, other),
        quality(inputs),
        learning(inputs),
        bias(inputs),
        plane(inputs),
        orders(inputs, against=other),
        reproduction(inputs, command),
    ]
    return _of_sections(f"{inputs.subject.name} beside {other.name}", inputs, command, sections)


def examination(inputs: ReportInputs) -> Section:
    """The doctor's findings in the log."""
    title, found = "What does the doctor say of the log?", inputs.diagnosis
    if found is None:
        return Section(title, advice="This needs a log with clicks: give --log FOLDER.", name="examination")
    return Section(
        title,
        found.headline,
        parts=[replace(finding, folded=True) for finding in found.findings],
        commands=[f"ultr doctor {quote(inputs.log_name)} --html doctor.html"],
        numbers=found.as_json(),
        name="examination",
    )


def _of_sections(title: str, inputs: ReportInputs, command: str, sections: Sequence[Section | None]) -> Page:
    found = [section for section in sections if section is not None]
    judged = next(section.numbers for section in found if section.name == "quality")
    return Page(title, _summary(inputs, judged), found, footer=f"ultr {__version__}: {command}")


def _summary(inputs: ReportInputs, judged: dict[str, Any]) -> str:
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

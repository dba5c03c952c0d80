"""A run as one page, or two runs compared in one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from shlex import quote

from ultr.evaluation.trial import ALIKE
from ultr.pages import Page, Section
from ultr.reporting.bias import bias
from ultr.reporting.decision import ExpectedGain, decision, heads, next_steps
from ultr.reporting.inputs import MAIN, ReportInputs
from ultr.reporting.learning import learning
from ultr.reporting.model import Model
from ultr.reporting.orders import orders
from ultr.reporting.plane import plane
from ultr.reporting.provenance import differences, provenance, reproduction
from ultr.reporting.quality import quality

FORMAT = "ultr report 1"


def report(inputs: ReportInputs, *, name: str, command: str) -> Page:
    """The report on one run: its training, its quality, what it learned, its log, and the orders that change."""
    sections = [
        quality(inputs),
        orders(inputs),
        examination(inputs),
        bias(inputs),
        plane(inputs),
        learning(inputs),
        provenance(inputs),
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
    first = [section for section in (decision(inputs), heads(inputs)) if section is not None]
    details = [replace(section, folded=True) for section in sections if section is not None]
    return Page(title, _summary(inputs), [*first, *details], steps=next_steps(inputs), command=command)


def _summary(inputs: ReportInputs) -> str:
    """The main result in a sentence or two: clicks to expect, and quality by labels or against another model."""
    gain = ExpectedGain.of(inputs)
    return " ".join(([] if gain is None else [gain.sentence(inputs.subject.name)]) + [_quality(inputs)])


def _quality(inputs: ReportInputs) -> str:
    name = inputs.subject.name
    if not inputs.evaluations:
        found = inputs.comparison
        if found is None:
            return "There are no labels to measure it by."
        other, winner = found.names[0], found.value.winner
        if found.value.verdict == ALIKE:
            return f"{name} and {other} rank alike."
        if winner is None:
            return f"Whether {name} is better than {other}, this log cannot tell."
        return f"By clicks alone, {name} is {'better' if winner == name else 'worse'} than {other}."
    own = inputs.evaluations[name].interval(MAIN)
    ends = "" if math.isnan(own.low) else f" (95 % interval {own.low:.3f} to {own.high:.3f})"
    sentence = f"{name} has an {MAIN} of {own.mean:.3f} on {inputs.judged_name}{ends}"
    leads = [
        f"{abs(test.difference):.3f} {'above' if test.difference > 0 else 'below'} {other}"
        f" ({'beyond' if test.low > 0 or test.high < 0 else 'within'} chance)"
        for other, test in inputs.leads.items()
    ]
    return f"{sentence}: {', '.join(leads)}." if leads else f"{sentence}."

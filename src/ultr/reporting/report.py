"""A run as one page, or two runs compared in one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ultr.pages import Page
from ultr.reporting.bias import bias
from ultr.reporting.click_matrix import click_matrix
from ultr.reporting.differences import differences
from ultr.reporting.examination import examination
from ultr.reporting.learning import learning
from ultr.reporting.material import MAIN, Material
from ultr.reporting.model import Model
from ultr.reporting.orders import orders
from ultr.reporting.part import Part
from ultr.reporting.plane import plane
from ultr.reporting.provenance import provenance, reproduction
from ultr.reporting.quality import quality
from ultr.version import __version__

FORMAT = "ultr report 1"


@dataclass(frozen=True, eq=False)
class Report:
    """The parts of a report, one after the other."""

    title: str
    summary: str
    command: str
    parts: tuple[Part, ...]

    def page(self) -> Page:
        """For people."""
        return Page(
            title=self.title,
            summary=self.summary,
            sections=[part.section for part in self.parts],
            footer=f"ultr {__version__}: {self.command}",
        )

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        return {
            "format": FORMAT,
            "title": self.title,
            "summary": self.summary,
            **{part.name.replace(" ", "_"): part.numbers for part in self.parts},
        }


def report(material: Material, *, name: str, command: str) -> Report:
    """What was trained on what, how good it is, what it learned, what the log is like, and what changes."""
    judged = quality(material)
    parts = (
        provenance(material),
        judged,
        learning(material),
        bias(material),
        plane(material),
        click_matrix(material),
        examination(material),
        orders(material),
        reproduction(material, command),
    )
    return Report(
        f"Report on {name}",
        _summary(material, judged.numbers),
        command,
        tuple(part for part in parts if part is not None),
    )


def comparison_report(material: Material, other: Model, *, command: str) -> Report:
    """What the subject and another model differ in, how good both are, what both learned, where their orders differ."""
    judged = quality(material)
    parts = (
        differences(material, other),
        judged,
        learning(material),
        bias(material),
        plane(material),
        orders(material, against=other),
        reproduction(material, command),
    )
    title = f"{material.subject.name} beside {other.name}"
    return Report(title, _summary(material, judged.numbers), command, tuple(part for part in parts if part is not None))


def _summary(material: Material, judged: dict[str, Any]) -> str:
    """The main result in a sentence or two."""
    name = material.subject.name
    if not material.evaluations:
        method = material.subject.manifest.method
        told = f"{name} is a ranker by the method {method}; there are no labels to measure it by."
        return (
            f"{told} By clicks alone, against {judged['against']}: {judged['answers']['value']['verdict']}."
            if "answers" in judged
            else told
        )
    own = material.evaluations[name].interval(MAIN)
    interval = f"95 % interval {own.low:.3f} to {own.high:.3f}"
    sentence = f"{name} has an {MAIN} of {own.mean:.3f} on {material.judged_name} ({interval})"
    leads = [
        f"{abs(test.difference):.3f} {'above' if test.difference > 0 else 'below'} {other}"
        f" ({'beyond' if test.low > 0 or test.high < 0 else 'within'} chance)"
        for other, test in material.leads.items()
    ]
    return f"{sentence}: {', '.join(leads)}." if leads else f"{sentence}."

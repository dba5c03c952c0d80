"""A diagnosis as an HTML page."""

from __future__ import annotations

from ultr.diagnosis import figures
from ultr.diagnosis.diagnosis import Diagnosis
from ultr.diagnosis.finding import Finding
from ultr.pages import Badge, Drawing, Page, Section, Table
from ultr.version import __version__


def diagnosis_page(diagnosis: Diagnosis) -> Page:
    """A page with a section for each question."""
    drawings = drawings_of(diagnosis)
    return Page(
        title=f"Examination of {diagnosis.source}",
        summary=diagnosis.headline,
        steps=diagnosis.steps,
        sections=[section(finding, drawings.get(finding.name, [])) for finding in diagnosis.findings],
        footer=f"ultr {__version__}: ultr doctor {diagnosis.source}",
    )


def section(finding: Finding, drawings: list[Drawing]) -> Section:
    """A finding as a section of any page."""
    return Section(
        title=finding.question,
        text=finding.answer,
        advice=finding.advice,
        badge=Badge(str(finding.verdict), str(finding.verdict)),
        drawings=drawings,
        tables=[Table(table.title, table.rows, folded=bool(drawings)) for table in finding.tables],
    )


def drawings_of(diagnosis: Diagnosis) -> dict[str, list[Drawing]]:
    """The figures that belong to each finding, by its name."""
    bias, test = diagnosis.position_bias, diagnosis.dimension.scalar.test
    found: dict[str, list[Drawing | None]] = {
        "click rates": [figures.rates(factor) for factor in diagnosis.exposure.factors],
        "drift": [figures.drift(diagnosis.drift)] if diagnosis.drift else [],
        "scalar": [figures.matrix(test)] if test else [],
        "identifiability": [figures.links(diagnosis.linkage.whole)],
        "position bias": [figures.curves(bias.curves, bias.positions)],
    }
    return {name: [drawing for drawing in drawn if drawing is not None] for name, drawn in found.items()}

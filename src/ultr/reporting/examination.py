"""What the doctor says of the log."""

from __future__ import annotations

from ultr.diagnosis import diagnose
from ultr.errors import DataError
from ultr.pages import Badge, Point, Section, Table
from ultr.reporting.material import Material
from ultr.reporting.part import Part

SAMPLES = 50
"""Resamples for intervals: enough for a report; `ultr doctor` takes more."""


def examination(material: Material) -> Part:
    """The verdict on each question about the log."""
    title = "What does the doctor say of the log?"
    if material.log is None:
        return Part("examination", Section(title, advice="This needs the log: give --log FOLDER."), {})
    try:
        found = diagnose(material.log, scores=material.scores, samples=SAMPLES, source=material.log_name)
    except DataError as error:
        return Part("examination", Section(title, advice=f"The log cannot be examined: {error}."), {})
    points = [
        Point(
            finding.question,
            f"{finding.answer} {finding.advice}".strip(),
            Badge(str(finding.verdict), str(finding.verdict)),
            [Table(table.title, table.rows, folded=True) for table in finding.tables],
        )
        for finding in found.findings
    ]
    section = Section(
        title, found.headline, points=points, commands=[f"ultr doctor {material.log_name} --html doctor.html"]
    )
    return Part("examination", section, found.as_json())

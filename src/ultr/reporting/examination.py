"""What the doctor says of the log."""

from __future__ import annotations

from dataclasses import replace

from ultr.pages import Badge, Point, Section
from ultr.reporting.material import Material
from ultr.reporting.part import Part


def examination(material: Material) -> Part:
    """The verdict on each question about the log."""
    title = "What does the doctor say of the log?"
    found = material.diagnosis
    if found is None:
        return Part("examination", Section(title, advice="This needs a log with clicks: give --log FOLDER."), {})
    points = [
        Point(
            finding.question,
            f"{finding.answer} {finding.advice}".strip(),
            Badge(str(finding.verdict), str(finding.verdict)),
            [replace(table, folded=True) for table in finding.tables],
        )
        for finding in found.findings
    ]
    section = Section(
        title, found.headline, points=points, commands=[f"ultr doctor {material.log_name} --html doctor.html"]
    )
    return Part("examination", section, found.as_json())

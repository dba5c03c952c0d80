"""The section with the doctor's findings on the log."""

from __future__ import annotations

from dataclasses import replace
from shlex import quote

from ultr.pages import Badge, Point, Section
from ultr.reporting.inputs import ReportInputs


def examination(inputs: ReportInputs) -> Section:
    """The verdict on each question about the log."""
    title = "What does the doctor say of the log?"
    found = inputs.diagnosis
    if found is None:
        return Section(title, advice="This needs a log with clicks: give --log FOLDER.")
    points = [
        Point(
            finding.question,
            f"{finding.answer} {finding.advice}".strip(),
            Badge(str(finding.verdict), str(finding.verdict)),
            [replace(table, folded=True) for table in finding.tables],
        )
        for finding in found.findings
    ]
    commands = [f"ultr doctor {quote(inputs.log_name)} --html doctor.html"]
    return Section(title, found.headline, points=points, commands=commands, numbers=found.as_json())

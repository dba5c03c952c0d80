"""What two runs differ in."""

from __future__ import annotations

from ultr.pages import Section, Table
from ultr.reporting.inputs import ReportInputs
from ultr.reporting.model import Model
from ultr.reporting.provenance import facts_of, misfits
from ultr.reporting.report_section import ReportSection

OWN = ("weights",)
"""What is never the same and says nothing."""


def differences(inputs: ReportInputs, second: Model) -> ReportSection:
    """Options and data in which the subject and another differ, and, folded, those in which they do not."""
    first = inputs.subject
    facts = facts_of(first), facts_of(second)
    names = [name for name in dict.fromkeys([*facts[0], *facts[1]]) if name not in OWN]
    other = [name for name in names if facts[0].get(name) != facts[1].get(name)]
    rows = [{"": name, first.name: facts[0].get(name, ""), second.name: facts[1].get(name, "")} for name in other]
    same = [{"": name, "both": facts[0][name]} for name in names if name not in other]
    tables = [Table("what differs", rows)] if rows else []
    if same:
        tables.append(Table("what is the same", same, folded=True))
    data = (
        "They learned from the same data."
        if first.manifest.data_fingerprint == second.manifest.data_fingerprint
        else "They learned from different data."
    )
    if not rows:
        data += " They differ in nothing that decides training."
    return ReportSection(
        "differences",
        Section("What differs?", data, " ".join([*misfits(inputs), *inputs.missing]), tables=tables),
        {"differ": {name: [facts[0].get(name), facts[1].get(name)] for name in other}},
    )

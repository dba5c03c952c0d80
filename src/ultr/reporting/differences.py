"""What two runs differ in."""

from __future__ import annotations

from ultr.pages import Section, Table
from ultr.reporting.material import Material
from ultr.reporting.model import Model
from ultr.reporting.part import Part
from ultr.reporting.provenance import facts_of, misfits

OWN = ("weights",)
"""What is never the same and says nothing."""


def differences(material: Material, second: Model) -> Part:
    """Options and data in which the subject and another differ, and, folded, those in which they do not."""
    first = material.subject
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
    return Part(
        "differences",
        Section("What differs?", data, " ".join([*misfits(material), *material.missing]), tables=tables),
        {"differ": {name: [facts[0].get(name), facts[1].get(name)] for name in other}},
    )

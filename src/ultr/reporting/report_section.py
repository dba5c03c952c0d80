"""A part of a report: for people as a section, for machines as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ultr.pages import Section


@dataclass(frozen=True, eq=False)
class ReportSection:
    """A section of the page with the numbers behind it."""

    section: Section
    numbers: dict[str, Any] = field(default_factory=dict)

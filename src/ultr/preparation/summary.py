"""The account of every row of a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ultr.errors import DataError
from ultr.files import read_json
from ultr.preparation.columns import Columns
from ultr.preparation.factors import FactorSummary


@dataclass(frozen=True)
class Tally:
    """Numbers read, kept and put aside."""

    read: int
    kept: int

    @property
    def aside(self) -> int:
        """Number put aside: the rest."""
        return self.read - self.kept

    def as_json(self) -> dict[str, int]:
        """The three numbers."""
        return {"read": self.read, "kept": self.kept, "aside": self.aside}


@dataclass(frozen=True)
class PutAside:
    """Cost of one reason."""

    reason: str
    rows: int
    clicks: int
    pages: int
    """Pages put aside whole for it; where only the row goes, the pages it was on."""
    whole_page: bool


def in_words(reasons: Sequence[PutAside]) -> str:
    """Each reason with the rows it cost."""
    return ", ".join(f"{each.reason}: {each.rows:,}" for each in reasons)


@dataclass(frozen=True)
class Summary:
    """Rows in and out, with the reasons between; the same on screen and in `summary.json`."""

    source: str
    engine: str
    columns: Columns
    one_row_a_page: bool
    rows: Tally
    pages: Tally
    clicks: Tally
    empty_pages: int
    """Pages that are kept, without a click on a row that is kept."""
    reasons: tuple[PutAside, ...]
    factors: tuple[FactorSummary, ...]
    lists: int
    queries: int
    documents: int
    features: int
    missing: Mapping[str, float] = field(default_factory=dict)
    """The share of documents in which a feature is missing, of those that are at all, most missing first."""
    known_in_part: int = 0
    """Number of documents with a feature that only some of their rows have, which then counts for all of them."""
    periods: tuple[str, ...] = ()
    """The time at which each period begins."""
    grades: tuple[str, ...] = ()
    """The labels that documents have, from the worst to the best."""
    judged: int = 0
    """Number of documents that have one."""
    conflicting_labels: int = 0
    """Number of documents with two that differ, which count as not judged."""
    clicks_elsewhere: int = 0
    """Clicks on documents that were not shown, which only logs of events have."""
    notes: tuple[str, ...] = ()
    """What was found out about the log on the way, a sentence each."""

    @classmethod
    def read(cls, folder: str | Path) -> Summary | None:
        """The summary that `prepare` wrote beside a log; None if there is none."""
        path = Path(folder) / "summary.json"
        if not path.exists():
            return None
        try:
            return TypeAdapter(cls).validate_python(read_json(path))
        except ValidationError as error:
            where = ".".join(str(part) for part in error.errors()[0]["loc"])
            raise DataError(f"{path} is wrong at {where!r}; prepare the log again") from error

    @property
    def collapse_ratio(self) -> float:
        """Impressions for each row of the collapsed log."""
        return self.pages.kept / max(self.lists, 1)

    def sentence(self) -> str:
        """One line on what was put aside."""
        return f"{self.rows.aside:,} of {self.rows.read:,} rows were put aside ({in_words(self.reasons)})"

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        tallies = {name: getattr(self, name).as_json() for name in ("rows", "pages", "clicks")}
        return asdict(self) | tallies | {"collapse_ratio": round(self.collapse_ratio, 4)}

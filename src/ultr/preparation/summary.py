"""The account of every row of a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ultr.counted import counted
from ultr.data.missing_values import in_words as missing_in_words
from ultr.errors import DataError
from ultr.files import read_json
from ultr.preparation.columns import Columns
from ultr.preparation.factors import FactorSummary
from ultr.preparation.reasons import CLICK, ONE_POSITION
from ultr.preparation.robots import Robots


@dataclass(frozen=True)
class Tally:
    """Numbers read, kept and put aside."""

    read: int
    kept: int
    repeated: int = 0
    """Number that were there already and count once."""

    @property
    def aside(self) -> int:
        """Number put aside: the rest."""
        return self.read - self.kept - self.repeated

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.read + other.read, self.kept + other.kept, self.repeated + other.repeated)

    def as_json(self, *, repeated: bool) -> dict[str, int]:
        """All numbers, that of the repeated ones if it is asked for."""
        again = {"repeated": self.repeated} if repeated else {}
        return {"read": self.read, "kept": self.kept, "aside": self.aside} | again


@dataclass(frozen=True)
class PutAside:
    """Cost of one reason."""

    reason: str
    rows: int
    clicks: int
    pages: int
    """Pages put aside whole for it; where only the row goes, the pages it was on."""
    whole_page: bool

    def __add__(self, other: PutAside) -> PutAside:
        return replace(
            self, rows=self.rows + other.rows, clicks=self.clicks + other.clicks, pages=self.pages + other.pages
        )


def in_words(reasons: Sequence[PutAside]) -> str:
    """Each reason with the rows it cost."""
    return ", ".join(f"{each.reason}: {each.rows:,}" for each in reasons)


_ADDED = ("rows", "pages", "clicks", "empty_pages", "several_clicks")
"""Numbers of a summary that are those of all days added up."""


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
    unusable: Mapping[str, int] = field(default_factory=dict)
    """Rows with a value that is no number, by feature."""
    changed: int = 0
    """Sets of features beyond the first of a document, each of which counts as a document of its own."""
    categories: Mapping[str, int] = field(default_factory=dict)
    """The number of values of each categorical feature."""
    several_clicks: int = 0
    """Rows with more than one click, which count as clicked; the signal `click_events` has their number."""
    null_is_no_click: bool = False
    """True if a row without a value of the click counts as not clicked."""
    signals: Mapping[str, int] = field(default_factory=dict)
    """The total of each signal."""
    robots: Robots | None = None
    """Pages that look like a robot's."""
    hints: tuple[str, ...] = ()
    """Columns that might have been of use."""
    periods: tuple[str, ...] = ()
    """The time at which each period begins."""
    grades: tuple[str, ...] = ()
    """The labels that documents have, from the worst to the best."""
    judged: int = 0
    """Number of documents that have one."""
    conflicting_labels: int = 0
    """Number of documents with two that differ, which count as not judged."""
    placed: tuple[int, int] | None = None
    """Shown documents with a placement propensity, and those of them that exploration might have put elsewhere."""
    elsewhere: Mapping[str, int] = field(default_factory=dict)
    """Events on documents that were not shown, by signal, which only logs of events have."""
    notes: tuple[str, ...] = ()
    """What else was found on the way, in sentences."""

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

    def __add__(self, other: Summary) -> Summary:
        """The account of both, where `other` is that of rows which were added to the log of this one."""
        added: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in _ADDED}
        both = {each.reason: each for each in self.reasons}
        for each in other.reasons:
            both[each.reason] = each + both[each.reason] if each.reason in both else each
        by_name: dict[str, Any] = {
            name: dict(Counter(getattr(self, name)) + Counter(getattr(other, name)))
            for name in ("unusable", "elsewhere")
        }
        robots = self.robots
        if robots is not None and other.robots is not None:
            robots = replace(
                other.robots,
                pages=robots.pages + other.robots.pages,
                clicks=robots.clicks + other.robots.clicks,
                users=robots.users + other.robots.users,
            )
        order = tuple(sorted(both.values(), key=lambda each: (-each.rows, each.reason)))
        return replace(other, source=f"{self.source}, {other.source}", reasons=order, robots=robots, **added, **by_name)

    @property
    def collapse_ratio(self) -> float:
        """Impressions for each row of the collapsed log."""
        return self.pages.kept / max(self.lists, 1)

    def warnings(self) -> list[str]:
        """What a user should know who has nothing but the log."""
        if not self.rows.aside:
            return []
        return [f"{self.rows.aside:,} of {self.rows.read:,} rows were put aside ({in_words(self.reasons)})"]

    def lines(self) -> Iterator[str]:
        """What else there is to know, a line each; above all what may have changed the bias of the log."""
        yield (
            f"{counted(self.documents, 'document')} with {counted(self.features, 'feature')}; "
            f"{self.collapse_ratio:.2f} impressions a list"
        )
        yield f"{self.empty_pages:,} of {self.pages.kept:,} pages have no click"
        yield from self._about_clicks()
        yield from self._about_features()
        if self.periods:
            # A fraction of a second is of no use here.
            first, last = (
                each.partition(".")[0] if ":" in each else each for each in (self.periods[0], self.periods[-1])
            )
            yield f"{counted(len(self.periods), 'period')} of time; the first begins at {first}, the last at {last}"
        if self.columns.label is not None:
            levels = f": {', '.join(self.grades)}" if self.grades else ""
            yield f"{self.judged:,} of {self.documents:,} documents have a label{levels}"
        if self.conflicting_labels:
            have = counted(self.conflicting_labels, "document has", "documents have")
            yield f"{have} labels that differ, and {_counts(self.conflicting_labels)} as not judged"
        if any(each.reason == ONE_POSITION.text for each in self.reasons):
            yield (
                "hint: where a search goes on to a second page under the same id, two documents have one position; "
                "tell pages apart with --impression SEARCH,PAGE, or give positions that go on"
            )
        for each in self.reasons:
            if each.reason == CLICK.text and each.rows and not each.clicks:
                yield (
                    f"hint: none of the {counted(each.rows, 'row')} without a number of clicks has one, and they are "
                    f"left out; if {self.columns.click} is empty there because nobody clicked, count it as 0: "
                    f"\"sql:SELECT * REPLACE (coalesce({self.columns.click}, 0) AS {self.columns.click}) FROM 'FILE'\""
                )
        for factor in self.factors:
            if factor.levels == 1 and factor.rare_values > 1:
                yield (
                    f"hint: no value of {factor.name} has as many impressions as --rare asks for, so that all are one "
                    "level, which tells nothing; is it an id? then leave it out"
                )
        yield from self.notes
        yield from (f"hint: {hint}" for hint in self.hints)

    def _about_clicks(self) -> Iterator[str]:
        if self.null_is_no_click:
            yield f"{self.columns.click} is never 0 but often missing, so missing counts as no click"
        if self.several_clicks:
            yield (
                f"{counted(self.several_clicks, 'row has', 'rows have')} more than one click; each counts as clicked, "
                "and the signal click_events has the numbers"
            )
        if self.rows.repeated:
            were = counted(self.rows.repeated, "row was", "rows were")
            yield f"{were} there already, the same in all columns, and {_counts(self.rows.repeated)} once"
        if self.signals:
            yield f"signals: {', '.join(f'{name} {total:,}' for name, total in self.signals.items())}"
        if self.elsewhere:
            yield (
                "events on documents that were not shown, which are left out: "
                f"{', '.join(f'{name} {count:,}' for name, count in self.elsewhere.items())}"
            )
        if self.placed is not None:
            known, explored = self.placed
            yield (
                f"{known:,} of {self.rows.kept:,} shown documents have a placement propensity; exploration might have "
                f"put {explored:,} of them elsewhere"
            )
        if self.robots is not None and self.robots.pages:
            yield self.robots.sentence(self.clicks.kept + (self.robots.clicks if self.robots.dropped else 0))

    def _about_features(self) -> Iterator[str]:
        if not self.features:
            yield "without features it can be examined, but not trained on; give --features or --features-from to train"
        if self.missing:
            yield missing_in_words(self.missing, self.features)
        if self.categories:
            named = [f"{name} ({counted(count, 'value')})" for name, count in self.categories.items()]
            yield f"categories: {', '.join(named)}"
        if self.unusable:
            named = [f"{name} ({counted(count, 'row')})" for name, count in self.unusable.items()]
            yield f"infinity or text in the features: {', '.join(named)}"
        if self.changed:
            yield (
                f"{counted(self.changed, 'time')} a document was shown with features that had changed; each set of "
                "features counts as a document of its own"
            )

    def tallies(self) -> dict[str, dict[str, int]]:
        """What became of rows, pages and clicks, all under the same names; `repeated` is one if a row was."""
        repeated = self.rows.repeated > 0
        counts = {"rows": self.rows, "pages": self.pages, "clicks": self.clicks}
        return {name: tally.as_json(repeated=repeated) for name, tally in counts.items()}

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return asdict(self) | self.tallies() | {"collapse_ratio": round(self.collapse_ratio, 4)}


def _counts(number: int) -> str:
    """The verb of so many."""
    return "counts" if number == 1 else "count"

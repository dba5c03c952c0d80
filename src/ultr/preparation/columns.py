"""Roles of the columns of a log: given, read from a TOML file, or guessed from usual names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ultr import checks
from ultr.data.bias_factor import checked_edges
from ultr.data.column_names import check_column, guess, listed
from ultr.data.grades import written
from ultr.errors import DataError, OptionError
from ultr.files import parse_toml

UBI = "ubi"
READY_MADE = ("expedia", "sogou", "trec2014", "trivago", "yandex", UBI)
"""Mappings that are part of ultr."""
ROLES = ("impression", "query", "document", "position", "click")
"""Roles that are guessed where they are not named."""
_NOT_IN_FILES = ("guessed",)


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The names of the columns; what is not named is guessed from usual names, or not there."""

    query: str | None = None
    """Column of the query."""
    document: str | None = None
    """Column of the document, or of the list of documents of a page."""
    position: str | None = None
    """Column of the position; a list of documents needs none."""
    click: str | None = None
    """Column of the click: 0 or 1, a truth value, or a number of clicks; of a page also as 0100."""
    impression: tuple[str, ...] = ()
    """Column that tells one result page from another; several (a,b) if one does not, such as a search and its page."""
    signals: Mapping[str, str] = field(default_factory=dict)
    """Other signals as NAME=COLUMN, or NAME=COLUMN>=NUMBER for what counts from a threshold, such as seconds."""
    user: str | None = None
    """Column of the user or session, to find robots by and to leave out those with few pages."""
    time: str | None = None
    """Column of the time of the page: timestamps, dates, numbers, or text of these; no cause of bias."""
    label: str | None = None
    """Column of a judge's grade of the document, to examine the log by; never trained on."""
    unjudged: tuple[str, ...] = ()
    """A label that says that there is none, such as -1."""
    propensity: str | None = None
    """Column of the probability with which exploration put the document where it was shown, above 0 and at most 1."""
    base_position: str | None = None
    """Column of the position that the document had before exploration, counted as positions are."""
    factors: tuple[str, ...] = ()
    """Column that is a cause of bias beside the position; NAME:E1,E2,... cuts numbers at these edges."""
    features: tuple[str, ...] = ()
    """Columns of features as a,b,c or by pattern as bm25_*; !NAME or !PATTERN leaves out."""
    separator: str = ","
    """Text between the documents of a page that is one text."""
    positions_from: int | None = None
    """Number of the first position in the log, by default 1."""
    guessed: tuple[str, ...] = ()
    """Roles that were guessed."""

    @property
    def first_position(self) -> int:
        """Number of the first position in the log."""
        return 1 if self.positions_from is None else self.positions_from

    @property
    def factor_names(self) -> tuple[str, ...]:
        """Names of the bias factors beside the position, without their edges."""
        return tuple(factor_column(each) for each in self.factors)

    def found_in(self, names: Sequence[str], *, what: str) -> Columns:
        """The columns as they are in a table with these names: checked, guessed where missing, patterns resolved."""
        for name in self.used():
            check_column(name, names, what=what)
        found = self
        for role in ROLES:
            if not getattr(self, role) and (usual := guess(role, names, taken=found.used())):
                value: Any = (usual,) if role == "impression" else usual
                found = replace(found, guessed=(*found.guessed, role), **{role: value})
        for role in ("query", "document", "click"):
            if not getattr(found, role):
                given = [each for each in ROLES if getattr(self, each)]
                why = f", beside what is taken already ({', '.join(given)})" if given else ""
                raise DataError(
                    f"{what} has no column that looks like the {role}{why}; name it with --{role}"
                    f"{', or give the table of clicks with --clicks-from' if role == 'click' else ''}, "
                    f"one of: {listed(names)}"
                )
        return replace(found, features=expand(self.features, names, what=what, taken=found.used()))

    def without(self, role: str) -> Columns:
        """The same without a role that was guessed."""
        nothing: Any = () if role == "impression" else None
        return replace(self, guessed=tuple(each for each in self.guessed if each != role), **{role: nothing})

    def used(self) -> list[str]:
        """The columns that have a role, features aside."""
        single = [self.query, self.document, self.position, self.click, self.user, self.time, self.label]
        single += [self.propensity, self.base_position]
        signals = [signal_column(text)[0] for text in self.signals.values()]
        return [*self.impression, *(name for name in single if name is not None), *signals, *self.factor_names]

    def taken_along(self) -> tuple[str, ...]:
        """The columns that say more of a page than what was shown and clicked."""
        single = (self.time, self.user, self.propensity, self.base_position)
        return tuple(dict.fromkeys([*self.factor_names, *(name for name in single if name)]))


def factor_column(text: str) -> str:
    """The column of a bias factor, which edges may follow."""
    return text.partition(":")[0]


def factor_edges(text: str) -> tuple[float, ...]:
    """The edges that are given with a bias factor, ascending; none if there are none.

    >>> factor_edges("pixels:0,300.5,900"), factor_edges("device")
    ((0.0, 300.5, 900.0), ())
    """
    name, given, edges = text.partition(":")
    return checked_edges(name, edges.split(",")) if given else ()


def signal_column(text: str) -> tuple[str, float | None]:
    """The column of a signal and the threshold from which it counts.

    >>> signal_column("dwell>=30"), signal_column("booked")
    (('dwell', 30.0), ('booked', None))
    """
    column, given, threshold = text.partition(">=")
    try:
        return column.strip(), float(threshold) if given else None
    except ValueError as error:
        raise OptionError(f"the threshold of the signal {text!r} must be a number") from error


def expand(patterns: Sequence[str], names: Sequence[str], *, what: str, taken: Sequence[str] = ()) -> tuple[str, ...]:
    """The columns that names and patterns stand for, each once; a pattern leaves out those that are taken.

    >>> expand(["age", "bm25_*", "!*_body"], ["bm25_title", "age", "bm25_body"], what="the log")
    ('age', 'bm25_title')
    """
    wanted = [pattern for pattern in patterns if not pattern.startswith("!") or pattern in names]
    left_out = [pattern[1:] for pattern in patterns if pattern not in wanted]
    free = [name for name in names if name not in taken]
    chosen: dict[str, None] = {}
    for pattern in wanted or (["*"] if left_out else []):
        fitting = [pattern] if pattern in names else [name for name in free if fnmatchcase(name, pattern)]
        if not fitting:
            check_column(pattern, names, what=what)
        chosen |= dict.fromkeys(fitting)
    for pattern in left_out:
        fitting = [name for name in chosen if name == pattern or fnmatchcase(name, pattern)]
        if not fitting and not any(fnmatchcase(name, pattern) for name in names):
            check_column(pattern, names, what=what)
        chosen = {name: None for name in chosen if name not in fitting}
    return tuple(chosen)


def read_columns(name: str | Path) -> Columns:
    """The columns of a ready-made mapping or of a TOML file."""
    if Path(name).suffix != ".toml":
        checks.one_of("columns must be a TOML file or", str(name), READY_MADE)
        return _parsed(files("ultr.preparation").joinpath("mappings", f"{name}.toml").read_text("utf-8"), name)
    try:
        return _parsed(Path(name).read_text("utf-8"), name)
    except OSError as error:
        raise DataError(f"cannot read {name}: {error.strerror}; give a TOML file with the names of columns") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is not a text file; give a TOML file with the names of columns") from error


def _parsed(text: str, where: str | Path) -> Columns:
    try:
        content = parse_toml(text, where)
        for key in content:
            checks.one_of("a key", key, [each.name for each in fields(Columns) if each.name not in _NOT_IN_FILES])
        if isinstance(impression := content.get("impression"), str):
            content["impression"] = [impression]
        if isinstance(unjudged := content.get("unjudged"), list):
            content["unjudged"] = [written(each) for each in unjudged]
        return TypeAdapter(Columns).validate_python(content)
    except OptionError as error:
        raise DataError(f"{where}: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise DataError(f"{where}: {place} is wrong: {first['msg'].lower()}") from error

"""Roles of the columns of a log: given, read from a TOML file, or guessed from usual names."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from ultr import checks
from ultr.data.column_names import check_column, guess, listed
from ultr.data.grades import written
from ultr.errors import DataError, OptionError

UBI = "ubi"
READY_MADE = ("yandex", "sogou", "trec2014", "trivago", UBI)
"""Mappings that are part of ultr."""


@dataclass(frozen=True)
class Columns:
    """The names of the columns; None or nothing is to be guessed, or not there."""

    impression: tuple[str, ...] = ()
    """Column that tells one result page from another; several together if one does not."""
    query: str | None = None
    document: str | None = None
    position: str | None = None
    click: str | None = None
    time: str | None = None
    """Time at which the page was shown."""
    label: str | None = None
    """A judge's label of the document."""
    unjudged: tuple[str, ...] = ()
    """Labels that say that there is none."""
    factors: tuple[str, ...] = ()
    """Columns that are causes of bias, beside the position."""
    features: tuple[str, ...] = ()
    """Names, or patterns such as `bm25_*`."""
    separator: str = ","
    """Between the documents of a page that is one text."""
    positions_from: int = 1
    """The number of the first position in the log."""
    guessed: tuple[str, ...] = ()
    """Roles that were guessed."""

    def with_given(self, **given: Any) -> Columns:
        """The same, with what is given in place of what was there; None is not given."""
        return replace(self, **{name: value for name, value in given.items() if value not in (None, ())})

    def without(self, role: str) -> Columns:
        """The same without a role that was guessed."""
        nothing: Any = () if role == "impression" else None
        return replace(self, guessed=tuple(each for each in self.guessed if each != role), **{role: nothing})

    def found_in(self, names: Sequence[str], *, what: str) -> Columns:
        """The columns as they are in a table with these names: checked, guessed where missing, patterns resolved."""
        for name in self._given():
            check_column(name, names, what=what)
        found = self
        for role in ("impression", "query", "document", "position", "click"):
            if not getattr(self, role) and (usual := guess(role, names, taken=found._given())):
                value: Any = (usual,) if role == "impression" else usual
                found = replace(found, guessed=(*found.guessed, role), **{role: value})
        for role in ("query", "document", "click"):
            if not getattr(found, role):
                raise DataError(
                    f"{what} has no column that looks like the {role}; name it with --{role}, one of: {listed(names)}"
                )
        return replace(found, features=expand(self.features, names, what=what, taken=found._given()))

    def taken_along(self) -> tuple[str, ...]:
        """The columns that say more of a page than what was shown and clicked."""
        return tuple(dict.fromkeys([*self.factors, *([self.time] if self.time else [])]))

    def _given(self) -> list[str]:
        single = [self.query, self.document, self.position, self.click, self.time, self.label]
        return [*self.impression, *(name for name in single if name is not None), *self.factors]


def expand(patterns: Sequence[str], names: Sequence[str], *, what: str, taken: Sequence[str] = ()) -> tuple[str, ...]:
    """The columns that names and patterns stand for, each once; a pattern leaves out those that are taken.

    >>> expand(["age", "bm25_*"], ["bm25_title", "age", "bm25_body"], what="the log")
    ('age', 'bm25_title', 'bm25_body')
    """
    chosen: dict[str, None] = {}
    for pattern in patterns:
        free = [name for name in names if name not in taken]
        fitting = [pattern] if pattern in names else [name for name in free if fnmatchcase(name, pattern)]
        if not fitting:
            check_column(pattern, names, what=what)
        chosen |= dict.fromkeys(fitting)
    return tuple(chosen)


def read_columns(name: str | Path) -> Columns:
    """The columns of a ready-made mapping or of a TOML file."""
    if str(name) == UBI:
        return Columns(("impression",), "query", "document", "position", "click")
    if str(name) in READY_MADE:
        return _parsed(files("ultr.preparation").joinpath("mappings", f"{name}.toml").read_text(), name)
    path = Path(name)
    if path.suffix != ".toml":
        checks.one_of("columns must be a TOML file or", str(name), READY_MADE)
    try:
        return _parsed(path.read_text(), path)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; give a TOML file with the names of columns") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a text file; give a TOML file with the names of columns") from error


def _parsed(text: str, where: str | Path) -> Columns:
    try:
        content = tomllib.loads(text)
        for key in content:
            checks.one_of("a key", key, [field.name for field in fields(Columns) if field.name != "guessed"])
        if isinstance(impression := content.get("impression"), str):
            content["impression"] = [impression]
        if isinstance(unjudged := content.get("unjudged"), list):
            content["unjudged"] = [written(each) for each in unjudged]
        return TypeAdapter(Columns).validate_python(content)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{where} is not valid TOML: {error}") from error
    except OptionError as error:
        raise DataError(f"{where}: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise DataError(f"{where}: {place} is wrong: {first['msg'].lower()}") from error

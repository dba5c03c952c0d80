"""Columns of features by their kind: numbers, categories, or embeddings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from ultr.data.column_names import listed
from ultr.data.embedding_columns import element_names
from ultr.errors import DataError
from ultr.preparation.engine import Engine
from ultr.preparation.values import no_number, no_number_at_all, number, text

NUMBER, CATEGORY, EMBEDDING = "number", "category", "embedding"
MOST_CATEGORIES = 10_000
"""A text with more values is a title or an id."""
MOSTLY = 0.9
"""A text is a number if at least this share of its values is one."""


@dataclass(frozen=True)
class FeatureColumn:
    """A column of features."""

    name: str
    kind: str = NUMBER
    length: int = 1
    """Numbers of an embedding."""

    @property
    def names(self) -> tuple[str, ...]:
        """The features that it gives."""
        return tuple(element_names(self.name, self.length)) if self.kind == EMBEDDING else (self.name,)

    def values(self, table: Any) -> list[Any]:
        """The values of each of its features as float32, or as text of a category; null where one is missing."""
        column = table[self.name]
        if self.kind == EMBEDDING:
            return [number(column[i]) for i in range(self.length)]
        return [text(column) if self.kind == CATEGORY else number(column)]

    def given(self, table: Any) -> Any:
        """The column to tell lists apart by: as it comes where that is cheaper, since equal lists meet again later."""
        column = table[self.name]
        kind = column.type()
        wide = self.kind == NUMBER and not (kind.is_float32() or kind.is_integer() or kind.is_boolean())
        return number(column) if wide else column

    def unusable(self, table: Any) -> Any:
        """True where the column has a value that is no valid feature; a missing one is."""
        column = table[self.name]
        if self.kind == CATEGORY:
            return text(column).length() < 0
        if self.kind == NUMBER:
            return no_number(column)
        wrong = reduce(or_, (no_number(column[i]) for i in range(self.length)))
        return column.notnull() & (wrong | (column.length() != self.length))


def feature_columns(
    engine: Engine, table: Any, names: Sequence[str], *, what: str, categories: Collection[str] = ()
) -> tuple[FeatureColumn, ...]:
    """The kinds of these columns; one that cannot be a feature is a `DataError` that names it.

    Types that cannot be are refused before anything is read. Text is a number if nearly all of it is, else a category;
    `categories` are names of those that are known from before.
    """
    schema = {name: table[name].type() for name in names}
    for name, kind in schema.items():
        floats = kind.is_array() and (kind.value_type.is_numeric() or kind.value_type.is_null())
        if not (kind.is_numeric() or kind.is_boolean() or kind.is_string() or floats):
            raise DataError(
                f"column {name!r} of {what} holds {kind}, which cannot be a feature; "
                f"leave it out with --features '!{name}', or turn it into numbers"
            )
    texts = [name for name, kind in schema.items() if kind.is_string()]
    lists = [name for name, kind in schema.items() if kind.is_array()]
    found = _looked_at(engine, table, texts, lists)
    return tuple(_column(name, schema[name], found, what, known=name in categories) for name in names)


def _looked_at(engine: Engine, table: Any, texts: Sequence[str], lists: Sequence[str]) -> dict[str, Any]:
    """Counts of all columns that have to be looked at, in one pass."""
    counts: dict[str, Any] = {}
    for name in texts:
        counts[f"given {name}"] = text(table[name]).notnull().cast("int64").sum()
        counts[f"wrong {name}"] = no_number_at_all(table[name]).cast("int64").sum()
        counts[f"values {name}"] = table[name].approx_nunique()
    for name in lists:
        counts[f"shortest {name}"] = table[name].length().min()
        counts[f"longest {name}"] = table[name].length().max()
    return engine.row(table.aggregate(**counts)) if counts else {}


def _column(name: str, kind: Any, found: Mapping[str, Any], what: str, *, known: bool) -> FeatureColumn:
    if kind.is_array():
        shortest, longest = found[f"shortest {name}"], found[f"longest {name}"]
        if not longest or shortest != longest:
            raise DataError(
                f"column {name!r} of {what} holds lists of {shortest or 0} to {longest or 0} numbers, and an embedding "
                f"has one length; mend it, or leave it out with --features '!{name}'"
            )
        return FeatureColumn(name, EMBEDDING, int(longest))
    if known:
        return FeatureColumn(name, CATEGORY)
    if not kind.is_string():
        return FeatureColumn(name)
    given, wrong = int(found[f"given {name}"] or 0), int(found[f"wrong {name}"] or 0)
    if wrong <= (1 - MOSTLY) * given:
        return FeatureColumn(name)
    if found[f"values {name}"] > MOST_CATEGORIES:
        raise DataError(
            f"column {name!r} of {what} holds text with about {found[f'values {name}']:,} different values, too many "
            f"for categories ({MOST_CATEGORIES:,}); leave it out with --features '!{name}'"
        )
    return FeatureColumn(name, CATEGORY)


def in_words(columns: Sequence[FeatureColumn]) -> str:
    """One line on features that are no plain numbers; empty if there are none."""
    categories = [column.name for column in columns if column.kind == CATEGORY]
    embeddings = [f"{column.name} ({column.length} numbers)" for column in columns if column.kind == EMBEDDING]
    parts = [f"categories: {listed(categories, most=5)}"] if categories else []
    return "; ".join([*parts, *([f"embeddings: {listed(embeddings, most=5)}"] if embeddings else [])])

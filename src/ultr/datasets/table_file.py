"""Judged lists and candidates in CSV and Parquet files, with features by name."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ultr.arrays import Integers, Mask, Strings
from ultr.data import ragged
from ultr.data.categories import Categories, category_columns, never_seen
from ultr.data.column_names import check_column, guess, listed
from ultr.data.embedding_columns import spread_embeddings, spread_names
from ultr.data.judged import JudgedLists
from ultr.data.named_features import column_order, feature_matrix, numbers
from ultr.datasets.delimited import TABS, delimiter, ending, first_line, not_utf8
from ultr.datasets.svmlight_lines import HIGHEST_LABEL
from ultr.errors import DataError

if TYPE_CHECKING:
    import pyarrow

PARQUET = (".parquet", ".pq")
SUFFIXES = (*PARQUET, ".csv", *TABS)


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table that are no features; None is to be guessed from usual names."""

    query: str | None = None
    label: str | None = None
    document: str | None = None

    def found_in(self, names: Sequence[str], features: Sequence[str], *, what: object) -> TableColumns:
        """The same, checked, and guessed where they are not given; no feature is taken for anything else."""
        found = self
        for role, given in vars(self).items():
            if given is not None:
                check_column(given, names, what=str(what))
            found = replace(found, **{role: given or guess(role, names, taken=[*features, *found.given()])})
        if found.query is None:
            raise DataError(
                f"{what} has no column that looks like the query; name it with --query-column or call it query; "
                f"it has: {listed(names)}"
            )
        return found

    def given(self) -> list[str]:
        """The names that are known."""
        return [name for name in (self.query, self.label, self.document) if name is not None]


@dataclass(frozen=True, eq=False)
class TableLists:
    """The lists of a file, queries in the order in which they first occur and their rows in that of the file."""

    judged: JudgedLists
    """Labels are 0 if the file has none."""
    document_ids: Strings | None
    """[documents], if the file has them."""
    columns: TableColumns
    """The columns that were taken for query, label and document."""
    note: str
    """The same in words, with what was guessed."""
    never_seen: Mask | None = None
    """[documents, features], True for values of categorical features that are not among those that are known, whatever
    they count as; None if there are no such features."""

    @classmethod
    def read(
        cls,
        path: str | Path,
        columns: TableColumns | None = None,
        *,
        features: Sequence[str] | None = None,
        categories: Categories | None = None,
    ) -> TableLists:
        """The lists of a CSV or Parquet file.

        Args:
            path: The file; its ending says what it is.
            columns: The columns of query, label and document; those that are not given are guessed.
            features: The features that a ranker knows, which are matched by name; by default all other columns.
            categories: The values of those that are categorical, by which columns of texts become codes.

        """
        asked = columns or TableColumns()
        file = TableFile(Path(path))
        names = file.names()
        found = asked.found_in(names, features or (), what=path)
        others = [name for name in names if name not in found.given()]
        if features is not None:
            column_order(spread_names(others, features), features, what=str(path))
        known = categories or {}
        table = spread_embeddings(file.read(others, found, known), [*found.given(), *(features or ())], what=str(path))
        chosen = (
            [name for name in table.column_names if name not in found.given()] if features is None else list(features)
        )
        query_ids = file.texts(table, str(found.query))
        firsts, queries = np.unique(query_ids, return_index=True, return_inverse=True)[1:]
        # Queries by their first row; `stable` keeps the rows of each in the order of the file.
        order = np.argsort(firsts[queries], kind="stable")
        judged = JudgedLists.of(
            features=feature_matrix(table, chosen, categories=known, what=str(path), place=file.place, order=order),
            labels=np.zeros(len(order)) if found.label is None else file.grades(table, found.label)[order],
            offsets=ragged.from_lengths(np.unique(firsts[queries], return_counts=True)[1]),
            query_ids=query_ids[np.sort(firsts)].tolist(),
            feature_names=chosen,
        )
        ids = None if found.document is None else file.texts(table, found.document)[order]
        roles = [
            f"{role} = {name or 'none'}{'' if name is None or getattr(asked, role) else ' (guessed)'}"
            for role, name in vars(found).items()
        ]
        note = f"{path}: {', '.join(roles)}, {len(chosen)} features by name"
        return cls(judged, ids, found, note, _never_seen(table, chosen, known, order))


def is_table(path: str | Path) -> bool:
    """True if the ending of a file says CSV or Parquet."""
    return ending(Path(path)) in SUFFIXES


def read_table(
    path: str | Path,
    *,
    query: str | None = None,
    label: str | None = None,
    document: str | None = None,
    features: Sequence[str] | None = None,
    categories: Categories | None = None,
) -> JudgedLists:
    """The judged lists in a CSV or Parquet file with named columns.

    Rows of a query need not stand together: queries come in the order in which they first occur, and the documents of
    each in that of the file.

    Args:
        path: The file.
        query: The column of the query id; by default it is guessed from usual names, as the others are.
        label: The column of the graded relevance.
        document: The column of the document id, which is left out.
        features: The features in their order; by default all other columns. Others than these are refused.
        categories: The values of categorical features, such as those of a log (`log.categories`) or of a ranker, by
            which columns of texts become codes.

    """
    lists = TableLists.read(path, TableColumns(query, label, document), features=features, categories=categories)
    check_labels(lists, path)
    return lists.judged


def check_labels(lists: TableLists, path: str | Path) -> None:
    """Raise a `DataError` unless the file has labels."""
    if lists.columns.label is None:
        raise DataError(
            f"{path} has no column that looks like the label; name it with --label-column or call it label; "
            f"its features are: {listed(lists.judged.feature_names)}"
        )


def _never_seen(table: pyarrow.Table, names: Sequence[str], categories: Categories, order: Integers) -> Mask | None:
    columns = category_columns(names, categories)
    if not columns:
        return None
    marked = np.zeros((len(table), len(names)), dtype=np.bool_)
    for column, values in columns.items():
        marked[:, column] = never_seen(table[names[column]], values)[order]
    return marked


@dataclass(frozen=True)
class TableFile:
    """A file whose columns are read when it is known what they are."""

    path: Path

    @property
    def is_parquet(self) -> bool:
        """True if the ending says Parquet."""
        return ending(self.path) in PARQUET

    def place(self, row: int) -> str:
        """The place of the row of this number, from 1; the first line of a CSV file is its header."""
        return f"row {row}" if self.is_parquet else f"line {row + 1}"

    def names(self) -> list[str]:
        """The columns, each of which must be there once."""
        from pyarrow import parquet

        with self._explained():
            if self.is_parquet:
                names = list(parquet.read_schema(self.path).names)
            elif (header := first_line(self.path)).strip():
                names = next(csv.reader([header], delimiter=delimiter(self.path, header)))
            else:
                raise DataError(f"{self.path} is empty; its first line must hold the names of the columns")
        column_order(names, names, what=str(self.path))
        return names

    def read(self, features: Sequence[str], columns: TableColumns, categories: Categories) -> pyarrow.Table:
        """The columns that are asked for; those of CSV are numbers and texts, whatever the first lines look like."""
        import pyarrow
        from pyarrow import csv as arrow_csv
        from pyarrow import parquet

        with self._explained():
            if self.is_parquet:
                return parquet.read_table(self.path, columns=[*features, *columns.given()])
            types = dict.fromkeys(columns.given(), pyarrow.string())
            types |= {name: pyarrow.string() if name in categories else pyarrow.float64() for name in features}
            if columns.label is not None:
                types[columns.label] = pyarrow.float64()
            return arrow_csv.read_csv(
                self.path,
                # Without threads, messages say the line.
                read_options=arrow_csv.ReadOptions(use_threads=False),
                parse_options=arrow_csv.ParseOptions(delimiter=delimiter(self.path, first_line(self.path))),
                convert_options=arrow_csv.ConvertOptions(column_types=types, include_columns=list(types)),
            )

    def texts(self, table: pyarrow.Table, name: str) -> Strings:
        """A column of ids as texts."""
        import pyarrow

        with self._explained():
            texts = np.array(table[name].cast(pyarrow.string()).fill_null("").to_pylist(), dtype=np.str_)
        if (texts == "").any():
            row = int(np.argmax(texts == "")) + 1
            raise DataError(f"column {name!r} of {self.path} has no value in {self.place(row)}; fill it in first")
        return texts

    def grades(self, table: pyarrow.Table, name: str) -> Integers:
        """A column of labels."""
        labels = numbers(table[name], name, what=str(self.path), place=self.place)
        if np.isnan(labels).any():
            row = int(np.argmax(np.isnan(labels))) + 1
            raise DataError(f"column {name!r} of {self.path} has no value in {self.place(row)}; fill it in first")
        wrong = (labels != np.floor(labels)) | (labels < 0) | (labels > HIGHEST_LABEL)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise DataError(
                f"column {name!r} of {self.path} must hold labels from 0 to {HIGHEST_LABEL}, integers, "
                f"got {labels[row]:g} in {self.place(row + 1)}"
            )
        return labels.astype(np.int64)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn an error of Arrow into a `DataError` with the file and, where it says so, the line."""
        import pyarrow

        try:
            yield
        except (pyarrow.ArrowException, OSError) as error:
            # A file that is not there or closed has a number; one that cannot be unpacked has none.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            text = str(error).partition("\n")[0]
            wrong = re.fullmatch(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to double: (.*)", text)
            if coded := re.fullmatch(r"In CSV column #\d+: Row #(\d+): .*invalid UTF8 data", text):
                raise DataError(not_utf8(self.path, coded[1])) from error
            if "\ufffd" in text and text.endswith("does not exist in CSV file"):
                raise DataError(not_utf8(self.path, 1)) from error
            if wrong:
                name, line, why = self.names()[int(wrong[1])], wrong[2], wrong[3]
                text = f"column {name!r} is no number in line {line}: {why}; leave the column out or convert it"
            raise DataError(f"{self.path} cannot be read: {text}") from error

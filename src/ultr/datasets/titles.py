"""Titles of documents, for people who do not know them by their ids."""

from __future__ import annotations

from pathlib import Path

import pyarrow

from ultr.data.column_names import guess, listed
from ultr.datasets.table_file import TableColumns, TableFile
from ultr.errors import DataError


def read_titles(path: str | Path) -> dict[str, str]:
    """The title of each document by its id, from a CSV or Parquet file with a column of each.

    The columns are known by usual names, such as `document` and `title`. Documents without a title are left out; of
    several titles of one document the last counts.
    """
    file = TableFile(Path(path))
    names = file.names()
    document, title = guess("document", names), guess("title", names)
    if document is None or title is None:
        role = "title" if document is not None else "document id"
        raise DataError(
            f"{path} has no column that looks like the {role}; call the two columns document and title; "
            f"it has: {listed(names)}"
        )
    table = file.read([], TableColumns(query=document, document=title), {})
    titles = table[title].cast(pyarrow.string()).fill_null("").to_pylist()
    return {key: text for key, text in zip(file.texts(table, document).tolist(), titles, strict=True) if text.strip()}

"""Rows as other ranking libraries take them: a matrix of features, a value per row, and the rows of a page together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from ultr.arrays import Floats, Integers, Strings
from ultr.data import ragged
from ultr.data.categories import Categories, as_texts, decoded
from ultr.data.click_log import ClickLog
from ultr.data.embedding_columns import spread_embeddings
from ultr.data.judged import JudgedLists
from ultr.data.log_checks import whole_numbers
from ultr.data.named_features import arrow_table, feature_matrix
from ultr.errors import DataError, OptionError

if TYPE_CHECKING:
    import pyarrow

MOST_CATEGORIES = 10_000
"""A text with more values is a title or an id, no category."""


def log_of_rows(
    features: object,
    clicks: object,
    *,
    qid: object = None,
    group: object = None,
    position: object = None,
    impressions: object = None,
    factors: Mapping[str, object] | None = None,
    pairs: bool = False,
) -> ClickLog:
    """A click log from rows as XGBoost and LightGBM take them: one per shown document, the rows of a page together.

    Args:
        features: An array [rows, features], or a frame (pandas, polars, Arrow, a mapping of columns), whose columns
            name the features; columns of texts are categories, columns of lists of numbers embeddings.
        clicks: Clicks of each row, 0 or 1, or counts where a page stands for several impressions.
        qid: Query of each row. Alone, it says which rows are one page, so a query is shown on one page only.
        group: Rows of each page, such as `[10, 10, 8]`. With `qid`, a query may have many pages; without, each page is
            a query of its own.
        position: Position of each row as shown, from 1; by default the order of the rows of a page.
        impressions: Impressions of each page, one number per page or per row; by default 1.
        factors: Further bias factors by name, a value per row, such as `{"device": [...]}`.
        pairs: Count which documents were clicked together, as `PairDebias` needs it.

    >>> log_of_rows([[0.1], [0.7], [0.4]], [0, 1, 0], qid=[7, 7, 9])
    ClickLog(2 lists of 2 queries, 2 impressions, 1 clicks, factors position)

    """
    matrix, names, categories = _features(features, with_texts=True)
    offsets, queries = _pages(len(matrix), qid=qid, group=group)
    places = None if position is None else _positions(position, offsets, several=group is None)
    _check_length("clicks", clicks, len(matrix))
    by_row = {"clicks": clicks, "qid": qid, "position": position, "impressions": impressions, **(factors or {})}
    for name, values in by_row.items():
        check_index(name, values, features)
    causes: dict[str, Any] = {name: np.asarray(values) for name, values in (factors or {}).items()}
    if taken := causes.keys() & signature(ClickLog.of).parameters.keys():
        raise OptionError(f"a bias factor cannot be called {min(taken)!r}, which is another part of a log; rename it")
    return ClickLog.of(
        features=matrix,
        documents=np.arange(len(matrix)),
        offsets=offsets,
        clicks=clicks,
        positions=places,
        impressions=None if impressions is None else _one_per_page("impressions", impressions, offsets),
        queries=queries,
        feature_names=names,
        categories=categories,
        pairs=pairs,
        **causes,
    )


def judged_of_rows(features: object, labels: object, *, qid: object = None, group: object = None) -> JudgedLists:
    """Judged lists from rows as XGBoost and LightGBM take them, the rows of a query together.

    >>> judged_of_rows([[0.1], [0.7], [0.4]], [0, 2, 1], group=[2, 1])
    JudgedLists(2 queries, 3 documents, 1 features, labels 0-2)
    """
    matrix, names, _ = _features(features, with_texts=False)
    offsets, queries = _pages(len(matrix), qid=qid, group=group)
    _check_length("labels", labels, len(matrix))
    for name, values in {"labels": labels, "qid": qid}.items():
        check_index(name, values, features)
    return JudgedLists.of(
        features=matrix,
        labels=whole_numbers("labels", labels, of="judged lists"),
        offsets=offsets,
        query_ids=None if queries is None else queries.tolist(),
        feature_names=names,
    )


def check_index(name: str, values: object, features: object) -> None:
    """Refuse rows of pandas in another order than those of the features, which are taken as they come."""
    ours: Any = getattr(features, "index", None)
    theirs: Any = getattr(values, "index", None)
    both = all(hasattr(each, "equals") for each in (ours, theirs))
    if both and not ours.equals(theirs) and ours.sort_values().equals(theirs.sort_values()):
        raise OptionError(
            f"{name} has the index of the features in another order, and rows are taken as they come; "
            f"give {name}.loc[features.index], or {name}.to_numpy() if its rows are right as they come"
        )


def data_of(
    data: object,
    clicks: object,
    rows: Mapping[str, Any],
    *,
    wanted: type[ClickLog] | type[JudgedLists],
    what: str,
    pairs: bool = False,
) -> ClickLog | JudgedLists:
    """The data that `fit` was given: a log or judged lists as they are, or made of rows.

    `rows` are the further arguments of `log_of_rows`, `what` is the name of the method that wants to learn from them.
    """
    given = [name for name, value in {"clicks": clicks, **rows}.items() if value is not None]
    if isinstance(data, ClickLog | JudgedLists):
        if given:
            raise OptionError(f"a {type(data).__name__} has all that {what} learns from; leave out {given[0]}")
        return data
    if clicks is None:
        kind = type(data).__name__
        how = "fit(X, clicks, qid=...)" if wanted is ClickLog else "fit(X, labels, qid=...)"
        reader = "ultr.read_log(df)" if wanted is ClickLog else "ultr.JudgedLists.of(...)"
        raise OptionError(
            f"{what} learns from {wanted.__name__}, got {kind}; make one with {reader}, or give it rows as {how}"
        )
    if wanted is ClickLog:
        return log_of_rows(data, clicks, pairs=pairs, **rows)
    for name in given:
        if name not in ("clicks", "qid", "group"):
            raise OptionError(f"{what} learns from labels, which have no {name}; leave it out")
    return judged_of_rows(data, clicks, qid=rows.get("qid"), group=rows.get("group"))


def row_offsets(rows: int, *, qid: object = None, group: object = None) -> Integers:
    """Offsets of the lists that so many rows are made of, by the query of each row or by the rows of each list.

    >>> row_offsets(5, qid=["a", "a", "b", "b", "b"]).tolist()
    [0, 2, 5]
    """
    return _pages(rows, qid=qid, group=group)[0]


def _pages(rows: int, *, qid: object, group: object) -> tuple[Integers, Strings | None]:
    """The offsets of pages, and the query of each, None where every page is a query of its own."""
    if qid is None and group is None:
        raise OptionError(
            "nothing says which rows are one page; give qid=, the query of each row, or group=, the rows of each page"
        )
    if group is None:
        ids = _ids(qid, rows)
        starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]])) if rows else np.zeros(0, dtype=np.int64)
        firsts = np.unique(ids[starts], return_index=True)[1]
        if len(firsts) < len(starts):
            again = int(starts[np.setdiff1d(np.arange(len(starts)), firsts)[0]])
            raise DataError(
                f"qid {str(ids[again])!r} is back in row {again} after another one; put the rows of a page together; "
                "if a query has several pages, say with group= how many rows each of them has"
            )
        return np.append(starts, rows).astype(np.int64), ids[starts]
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu" or (sizes < 1).any() or sizes.sum() != rows:
        total = (
            f", got {len(sizes):,} that add up to {sizes.sum():,}" if sizes.dtype.kind in "iuf" and sizes.ndim else ""
        )
        raise DataError(f"group must be the rows of each page, integers from 1 that add up to {rows:,}{total}")
    offsets = ragged.from_lengths(sizes)
    return offsets, None if qid is None else _one_per_page("qid", _ids(qid, rows), offsets)


def _ids(qid: object, rows: int) -> Strings:
    values = np.asarray(qid)
    _check_length("qid", values, rows)
    missing = np.array([value is None or value != value for value in values.tolist()], dtype=bool)
    if missing.any():
        raise DataError(f"qid has no value in row {int(missing.argmax())}; fill it in first")
    if values.dtype.kind == "f" and (values == np.floor(values)).all():
        values = values.astype(np.int64)
    return np.array([str(value) for value in values.tolist()], dtype=np.str_)


def _one_per_page(name: str, values: object, offsets: Integers) -> Any:
    """A value for each page, out of one for each page or one for each row, which must not differ within a page."""
    given, pages = np.asarray(values), len(offsets) - 1
    if given.shape == (pages,):
        return given
    if given.shape != (int(offsets[-1]),):
        raise DataError(f"{name} must have one value for each of {pages:,} pages or of {offsets[-1]:,} rows")
    differs = given != np.repeat(given[offsets[:-1]], np.diff(offsets))
    if differs.any():
        row = int(differs.argmax())
        page = int(np.searchsorted(offsets, row, side="right"))
        raise DataError(f"{name} changes within page {page}, in row {row}; a page has one value of it")
    return given[offsets[:-1]]


def _positions(position: object, offsets: Integers, *, several: bool) -> Integers:
    _check_length("position", position, int(offsets[-1]))
    places, pages = whole_numbers("position", position), ragged.list_numbers(offsets)
    order = np.lexsort((places, pages))
    same = (np.diff(places[order]) == 0) & (np.diff(pages[order]) == 0)
    if same.any():
        rows = sorted((int(order[:-1][same][0]), int(order[1:][same][0])))
        way_out = (
            "; if qid was shown on several pages, say with group= how many rows each of them has" if several else ""
        )
        raise DataError(
            f"rows {rows[0]} and {rows[1]} are both at position {places[rows[0]]} of page {pages[rows[0]] + 1}; if one "
            f"is a copy of the other, drop it{way_out}"
        )
    return places


def _check_length(name: str, values: object, rows: int) -> None:
    shape = np.asarray(values).shape
    if shape != (rows,):
        raise DataError(f"{name} must have one value for each of {rows:,} rows, got the shape {shape}")


def _features(features: object, *, with_texts: bool) -> tuple[Floats, Sequence[str] | None, Categories]:
    """The matrix, its names and its categories; an array has neither."""
    if isinstance(features, np.ndarray | list | tuple):
        matrix = np.asarray(features, dtype=np.float32)
        if matrix.ndim != 2:
            raise DataError(f"features must be an array of rows and features, got the shape {matrix.shape}")
        return matrix, None, {}
    table = spread_embeddings(arrow_table(features), what="the frame")
    names = [name for name in table.column_names if with_texts and _is_text(table[name])]
    categories = {name: _values(table[name], name) for name in names}
    matrix = feature_matrix(table, table.column_names, categories=categories, what="the frame")
    return matrix, table.column_names, categories


def _is_text(column: pyarrow.ChunkedArray) -> bool:
    from pyarrow import types

    kind = decoded(column).type
    return bool(types.is_dictionary(column.type) or types.is_string(kind) or types.is_large_string(kind))


def _values(column: pyarrow.ChunkedArray, name: str) -> tuple[str, ...]:
    """The values of a categorical column in their order."""
    values = sorted(text for text in as_texts(column).unique().to_pylist() if text)
    if len(values) > MOST_CATEGORIES:
        raise DataError(
            f"column {name!r} of the frame has {len(values):,} different texts, which is a title or an id rather than "
            "a category; leave it out"
        )
    return tuple(values)

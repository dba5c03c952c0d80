"""Features of candidates matched by name to those that a ranker knows, so that no order of columns can deceive it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ultr.arrays import Floats, Integers
from ultr.data.categories import Categories, decoded, encode, warn_of_unseen
from ultr.data.column_names import closest, listed
from ultr.data.embedding_columns import spread_embeddings
from ultr.errors import DataError, OptionError, imported

if TYPE_CHECKING:
    import pyarrow

_SHOWN = 5
"""Names in a message."""


def match_features(
    frame: object, names: Sequence[str], *, categories: Categories | None = None, ids: Collection[str] = ()
) -> Floats:
    """The features of a frame as float32 [rows, features], its columns matched by name and in the order of `names`.

    Args:
        frame: A mapping from names to columns, an Arrow table, or any frame that narwhals understands. A column `image`
            of lists of numbers stands for `image[0]`, `image[1]` and so on.
        names: The features that the ranker knows, in its order.
        categories: The values of those that are categorical. Columns hold values, which become codes; a value that is
            not among them becomes `other` or missing, with a warning.
        ids: Columns that are no features, such as query, document and label.

    Raises:
        DataError: A column is missing, unknown, there twice, no number or infinite somewhere.

    >>> match_features({"age": [1, 2], "bm25": [0.5, 3.0]}, ["bm25", "age"]).tolist()
    [[0.5, 1.0], [3.0, 2.0]]

    """
    table = spread_embeddings(arrow_table(frame), [*ids, *names], what="the frame")
    given = [name for name in table.column_names if name not in ids]
    column_order(given, names, what="the frame")
    return feature_matrix(table, names, categories=categories or {}, what="the frame")


def feature_matrix(
    table: pyarrow.Table,
    names: Sequence[str],
    *,
    categories: Categories,
    what: str,
    place: Callable[[int], str] = "row {}".format,
    order: Integers | slice = slice(None),
) -> Floats:
    """Columns of an Arrow table as float32 [rows, features], the rows in this order; values of categories as codes."""
    matrix = np.empty((len(table), len(names)), dtype=np.float32)
    unseen: dict[str, Counter[str]] = {}
    for number, name in enumerate(names):
        if name in categories:
            codes, unseen[name] = encode(_plain(table[name], name, what=what), categories[name])
            matrix[:, number] = codes[order]
        else:
            matrix[:, number] = numbers(table[name], name, what=what, place=place)[order]
    warn_of_unseen(unseen, categories, what=what)
    return matrix


def column_order(
    given: Sequence[str], names: Sequence[str], *, what: str, way_out: str = "give them under these names"
) -> list[int]:
    """Where each of `names` is among the given ones; all of them must be there, once, and no others.

    >>> column_order(["age", "bm25"], ["bm25", "age"], what="the frame")
    [1, 0]
    """
    places = {name: place for place, name in enumerate(given)}
    if len(places) < len(given):
        twice = next(name for name in given if list(given).count(name) > 1)
        raise DataError(f"{what} has several columns called {twice!r}; rename one of them")
    missing = [name for name in names if name not in places]
    unknown = [name for name in given if name not in set(names)]
    if missing and not are_numbers(names) and are_numbers(given):
        raise DataError(
            f"{what} has numbered features, but the ranker knows its {len(names)} features by name "
            f"({listed(names, most=_SHOWN)}), and numbers do not say which is which; "
            "give a CSV or Parquet file with named columns"
        )
    if missing:
        near = closest(missing[0], unknown)
        hint = f"is it {near!r}, which the ranker does not know?" if near else way_out
        raise DataError(
            f"{what} lacks {len(missing)} of the {len(names)} features of the ranker: {_quoted(missing)}; {hint}"
        )
    if unknown:
        raise DataError(
            f"{what} has columns that the ranker does not know: {_quoted(unknown)}; leave out what is no feature of it"
        )
    return [places[name] for name in names]


def are_numbers(names: Sequence[str]) -> bool:
    """Whether features are only numbered, from 1, as those of SVMlight files are."""
    return bool(names) and list(names) == [str(number) for number in range(1, len(names) + 1)]


def numbers(
    column: pyarrow.ChunkedArray, name: str, *, what: str, place: Callable[[int], str] = "row {}".format
) -> Floats:
    """A column of an Arrow table as float32, NaN where there is no value; none may be infinite.

    `place` says where the row of a number (from 1) is.
    """
    from pyarrow import types

    column = decoded(column)
    kind = column.type
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    if not any(fits(kind) for fits in numeric):
        example = f", such as {column[0].as_py()!r}" if len(column) else ""
        raise DataError(f"column {name!r} of {what} holds {kind}{example}, no numbers; leave it out or convert it")
    with np.errstate(over="ignore"):
        values: Floats = column.to_numpy().astype(np.float32)
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0]) + 1
        raise DataError(f"column {name!r} of {what} is infinite or too large in {place(row)}; mend it first")
    return values


def _plain(column: pyarrow.ChunkedArray, name: str, *, what: str) -> pyarrow.ChunkedArray:
    """A column of values of a category, none of which may be a list or a record."""
    from pyarrow import types

    if types.is_nested(column.type):
        raise DataError(f"column {name!r} of {what} holds {column.type}, no values of a category; give texts")
    return column


def arrow_table(frame: object) -> pyarrow.Table:
    """A frame as an Arrow table; an Arrow table stays what it is, and needs no narwhals."""
    import pyarrow

    if isinstance(frame, pyarrow.Table):
        return frame
    columns = frame if isinstance(frame, Mapping) else _columns_of(frame)
    arrays = {str(name): column for name, column in columns.items()}
    if len(arrays) < len(columns):
        raise DataError("the frame has several columns of one name; rename one of them")
    try:
        return pyarrow.table(arrays)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        why = str(error).partition("\n")[0]
        raise DataError(f"the frame cannot be read as columns of equal length: {why}") from error


def _columns_of(frame: Any) -> dict[Any, Any]:
    why = f"the frame, a {type(frame).__name__}, needs narwhals if it is not given as an Arrow table"
    narwhals = imported("narwhals", "prepare", why=why)
    wanted = "the frame must be a frame (pandas, polars, Arrow) or a mapping from names to columns"
    with explained_frame(frame, what="the frame", wanted=wanted):
        known = narwhals.from_native(frame)
        eager = known.collect() if isinstance(known, narwhals.LazyFrame) else known
        return {name: column.to_arrow() for name, column in zip(eager.columns, eager.iter_columns(), strict=True)}


@contextmanager
def explained_frame(frame: object, *, what: str, wanted: str) -> Iterator[None]:
    """Turn what narwhals and Arrow complain about into one sentence on a frame, or on what is none."""
    import narwhals
    import pyarrow

    try:
        yield
    except TypeError as error:
        raise OptionError(f"{wanted}, got {type(frame).__name__}") from error
    except (pyarrow.ArrowException, narwhals.exceptions.NarwhalsError) as error:
        why = " ".join(" ".join(map(str, error.args)).split())
        raise DataError(f"{what} cannot be used: {why}; give each column a name and a type of its own") from error


def _quoted(names: Sequence[str]) -> str:
    return listed([repr(name) for name in names], most=_SHOWN)

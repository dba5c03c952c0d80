"""Categorical features: their values are texts, and a feature matrix holds the codes of these, numbers from 0."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ultr.arrays import Floats, Mask
from ultr.errors import DataError, UltrWarning

if TYPE_CHECKING:
    import pyarrow

Categories: TypeAlias = Mapping[str, tuple[str, ...]]
"""The values of each categorical feature by its name; the code of a value is its place."""
OTHER = "other"
"""The value that stands for rare ones, and for those that were never seen."""
UNSEEN = -1
"""A code that is that of no value."""


def category_columns(names: Sequence[str], categories: Categories) -> dict[int, tuple[str, ...]]:
    """The values of each categorical feature by its column.

    >>> category_columns(["price", "brand"], {"brand": ("nike", "other")})
    {1: ('nike', 'other')}
    """
    return {column: categories[name] for column, name in enumerate(names) if name in categories}


def unseen_code(values: Sequence[str]) -> float:
    """The code of a value that is not among these: that of `other`, else NaN, as if it were missing."""
    return float(values.index(OTHER)) if OTHER in values else float("nan")


def encode(column: pyarrow.ChunkedArray, values: Sequence[str]) -> tuple[Floats, Counter[str]]:
    """The codes of a column as float32, NaN where there is no value, and how often texts are not among the values.

    Numbers are matched by how they are written, 3.0 as "3". An empty text is missing unless it is a value.

    >>> import pyarrow
    >>> encode(pyarrow.chunked_array([["nike", None, "puma"]]), ("nike", "other"))[1]
    Counter({'puma': 1})
    """
    texts = as_texts(column)
    known, unseen = _looked_up(texts, values)
    codes: Floats = known.to_numpy().astype(np.float32)
    codes[unseen.to_numpy()] = unseen_code(values)
    return codes, Counter(texts.filter(unseen).to_pylist())


def never_seen(column: pyarrow.ChunkedArray, values: Sequence[str]) -> Mask:
    """True where a column has a text that is not among the values.

    >>> import pyarrow
    >>> never_seen(pyarrow.chunked_array([["nike", None, "puma"]]), ("nike", "other")).tolist()
    [False, False, True]
    """
    unseen: Mask = _looked_up(as_texts(column), values)[1].to_numpy()
    return unseen


def _looked_up(texts: pyarrow.ChunkedArray, values: Sequence[str]) -> tuple[pyarrow.ChunkedArray, pyarrow.ChunkedArray]:
    """The place of each text among the values, null if it has none, and whether it is a text without one."""
    import pyarrow
    from pyarrow import compute

    known = compute.index_in(texts, value_set=pyarrow.array(values, pyarrow.string()))
    missing = compute.or_kleene(compute.is_null(texts), compute.equal(texts, ""))
    return known, compute.and_(compute.is_null(known), compute.invert(compute.fill_null(missing, fill_value=True)))


def decoded(column: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    """A column without Arrow's own dictionary, such as that of pandas' categories."""
    from pyarrow import types

    return column.cast(column.type.value_type) if types.is_dictionary(column.type) else column


def as_texts(column: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    """A column as texts; whole numbers without a point, and NaN as null."""
    import pyarrow
    from pyarrow import compute, types

    column = decoded(column)
    if types.is_floating(column.type):
        column = compute.if_else(compute.is_nan(column), None, column)
        if compute.all(compute.equal(column, compute.floor(column)), min_count=0).as_py():
            column = column.cast(pyarrow.int64(), safe=False)
    return column.cast(pyarrow.string())


def warn_of_unseen(unseen: Mapping[str, Counter[str]], categories: Categories, *, what: str) -> None:
    """Warn, once for all features, of values that are not in their dictionaries."""
    parts = []
    for name, texts in unseen.items():
        if texts:
            taken = "missing" if np.isnan(unseen_code(categories[name])) else repr(OTHER)
            parts.append(f"{texts.total():,} of {name!r}, such as {texts.most_common(1)[0][0]!r}, count as {taken}")
    if parts:
        told = f"{what} has values of categorical features that were not seen in training: {'; '.join(parts)}"
        warnings.warn(told, UltrWarning, stacklevel=4)


def recode(features: Floats, names: Sequence[str], given: Categories, wanted: Categories, *, what: str) -> Floats:
    """The feature matrix with the codes of other dictionaries; the same array where these are the same.

    >>> matrix, given = np.array([[0.0], [1.0]]), {"brand": ("nike", "puma")}
    >>> recode(matrix, ["brand"], given, {"brand": ("puma", "nike")}, what="the log").tolist()
    [[1.0], [0.0]]
    """
    if given.keys() != wanted.keys():
        name = next(iter(given.keys() ^ wanted.keys()))
        others = ("has categories of", "numbers") if name in given else ("has numbers as", "categories")
        raise DataError(f"{what} {others[0]} {name!r}, of which the ranker knows {others[1]}; prepare it the same way")
    changed = [column for column, name in enumerate(names) if name in wanted and given[name] != wanted[name]]
    if not changed:
        return features
    matrix = np.array(features)
    unseen: dict[str, Counter[str]] = {}
    for column in changed:
        name = names[column]
        places = {text: place for place, text in enumerate(wanted[name])}
        # The last one is for missing values.
        table = np.array([places.get(text, unseen_code(wanted[name])) for text in given[name]] + [np.nan])
        codes = np.nan_to_num(matrix[:, column], nan=len(table) - 1).astype(np.int64)
        matrix[:, column] = table[codes]
        counts = dict(zip(given[name], np.bincount(codes, minlength=len(table)).tolist(), strict=False))
        unseen[name] = Counter({text: count for text, count in counts.items() if count and text not in places})
    warn_of_unseen(unseen, wanted, what=what)
    return matrix

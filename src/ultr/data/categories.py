"""Categorical features: their values are texts, and a feature matrix holds the codes of these, numbers from 0."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ultr.arrays import Doubles, Floats
from ultr.errors import UltrWarning

if TYPE_CHECKING:
    import pyarrow

Categories: TypeAlias = Mapping[str, tuple[str, ...]]
"""The values of each categorical feature by its name; the code of a value is its place."""
OTHER = "other"
"""The value that stands for rare ones, and for those that were never seen."""


def category_columns(names: Sequence[str], categories: Categories) -> dict[int, tuple[str, ...]]:
    """The values of each categorical feature by its column.

    >>> category_columns(["price", "brand"], {"brand": ("nike", "other")})
    {1: ('nike', 'other')}
    """
    return {column: categories[name] for column, name in enumerate(names) if name in categories}


def unseen_code(values: Sequence[str]) -> float:
    """The code of a value that is not among these: that of `other`, else NaN, as if it were missing."""
    return float(values.index(OTHER)) if OTHER in values else float("nan")


def encode(column: pyarrow.ChunkedArray, values: Sequence[str]) -> tuple[Floats, list[str]]:
    """The codes of a column as float32, NaN where there is no value, and the texts that are not among the values.

    Numbers are matched by how they are written, 3.0 as "3". An empty text is missing unless it is a value.

    >>> import pyarrow
    >>> encode(pyarrow.chunked_array([["nike", None, "puma"]]), ("nike", "other"))[1]
    ['puma']
    """
    import pyarrow
    from pyarrow import compute

    texts = _as_texts(column)
    known = compute.index_in(texts, value_set=pyarrow.array(values, pyarrow.string()))
    missing = compute.or_kleene(compute.is_null(texts), compute.equal(texts, ""))
    unseen = compute.and_(compute.is_null(known), compute.invert(compute.fill_null(missing, fill_value=True)))
    codes: Floats = known.to_numpy().astype(np.float32)
    codes[unseen.to_numpy()] = unseen_code(values)
    return codes, texts.filter(unseen).to_pylist()


def _as_texts(column: pyarrow.ChunkedArray) -> pyarrow.ChunkedArray:
    import pyarrow
    from pyarrow import compute, types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_floating(column.type):
        column = compute.if_else(compute.is_nan(column), None, column)
        if compute.all(compute.equal(column, compute.floor(column)), min_count=0).as_py():
            column = column.cast(pyarrow.int64(), safe=False)
    return column.cast(pyarrow.string())


def warn_of_unseen(unseen: Mapping[str, Sequence[str]], categories: Categories, *, what: str) -> None:
    """Warn, once for all features, of values that are not in their dictionaries."""
    parts = []
    for name, texts in unseen.items():
        if texts:
            as_what = "missing" if np.isnan(unseen_code(categories[name])) else f"{OTHER!r}"
            parts.append(f"{len(texts):,} of {name!r}, such as {texts[0]!r}, count as {as_what}")
    if parts:
        told = f"{what} has values of categorical features that were not seen in training: {'; '.join(parts)}"
        warnings.warn(told, UltrWarning, stacklevel=3)


def recode(features: Floats, names: Sequence[str], given: Categories, wanted: Categories) -> Floats:
    """The feature matrix with codes of other dictionaries; the same array where all of them are the same.

    >>> recode(np.array([[0.0], [1.0]]), ["brand"], {"brand": ("nike", "puma")}, {"brand": ("puma", "other")}).tolist()
    [[1.0], [0.0]]
    """
    others = [column for column, name in enumerate(names) if name in wanted and given.get(name) != wanted[name]]
    if not others:
        return features
    matrix = np.array(features)
    for column in others:
        values, places = wanted[names[column]], {text: place for place, text in enumerate(wanted[names[column]])}
        unseen = unseen_code(values)
        # The last one is for missing values.
        table: Doubles = np.array([places.get(text, unseen) for text in given[names[column]]] + [np.nan])
        codes = matrix[:, column]
        matrix[:, column] = table[np.where(np.isnan(codes), len(table) - 1, codes).astype(np.int64)]
    return matrix

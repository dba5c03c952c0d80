"""Columns of lists of numbers, such as embeddings, as the columns that training makes of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ultr.errors import DataError

if TYPE_CHECKING:
    import pyarrow


def element_names(name: str, length: int) -> list[str]:
    """The features that an embedding gives.

    >>> element_names("image", 2)
    ['image[0]', 'image[1]']
    """
    return [f"{name}[{place}]" for place in range(length)]


def spread_names(given: Sequence[str], names: Sequence[str]) -> list[str]:
    """The given names, with `image` replaced by `image[0]`, `image[1]`, ... where `names` has those in its place.

    >>> spread_names(["image", "age"], ["age", "image[0]", "image[1]"])
    ['image[0]', 'image[1]', 'age']
    """
    known, spread = set(names), []
    for name in given:
        length = 0
        while name not in known and f"{name}[{length}]" in known:
            length += 1
        spread += element_names(name, length) if length else [name]
    return spread


def spread_embeddings(table: pyarrow.Table, keep: Collection[str] = (), *, what: str) -> pyarrow.Table:
    """The table with a column of numbers for each place of its columns of lists, except those to keep.

    A row without a list has no value in any of them. Lists of other than numbers stay.
    """
    import pyarrow

    columns: list[tuple[str, pyarrow.ChunkedArray | pyarrow.Array]] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in keep or not _holds_numbers(column.type):
            columns.append((name, column))
            continue
        values = _matrix(column, name, what=what)
        columns += zip(element_names(name, values.shape[1]), map(pyarrow.array, values.T), strict=True)
    return pyarrow.table([column for _, column in columns], names=[name for name, _ in columns])


def _holds_numbers(kind: pyarrow.DataType) -> bool:
    from pyarrow import types

    lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(fits(kind) for fits in lists) and (
        types.is_floating(kind.value_type) or types.is_integer(kind.value_type)
    )


def _matrix(column: pyarrow.ChunkedArray, name: str, *, what: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """A row for each list, NaN where there is none."""
    from pyarrow import compute

    present = column.is_valid().to_numpy()
    lengths = np.unique(compute.list_value_length(column.drop_null()).to_numpy())
    if len(lengths) != 1 or lengths[0] == 0:
        sizes = f"{lengths.min()} to {lengths.max()}" if len(lengths) else "no"
        raise DataError(
            f"column {name!r} of {what} holds lists of {sizes} numbers, and an embedding has one length; "
            "leave it out or mend it"
        )
    values = np.full((len(column), int(lengths[0])), np.nan)
    flat = compute.list_flatten(column.drop_null())
    values[present] = flat.to_numpy().astype(np.float64).reshape(-1, int(lengths[0]))
    return values

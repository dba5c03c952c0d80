"""The array types that ultr passes around, their ratio and their fingerprint."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float32]
Doubles: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.integer[Any]]
Counts: TypeAlias = Integers | Floats | Doubles
Mask: TypeAlias = npt.NDArray[np.bool_]
Strings: TypeAlias = npt.NDArray[np.str_]

_CHUNK = 2**24


def ratio(above: Counts, below: Counts, *, otherwise: float = 0.0) -> Doubles:
    """`above / below`, and `otherwise` where `below` is not above 0.

    >>> ratio(np.array([1, 0]), np.array([4, 0])).tolist()
    [0.25, 0.0]
    """
    return np.divide(above, below, out=np.full(np.shape(below), otherwise), where=below > 0)


def is_whole(array: npt.NDArray[Any]) -> bool:
    """True for integers that all fit into int64."""
    return array.dtype.kind in "iu" and np.can_cast(array.dtype, np.int64)


def fingerprint(*arrays: npt.NDArray[Any]) -> str:
    """A short name for the exact content of some arrays: equal arrays of one type give equal names."""
    digest = blake2b(digest_size=16)
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        rows = np.atleast_1d(array)
        step = max(_CHUNK * len(rows) // max(array.nbytes, 1), 1)
        for start in range(0, len(rows) if array.size else 0, step):
            digest.update(np.ascontiguousarray(rows[start : start + step]).data.cast("B"))
    return digest.hexdigest()

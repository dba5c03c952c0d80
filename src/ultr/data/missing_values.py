"""Missing values (NaN) of features: the share of each, and one line on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ultr.arrays import Doubles, Floats, Integers
from ultr.data.column_names import listed

_BLOCK = 2**22
"""Values that are looked at at once."""
_NAMED = 5
"""Features that are named."""


def missing_shares(features: Floats, names: Sequence[str]) -> dict[str, float]:
    """The share of documents in which each feature is missing, of those that are at all, most missing first.

    >>> missing_shares(np.array([[1, np.nan], [np.nan, np.nan]], dtype=np.float32), ["age", "price"])
    {'price': 1.0, 'age': 0.5}
    """
    return by_name(missing_counts(features) / max(len(features), 1), names)


def missing_counts(features: Floats) -> Integers:
    """The number of documents in which each feature is missing."""
    width = features.shape[1]
    counts = np.zeros(width, dtype=np.int64)
    step = max(_BLOCK // max(width, 1), 1)
    for start in range(0, len(features), step):
        counts += np.isnan(features[start : start + step]).sum(axis=0)
    return counts


def by_name(shares: Doubles, names: Sequence[str]) -> dict[str, float]:
    """The shares that are not 0 by the names of their features, the largest first."""
    order = np.argsort(-shares, kind="stable")
    return {names[column]: float(shares[column]) for column in order if shares[column]}


def in_words(shares: Mapping[str, float], features: int) -> str:
    """One line on the missing values of so many features.

    >>> in_words({"price": 1.0, "age": 0.0001}, 7).partition(";")[0]
    'missing values in 2 of 7 features: price (100.0%), age (<0.1%)'
    """
    named = [f"{name} ({'<0.1%' if share < 0.001 else f'{share:.1%}'})" for name, share in shares.items()]
    return (
        f"missing values in {len(shares):,} of {features:,} features: {listed(named, most=_NAMED)}; "
        "networks take the median (and an indicator, if enough were missing in training), trees take them as they are"
    )

"""The lists and the features that linear models look at."""

from __future__ import annotations

import numpy as np

from ultr.arrays import Doubles, Floats, Integers
from ultr.data.scaling import FeatureScaling
from ultr.seeding import generator

MOST_LISTS, MOST_VALUES = 20_000, 2**23
"""Most lists, and most values of features and positions, that are looked at; of larger logs, some lists are drawn."""
WIDEST = 3.0
"""Features are cut off at so many standard deviations."""


def sampled_lists(offsets: Integers, columns: int, *, purpose: str, seed: int) -> Integers:
    """The lists of more than one document, or some of them where so many columns make them too large."""
    lists, most = _several_documents(offsets, columns)
    if len(lists) > most:
        lists = np.sort(generator(seed, purpose).choice(lists, most, replace=False))
    return lists


def sampled_queries(queries: Integers, offsets: Integers, columns: int, *, purpose: str, seed: int) -> Integers:
    """The same with all lists of some queries in the place of some lists of all, so that documents are seen again."""
    lists, most = _several_documents(offsets, columns)
    if len(lists) > most:
        known, numbers = np.unique(queries[lists], return_inverse=True)
        order = np.argsort(generator(seed, purpose, "queries").permutation(len(known))[numbers], kind="stable")
        lists = np.sort(lists[order[:most]])
    return lists


def standardised(features: Floats, documents: Integers) -> Doubles:
    """Features with mean 0 and deviation 1, missing ones typical, far ones cut off, [documents, features]."""
    shown = features[documents]
    values = FeatureScaling.fit(shown).fill(shown).astype(np.float64)
    deviation = values.std(axis=0)
    values -= values.mean(axis=0)
    values /= np.where(deviation > 0, deviation, 1.0)
    return np.clip(values, -WIDEST, WIDEST, out=values)


def centred(values: Doubles, offsets: Integers) -> Doubles:
    """Values of documents, [documents] or [documents, columns], less the mean of their list; no list is empty."""
    lengths = np.diff(offsets)
    means = np.add.reduceat(values, offsets[:-1], axis=0) / lengths.reshape(-1, *[1] * (values.ndim - 1))
    return values - np.repeat(means, lengths, axis=0)


def _several_documents(offsets: Integers, columns: int) -> tuple[Integers, int]:
    """The lists of more than one document, and how many of them may be looked at."""
    lengths = np.diff(offsets)
    lists: Integers = np.flatnonzero(lengths > 1)
    by_values = MOST_VALUES / (columns * lengths[lists].mean()) if len(lists) else 0
    return lists, max(int(min(MOST_LISTS, by_values)), 2)

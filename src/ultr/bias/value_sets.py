"""The sets of bias values under which documents were seen, which decide how much of the bias can be identified."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ultr import checks
from ultr.arrays import Integers, Mask
from ultr.bias.rigidity import largest_dimension
from ultr.data import ragged, row_blocks
from ultr.data.click_log import ClickLog
from ultr.data.combinations import combinations
from ultr.data.gathering import take

MOST_SETS = 2**12
"""The most sets that are kept: those with the rarest pairs of values, since others cannot stand in for them."""


@dataclass(frozen=True, eq=False)
class ValueSets:
    """Distinct sets of two values or more, of documents with a click; values are numbered as in the bias graph."""

    seen: Mask
    """[sets, values]."""
    documents: Integers
    """[sets], how many documents were seen under exactly these values."""
    clicks: Integers
    """[sets], the clicks on them."""
    complete: bool = True
    """True if all sets are there; if not, what they identify is a lower bound."""

    @property
    def dimension(self) -> int:
        """The largest dimension of bias vectors that is identified, see `ultr.bias.rigidity`; 0 if none is."""
        return largest_dimension(self.seen, self.documents)

    def merged(self, most: int = MOST_SETS) -> ValueSets:
        """Equal sets made one, and no more sets than are looked at."""
        bits = np.packbits(self.seen, axis=1)
        whole = bits.view(np.dtype((np.void, bits.shape[1])))[:, 0]
        _, first, number = np.unique(whole, return_index=True, return_inverse=True)
        documents, clicks = (np.bincount(number, each) for each in (self.documents, self.clicks))
        found = ValueSets(self.seen[first], documents.astype(np.int64), clicks.astype(np.int64), self.complete)
        return found if len(first) <= most else found._rarest(most)

    def _rarest(self, most: int) -> ValueSets:
        together = (self.seen * self.documents[:, None]).T.astype(np.float64) @ self.seen
        np.fill_diagonal(together, np.inf)
        rarity = np.full(len(self.seen), np.inf)
        for value, under in enumerate(self.seen.T):
            others = np.where(self.seen[under], together[value], np.inf)
            rarity[under] = np.minimum(rarity[under], others.min(axis=1))
        kept = np.sort(np.lexsort((-self.seen.sum(axis=1), rarity))[:most])
        return ValueSets(self.seen[kept], self.documents[kept], self.clicks[kept], complete=False)


def value_sets(
    log: ClickLog, *, factors: Sequence[str] = ("position",), identities: Integers | None = None
) -> ValueSets:
    """The sets of values of some bias factors, or of combinations of their values, under which documents were seen.

    `identities` says for each row of the features which document it is, see `bias_graph`.

    >>> pages = {"documents": [0, 1, 1, 0, 2, 0], "offsets": [0, 2, 4, 6], "queries": ["a"] * 3}
    >>> log = ClickLog.of(features=np.eye(3), clicks=[1, 0, 1, 0, 1, 0], **pages)
    >>> found = value_sets(log)
    >>> found.seen.tolist(), found.documents.tolist(), found.clicks.tolist(), found.dimension
    ([[True, True]], [2], [2], 1)
    """
    known = {factor.name: factor for factor in log.factors}
    levels, values = combinations([known[checks.one_of("bias factor", name, known)].values for name in factors])
    documents = log.documents if identities is None else take(identities, log.documents)
    none = np.empty(0, dtype=np.int64)
    found = ValueSets(np.empty((0, len(levels)), dtype=np.bool_), none, none)
    for rows in row_blocks.row_blocks(documents):
        for some in _sets_of(documents[rows], values[rows], log.clicks[rows], count=len(levels)):
            found = ValueSets(
                np.concatenate([found.seen, some.seen]),
                np.concatenate([found.documents, some.documents]),
                np.concatenate([found.clicks, some.clicks]),
                complete=found.complete,
            ).merged()
    return found


def _sets_of(documents: Integers, values: Integers, clicks: Integers, *, count: int) -> Iterator[ValueSets]:
    """The set of each document that was clicked and seen under several values, some documents at a time."""
    keys, inverse = np.unique(documents.astype(np.int64) * count + values, return_inverse=True)
    offsets = np.append(np.flatnonzero(np.diff(keys // count, prepend=-1)), len(keys))
    clicked = np.add.reduceat(np.bincount(inverse, clicks), offsets[:-1]).astype(np.int64)
    telling = np.flatnonzero((np.diff(offsets) > 1) & (clicked > 0))
    step = max(ragged.SPAN // count, 1)
    for some in (telling[start : start + step] for start in range(0, len(telling), step)):
        seen = np.zeros((len(some), count), dtype=np.bool_)
        document = np.repeat(np.arange(len(some)), offsets[some + 1] - offsets[some])
        seen[document, keys[ragged.rows_of(some, offsets)] % count] = True
        yield ValueSets(seen, np.ones(len(some), dtype=np.int64), clicked[some])

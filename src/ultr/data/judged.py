"""Judged lists: the candidates of each query with features and graded relevance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ultr.arrays import Floats, Integers, Mask, Strings, fingerprint
from ultr.data import ragged
from ultr.data.column_names import check_names
from ultr.data.named_features import column_order
from ultr.data.notebook_tables import lists_as_html
from ultr.errors import DataError


@dataclass(frozen=True, eq=False)
class JudgedLists:
    """Candidates of many queries, ragged and without padding.

    The documents of query `i` are the rows `offsets[i]:offsets[i + 1]` of `features` and `labels`.

    >>> lists = JudgedLists.of(features=np.eye(3), labels=[2, 0, 1], offsets=[0, 2, 3])
    >>> lists
    JudgedLists(2 queries, 3 documents, 3 features, labels 0-2)
    """

    features: Floats
    """float32 [documents, features]; may be memory-mapped."""
    labels: Integers
    """int64 [documents], graded relevance, 0 = not relevant."""
    offsets: Integers
    """int64 [queries + 1]."""
    query_ids: Strings
    """[queries], as they stand in the source."""
    feature_names: tuple[str, ...]
    max_label: int
    """The highest grade of the whole data set, which a small part of it may not reach."""

    def __post_init__(self) -> None:
        documents = len(self.labels)
        if self.features.ndim != 2 or len(self.features) != documents:
            raise DataError(f"features must have one row for each of {documents} labels")
        if self.features.shape[1] != len(self.feature_names):
            raise DataError(f"{self.features.shape[1]} features, but {len(self.feature_names)} feature names")
        check_names(self.feature_names, what="features")
        ragged.check_offsets(self.offsets, documents, what="judged documents")
        if len(self.query_ids) != self.queries:
            raise DataError(f"{self.queries} queries, but {len(self.query_ids)} query ids")
        if documents and (self.labels.min() < 0 or self.labels.max() > self.max_label):
            raise DataError(f"labels must lie in 0..{self.max_label}; shift or clip negative grades first")

    @classmethod
    def of(
        cls,
        *,
        features: object,
        labels: object,
        offsets: object,
        query_ids: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
        max_label: int | None = None,
    ) -> JudgedLists:
        """Judged lists from anything numpy understands, with numbered queries and features by default."""
        matrix = np.asarray(features, dtype=np.float32)
        grades = np.asarray(labels, dtype=np.int64)
        starts = np.asarray(offsets, dtype=np.int64)
        names = [str(i + 1) for i in range(matrix.shape[1])] if feature_names is None else feature_names
        ids = query_ids if query_ids is not None else [str(i + 1) for i in range(len(starts) - 1)]
        top = int(grades.max(initial=0)) if max_label is None else max_label
        return cls(matrix, grades, starts, np.asarray(ids, dtype=np.str_), tuple(names), top)

    def __repr__(self) -> str:
        return (
            f"JudgedLists({self.queries:,} queries, {self.documents:,} documents, "
            f"{len(self.feature_names)} features, labels 0-{self.max_label})"
        )

    def _repr_html_(self) -> str:
        return lists_as_html(self)

    @property
    def queries(self) -> int:
        """The number of queries."""
        return len(self.offsets) - 1

    @property
    def documents(self) -> int:
        """The number of documents."""
        return len(self.labels)

    @property
    def lengths(self) -> Integers:
        """The number of documents of each query."""
        return np.diff(self.offsets)

    def select(self, queries: Integers | Mask) -> JudgedLists:
        """Only these queries (numbers or a mask), in this order."""
        chosen = ragged.chosen(queries)
        rows = ragged.rows_of(chosen, self.offsets)
        return replace(
            self,
            features=self.features[rows],
            labels=self.labels[rows],
            offsets=ragged.from_lengths(self.lengths[chosen]),
            query_ids=self.query_ids[chosen],
        )

    def with_relevant(self) -> JudgedLists:
        """Only the queries that have a relevant document: the others say nothing about a ranker."""
        relevant = np.bincount(ragged.list_numbers(self.offsets)[self.labels > 0], minlength=self.queries)
        return self.select(relevant > 0)

    def with_features(self, names: Sequence[str], *, what: str = "the judged data", **messages: str) -> JudgedLists:
        """The same lists with these features in this order, found by name; others than these are a `DataError`.

        >>> lists = JudgedLists.of(features=[[1, 2]], labels=[1], offsets=[0, 1], feature_names=["bm25", "age"])
        >>> lists.with_features(["age", "bm25"]).features.tolist()
        [[2.0, 1.0]]
        """
        order = column_order(self.feature_names, names, what=what, **messages)
        if tuple(names) == self.feature_names:
            return self
        return replace(self, features=self.features[:, order], feature_names=tuple(names))

    def fingerprint(self) -> str:
        """A short name for the exact content."""
        names = np.array(self.feature_names)
        return fingerprint(self.features, self.labels, self.offsets, self.query_ids, names, np.array(self.max_label))


def concatenate(parts: Sequence[JudgedLists]) -> JudgedLists:
    """Several judged lists, one after the other; features must agree."""
    if not parts:
        raise DataError("there are no judged lists to join")
    first = parts[0]
    if len(parts) == 1:
        return first
    for part in parts[1:]:
        if part.feature_names != first.feature_names:
            raise DataError(
                f"cannot join judged lists with {len(first.feature_names)} and {len(part.feature_names)} features"
            )
    return JudgedLists(
        features=np.concatenate([part.features for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
        offsets=ragged.from_lengths(np.concatenate([part.lengths for part in parts])),
        query_ids=np.concatenate([part.query_ids for part in parts]),
        feature_names=first.feature_names,
        max_label=max(part.max_label for part in parts),
    )

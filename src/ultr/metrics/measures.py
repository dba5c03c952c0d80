"""What a measure is: a name and a cutoff, written `nDCG@10`. The functions in `ranking` compute it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ultr import checks
from ultr.arrays import Doubles
from ultr.data.judged import JudgedLists
from ultr.errors import DataError, OptionError
from ultr.metrics import ranking
from ultr.metrics.ranking import Scores


@dataclass(frozen=True)
class Measure:
    """A measure of rankings, such as nDCG@10.

    >>> Measure.parse("ndcg@10")
    Measure(name='nDCG', cutoff=10)
    >>> print(Measure("MRR"))
    MRR
    """

    name: str
    """One of nDCG, MRR, MAP, ERR, ARP, P."""
    cutoff: int | None = None
    """Only the ranks up to this one count; None for the whole list."""

    def __post_init__(self) -> None:
        kind = _KINDS[checks.one_of("measure", self.name, _KINDS)]
        if self.cutoff is not None:
            checks.integer(f"the cutoff of {self.name}", self.cutoff, at_least=1)
        if kind.cutoff == "needed" and self.cutoff is None:
            raise OptionError(f"{self.name} needs a cutoff; write for example {self.name}@5")
        if kind.cutoff == "refused" and self.cutoff is not None:
            raise OptionError(f"{self.name} is about the whole list; write {self.name} without a cutoff")

    @classmethod
    def parse(cls, text: str) -> Measure:
        """The measure that prints as `text`; upper and lower case are alike."""
        name, at, cutoff = text.strip().partition("@")
        name = _BY_FOLDED_NAME.get(name.casefold(), name)
        checks.one_of("measure", name, _KINDS)
        if not at:
            return cls(name)
        if not re.fullmatch("[1-9][0-9]{0,8}", cutoff):
            raise OptionError(f"the cutoff of {name} must be an integer of at least 1, got {cutoff!r} in {text!r}")
        return cls(name, int(cutoff))

    def __str__(self) -> str:
        return self.name if self.cutoff is None else f"{self.name}@{self.cutoff}"

    @property
    def higher_is_better(self) -> bool:
        """Whether a better ranker has a higher value."""
        return _KINDS[self.name].higher_is_better

    def compute(self, scores: Scores, judged: JudgedLists) -> Doubles:
        """The value of each query, NaN for queries without a relevant document.

        >>> judged = JudgedLists.of(features=np.eye(3), labels=[0, 1, 0], offsets=[0, 2, 3])
        >>> Measure("MRR").compute(np.array([0.9, 0.1, 0.5]), judged).tolist()
        [0.5, nan]
        """
        return _KINDS[self.name].compute(scores, judged, self.cutoff)


def mean(values: Doubles) -> float:
    """The mean over the queries that have a value, that is, at least one relevant document.

    >>> mean(np.array([0.5, np.nan, 1.0]))
    0.75
    """
    known = values[~np.isnan(values)]
    if not len(known):
        raise DataError(f"none of {len(values)} queries has a relevant document to measure; check the labels")
    return float(known.mean())


@dataclass(frozen=True)
class _Kind:
    compute: Callable[[Scores, JudgedLists, int | None], Doubles]
    cutoff: Literal["optional", "needed", "refused"] = "optional"
    higher_is_better: bool = True


def _ndcg(scores: Scores, judged: JudgedLists, cutoff: int | None) -> Doubles:
    return ranking.ndcg(scores, judged.labels, judged.offsets, cutoff=cutoff)


def _mrr(scores: Scores, judged: JudgedLists, cutoff: int | None) -> Doubles:
    return ranking.reciprocal_rank(scores, judged.labels, judged.offsets, cutoff=cutoff)


def _map(scores: Scores, judged: JudgedLists, cutoff: int | None) -> Doubles:
    return ranking.average_precision(scores, judged.labels, judged.offsets, cutoff=cutoff)


def _err(scores: Scores, judged: JudgedLists, cutoff: int | None) -> Doubles:
    # Lists without any relevant document have max_label 0 and get NaN under every scale.
    top = max(judged.max_label, 1)
    return ranking.expected_reciprocal_rank(scores, judged.labels, judged.offsets, max_label=top, cutoff=cutoff)


def _arp(scores: Scores, judged: JudgedLists, cutoff: int | None) -> Doubles:
    assert cutoff is None
    return ranking.average_relevance_position(scores, judged.labels, judged.offsets)


def _precision(scores: Scores, judged: JudgedLists, cutoff: int | None) -> Doubles:
    assert cutoff is not None
    return ranking.precision(scores, judged.labels, judged.offsets, cutoff=cutoff)


_KINDS = {
    "nDCG": _Kind(_ndcg),
    "MRR": _Kind(_mrr),
    "MAP": _Kind(_map),
    "ERR": _Kind(_err),
    "ARP": _Kind(_arp, cutoff="refused", higher_is_better=False),
    "P": _Kind(_precision, cutoff="needed"),
}
_BY_FOLDED_NAME = {name.casefold(): name for name in _KINDS}

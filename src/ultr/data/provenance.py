"""The record of what a ranker was trained on, and how that was cut out of larger logs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar

from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.split import Split


@dataclass(frozen=True)
class Lineage:
    """A data set by its fingerprint, with every cut between the log it comes from and itself."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    fingerprint: str
    splits: tuple[Split, ...] = ()

    @classmethod
    def of(cls, data: ClickLog | JudgedLists) -> Lineage:
        """The lineage of data at hand; judged lists have no recorded cuts."""
        return cls(data.fingerprint(), data.splits if isinstance(data, ClickLog) else ())

    @property
    def path(self) -> tuple[str, ...]:
        """Fingerprints from the first log down to this data set."""
        return *(split.parent for split in self.splits), self.fingerprint

    def cuts_below(self, fingerprints: Collection[str]) -> tuple[Split, ...] | None:
        """The cuts between a log with one of these fingerprints and this data set; None if it is no part of that."""
        for number in reversed(range(len(self.path))):
            if self.path[number] in fingerprints:
                return self.splits[number:]
        return None


@dataclass(frozen=True)
class Provenance:
    """What a ranker was trained on."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    data: tuple[Lineage, ...] = ()
    """What its weights were fitted to; empty for a ranker that was never trained."""
    validation: tuple[Lineage, ...] = ()
    """What its weights, or an option such as the dimension, were chosen by."""
    init_model: str | None = None
    """Digest of the weights that training began with; None if they were random. What these were trained on and chosen
    by is part of the record."""

    @classmethod
    def of(cls, data: ClickLog | JudgedLists, validation: ClickLog | JudgedLists | None = None) -> Provenance:
        """The provenance of a ranker fitted to `data`."""
        return cls((Lineage.of(data),), () if validation is None else (Lineage.of(validation),))

    def beside(self, *others: Provenance) -> Provenance:
        """The record of a ranker made of this one and others."""
        return replace(
            self,
            data=tuple(dict.fromkeys(each for one in (self, *others) for each in one.data)),
            validation=tuple(dict.fromkeys(each for one in (self, *others) for each in one.validation)),
        )

    def after(self, earlier: Provenance, weights: str) -> Provenance:
        """The same with the record of the ranker whose weights training began with."""
        return replace(self.beside(earlier), init_model=weights)

"""The three parts of a data set that a ranker is trained, selected and judged on."""

from __future__ import annotations

from dataclasses import dataclass

from ultr.data.judged import JudgedLists
from ultr.errors import DataError


@dataclass(frozen=True, eq=False, repr=False)
class Splits:
    """Judged lists for training, validation and test, with the same features.

    >>> part = JudgedLists.of(features=[[1.0], [2.0]], labels=[1, 0], offsets=[0, 2])
    >>> Splits("tiny", train=part, validation=part, test=part)
    Splits('tiny', 1 features, labels 0-1, queries: 1 train, 1 validation, 1 test)
    """

    name: str
    """The source of the parts, such as 'mq2007 fold 1'."""
    train: JudgedLists
    validation: JudgedLists
    test: JudgedLists

    def __post_init__(self) -> None:
        for part, lists in (("validation", self.validation), ("test", self.test)):
            if lists.feature_names != self.train.feature_names:
                raise DataError(
                    f"the {part} part of {self.name} has {len(lists.feature_names)} features, the training part "
                    f"{len(self.train.feature_names)}; read both with the same number of features"
                )

    def __repr__(self) -> str:
        top = max(self.train.max_label, self.validation.max_label, self.test.max_label)
        return (
            f"Splits({self.name!r}, {len(self.train.feature_names)} features, labels 0-{top}, queries: "
            f"{self.train.queries:,} train, {self.validation.queries:,} validation, {self.test.queries:,} test)"
        )

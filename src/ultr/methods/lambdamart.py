"""LambdaMART by a library: what the methods that leave the boosting to LightGBM or XGBoost have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

import numpy as np

from ultr import checks
from ultr.arrays import Floats, Integers
from ultr.data import ragged
from ultr.data.categories import category_columns
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.sessions import draw_sessions
from ultr.errors import DataError
from ultr.methods.estimator import Estimator
from ultr.methods.factors import POSITION, Factor
from ultr.relevance.relevance_model import Relevance
from ultr.relevance.trees import BoostedTrees, Trees
from ultr.scoring.forest import Forest
from ultr.train.checkpoint import Checkpoint, Record
from ultr.train.lists import TrainingLists
from ultr.train.objective import ScalarObjective
from ultr.train.progress import Observer, Silent
from ultr.train.ranking_model import RankingModel
from ultr.train.stage import Stage

STAGE = "trees"
PATIENCE = 30
RECORD_EVERY = 10


@dataclass(frozen=True, eq=False)
class LabelledLists:
    """Lists of documents with their labels, as the libraries take them."""

    features: Floats
    labels: Integers
    positions: Integers
    """As shown, from 1."""
    lengths: Integers
    categories: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """The values of each categorical feature by its column."""

    @classmethod
    def of(cls, data: ClickLog | JudgedLists, *, sessions: int, seed: int) -> LabelledLists:
        """The clicks of drawn sessions as labels, or the labels of judged lists."""
        if isinstance(data, ClickLog):
            drawn = draw_sessions(data, sessions=sessions, seed=seed)
            categories = category_columns(data.feature_names, data.categories)
            return cls(drawn.features[drawn.documents], drawn.clicks, drawn.positions, drawn.lengths, categories)
        judged = data.with_relevant()
        return cls(judged.features, judged.labels, ragged.ranks(judged.offsets) + 1, judged.lengths)

    @property
    def offsets(self) -> Integers:
        """Where each list begins."""
        return ragged.from_lengths(self.lengths)

    def worst_first(self) -> LabelledLists:
        """The documents of each list by label, the lowest first.

        Both libraries keep the order of documents with equal scores, and a few trees give many of these. In the order
        shown they would be credited with what the ranker that showed them knew; so ties count against them.
        """
        order = np.lexsort((self.labels, ragged.list_numbers(self.offsets)))
        return replace(self, features=self.features[order], labels=self.labels[order], positions=self.positions[order])


class Boosting(Protocol):
    """A library at work on some lists."""

    def grow(self) -> None:
        """Add a tree."""

    def value(self) -> float:
        """The nDCG@10 of the held-out lists."""

    def forest(self, trees: int) -> Forest:
        """The first so many trees."""

    def tell(self, objective: ScalarObjective) -> None:
        """Hand over what it learned about positions, if it says."""


@dataclass(kw_only=True, eq=False)
class LambdaMART(Estimator[ScalarObjective]):
    """LambdaMART by a library on sessions drawn from the log.

    A run that was killed starts anew, and ends with the same trees: nothing is written to its checkpoint.
    """

    takes: ClassVar[type[Relevance]] = Trees
    without: ClassVar[tuple[str, ...]] = ("evaluate_every", "value", "device", "relevance__categorical")
    held_out_measure: ClassVar[str] = "held-out nDCG@10"

    relevance: Relevance = field(default_factory=lambda: Trees(leaves=31))
    """The size of the trees and how fast they learn; the loss is the library's own."""
    debias: bool = False
    """Use the library's correction for position bias instead of raw clicks."""
    sessions: int = 50_000
    """Sessions drawn from the log; a fifth of that from held-out clicks."""
    patience: int | None = None
    """Trees in a row without a better nDCG@10 on the validation data after which training ends; by default 30."""

    @abstractmethod
    def boosting(self, lists: LabelledLists, held_out: LabelledLists | None) -> Boosting:
        """The library, ready to grow trees on these lists."""

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        super().check()
        checks.boolean("debias", self.debias)
        checks.integer("sessions", self.sessions, at_least=1)

    def learns(self, factor: Factor) -> bool:
        """The position, where the library is to correct for it."""
        return self.debias and factor.name == POSITION

    def objective(self, factors: Sequence[Factor]) -> ScalarObjective:
        """No bias parameters."""
        return ScalarObjective()

    def stages(self, objective: ScalarObjective, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """None: the library grows the trees, by its own loss."""
        return []

    def train_model(
        self,
        model: RankingModel[ScalarObjective],
        lists: TrainingLists,
        data: ClickLog | JudgedLists,
        validation: JudgedLists | ClickLog | None,
        *,
        checkpoint: Checkpoint | None,
        observer: Observer | None,
    ) -> Sequence[Record]:
        """Let the library grow trees, and keep those with the best nDCG@10 on the validation data, or all."""
        few = -(-self.sessions // 5)
        drawn = self._lists("training", data, self.sessions)
        held_out = None if validation is None else self._lists("validation", validation, few).worst_first()
        boosting = self.boosting(drawn, held_out)
        rounds, watching = self.relevance.training().steps, observer or Silent()
        values: list[float] = []
        with watching.watch(STAGE, rounds, done=0):
            for tree in range(1, rounds + 1):
                boosting.grow()
                watching.step(tree)
                if held_out is None:
                    continue
                values.append(boosting.value())
                if tree % RECORD_EVERY == 0:
                    watching.record(Record(STAGE, tree, None, values[-1]), best=max(values))
                if tree - _best(values) >= (self.patience or PATIENCE):
                    break
        relevance = model.by_name["relevance"]
        assert isinstance(relevance, BoostedTrees)
        relevance.forest = boosting.forest(_best(values) if values else rounds)
        boosting.tell(model.objective)
        if not values:
            return [Record(STAGE, rounds, None, None)]
        shown = sorted({*range(RECORD_EVERY, len(values), RECORD_EVERY), _best(values), len(values)})
        return [Record(STAGE, tree, None, values[tree - 1]) for tree in shown]

    def _lists(self, what: str, data: ClickLog | JudgedLists, sessions: int) -> LabelledLists:
        lists = LabelledLists.of(data, sessions=sessions, seed=self.seed)
        if not lists.labels.any():
            signal = "drawn session with a click" if isinstance(data, ClickLog) else "relevant document"
            raise DataError(f"the {what} data have no {signal}, so there is nothing to learn from")
        return lists


def _best(values: Sequence[float]) -> int:
    """The number of trees with the highest value, the fewest if there are several."""
    return int(np.argmax(values)) + 1

"""The inputs of a report: models, the log they learned from, judged lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ultr.arrays import Integers, Strings
from ultr.data.click_log import ClickLog
from ultr.data.frequent_lists import frequent_lists
from ultr.data.judged import JudgedLists
from ultr.data.signal import CLICK
from ultr.diagnosis import Diagnosis, diagnose
from ultr.evaluation import (
    Assumption,
    Comparison,
    Evaluation,
    UnseenPart,
    compare,
    evaluate,
    shift_from_log,
    unseen_part,
)
from ultr.evaluation.unseen_part import trained_on
from ultr.methods.ranker import Ranker
from ultr.metrics import PairedTest
from ultr.metrics.exposure import ExposureShift
from ultr.reporting.model import LOWER, Model
from ultr.reporting.moved import MOST_LISTS, Moved, moved_lists

MAIN = "nDCG@10"


@dataclass(frozen=True, eq=False)
class ReportInputs:
    """Models with what they can be measured on; log and judged lists must have the features of the models."""

    models: tuple[Model, ...]
    log: ClickLog | None = None
    log_name: str = "log"
    judged: JudgedLists | None = None
    judged_name: str = "judged lists"
    chosen: str | None = None
    """The name of the model to look at closely; by default the best one."""
    document_ids: Strings | None = None
    """[rows of the log's features], the ids of documents in the raw log, if it had some."""
    titles: Mapping[str, str] = field(default_factory=dict)
    """Titles of documents by their ids."""
    missing: tuple[str, ...] = ()
    """Sentences on what cannot be shown and how to have it shown."""
    samples: int = 50
    """Resamples for the intervals of the log's examination; `ultr doctor` takes more."""
    draws: int = 199
    """Draws of its test, as many as `ultr doctor` and `ultr compare` take, so that all say the same."""

    @cached_property
    def evaluations(self) -> dict[str, Evaluation]:
        """By model; empty without judged lists."""
        if self.judged is None:
            return {}
        return {model.name: evaluate(model.ranker, self.judged) for model in self.models}

    @cached_property
    def subject(self) -> Model:
        """The model to look at closely: the chosen one, or else the best by labels of those that are no bounds."""
        if self.chosen is not None:
            return next(model for model in self.models if model.name == self.chosen)
        contenders = [model for model in self.models if not model.is_bound] or list(self.models)
        if len(contenders) == 1 or not self.evaluations:
            return contenders[0]
        return max(contenders, key=lambda model: self.evaluations[model.name].mean(MAIN))

    @cached_property
    def leads(self) -> dict[str, PairedTest]:
        """Main measure of the subject minus that of each other model; empty without labels."""
        own = self.evaluations.get(self.subject.name)
        if own is None:
            return {}
        return {name: own.against(each, MAIN) for name, each in self.evaluations.items() if each is not own}

    @cached_property
    def click_models(self) -> list[Model]:
        """Those that learned from clicks, and so know bias factors."""
        return [model for model in self.models if model.ranker.factors]

    @cached_property
    def unseen(self) -> UnseenPart | None:
        """The part of the log that none of the models was trained on; None without a log."""
        rankers = {model.name: model.ranker for model in self.click_models}
        return None if self.log is None else unseen_part(rankers, self.log)

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """The doctor's findings in the log; None where there is no log or no click in it."""
        if self.log is None or not self.log.clicks.any():
            return None
        return diagnose(self.log, samples=self.samples, draws=self.draws, source=self.log_name)

    @cached_property
    def frequent(self) -> ClickLog:
        """The most frequent list of each query, of the most frequent queries."""
        assert self.log is not None
        return frequent_lists(self.log, most=MOST_LISTS)

    @cached_property
    def shift(self) -> ExposureShift:
        """The shift of exposure from these lists to the subject's order."""
        return shift_from_log(self.subject.ranker, self.frequent)

    @cached_property
    def moved(self) -> list[Moved]:
        """These lists as shown and as the subject ranks them, the largest moves first; none without a log."""
        return [] if self.log is None else moved_lists(self.log, None, self.subject)

    def names(self, documents: Integers) -> list[str]:
        """The names of some documents, rows of the log's features: titles with ids, ids, or else the rows."""
        if self.document_ids is None:
            return [f"document {row}" for row in documents]
        ids = [str(self.document_ids[row]) for row in documents]
        return [f"{self.titles[each]} ({each})" if each in self.titles else each for each in ids]

    @cached_property
    def rival(self) -> Model | None:
        """The model that the subject is compared with: raw clicks if they are there, else the first other one."""
        others = [model for model in self.click_models if model is not self.subject]
        return min(others, key=lambda model: model.manifest.method != LOWER, default=None)

    @cached_property
    def comparison(self) -> Comparison | None:
        """The subject against its rival by clicks alone; None without a log, a rival or a subject that saw clicks."""
        return None if self.rival is None else self._compared(self.rival.ranker, self.rival.name)

    @cached_property
    def against_shown(self) -> Comparison | None:
        """A comparison that says how the subject does against the lists as shown; None without a log."""
        return self.comparison or self._compared(self.subject.ranker, f"{self.subject.name} again")

    @cached_property
    def value(self) -> dict[str, float] | None:
        """The value that the subject ranks by, if the log has its signals; None for clicks."""
        weights = self.subject.ranker.options.get("value")
        known = set() if self.log is None else {CLICK, *(signal.name for signal in self.log.signals)}
        return dict(weights) if weights and known.issuperset(weights) else None

    def _compared(self, ranker: Ranker, name: str) -> Comparison | None:
        if self.log is None or self.unseen is None or self.subject not in self.click_models:
            return None
        found = self.diagnosis
        tested = None if found is None else Assumption.of_test(found.dimension.scalar, found.stopping)
        return compare(
            ranker,
            self.subject.ranker,
            self.log,
            unseen=self.unseen,
            names=(name, self.subject.name),
            value=self.value,
            assumption=tested,
        )

    def trained_on_log(self, model: Model) -> bool:
        """True if this is the log that a model learned from, whole or without what was held out."""
        return self.log is not None and trained_on(model.ranker, self.log)

"""The estimator API of every method: scikit-learn's conventions, one training loop."""

from __future__ import annotations

import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from ultr import checks
from ultr.data.categories import category_columns
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.missing_values import by_name, in_words
from ultr.data.provenance import Provenance
from ultr.data.scaling import FeatureScaling
from ultr.data.shown_rows import data_of
from ultr.errors import DataError, OptionError, UltrWarning
from ultr.methods.averaged import averaged_model, learn_averaged
from ultr.methods.configured import Configured
from ultr.methods.factors import POSITION, Factor, factors_of, warn_of_others
from ultr.methods.fitted import Fitted
from ultr.methods.known_levels import check_factors, known_levels
from ultr.methods.model_file import weights_digest
from ultr.methods.ranker import Ranker
from ultr.methods.sample import sample_of
from ultr.methods.value_option import NO_VALUE, check_signals, check_weights
from ultr.methods.warm_start import begin_with, provenance_after, scaling_of, usable
from ultr.relevance.inputs import Inputs
from ultr.relevance.mlp import MLP
from ultr.relevance.preprocessing import InputLayout, Preprocessing
from ultr.relevance.relevance_model import Relevance, RelevanceModel
from ultr.train.checkpoint import Checkpoint, Record
from ultr.train.device import check_device
from ultr.train.lists import TrainingLists
from ultr.train.loop import train
from ultr.train.process_group import ProcessGroup
from ultr.train.progress import Bar, Observer
from ultr.train.ranking_model import ObjectiveT, RankingModel
from ultr.train.selection import ClickValidation, LabelValidation, Validation
from ultr.train.stage import RELEVANCE, Stage
from ultr.train.value import VALUE, value_stage


@dataclass(kw_only=True, eq=False)
class Estimator(Configured, Fitted[ObjectiveT], ABC):
    """Options of a method; `fit` learns a ranker and keeps it as `ranker_`.

    A method is one file with an objective (its bias parameters and what it minimises) and a subclass of this: its
    options as fields, `objective`, and `stages`. Everything else is here and in the loop.
    """

    name: ClassVar[str]
    """The name of the method on the command line and in files."""
    learns_from: ClassVar[type[ClickLog] | type[JudgedLists]] = ClickLog
    takes: ClassVar[type[Relevance]] = Relevance  # type: ignore[type-abstract]
    """The relevance models that it works with."""
    without: ClassVar[tuple[str, ...]] = ()
    """Options of all methods, or `relevance__NAME` of its relevance model, that it has no use for and refuses."""
    model_names: ClassVar[tuple[str, ...]] = RELEVANCE
    """Its relevance models, of one output each; `relevance` is the one that ranks."""
    position_only: ClassVar[bool] = False
    """True: of all bias factors it learns the position alone."""
    within_lists: ClassVar[bool] = False
    """True: it learns no bias factor that is the same for a whole list."""
    counts_pairs: ClassVar[bool] = False
    """True: it needs to know which documents were clicked together."""
    held_out_measure: ClassVar[str] = "held-out log-likelihood"
    """The value of validation by held-out clicks; that by labels is nDCG@10."""
    by_loss: ClassVar[tuple[str, ...]] = ()
    """Stages whose held-out loss is no likelihood."""

    relevance: Relevance = field(default_factory=MLP)
    """The model of relevance r(x), and how it is trained."""
    evaluate_every: int | None = None
    """Steps between validations and checkpoints; by default 100 of a network, 10 of trees."""
    patience: int | None = None
    """Validations in a row without a new best one after which a stage ends; by default it never ends early. With a
    recipe whose learning rate falls, that is before it has fallen."""
    seed: int = 0
    """Seed of the initial weights, the batch order, the sampled sessions and the noise."""
    seeds: int = 1
    """Seeds to train with, from `seed` on, whose rankers become one: the mean of their scores, each in units of its
    spread within lists. Training takes so many times as long, and so does scoring."""
    value: Mapping[str, float] | None = None
    """Weights of signals that make up the value to rank by, such as `{"click": 1, "purchase": 20}`; by default clicks
    alone. Bias is learned from clicks in any case, and the value with it fixed."""
    device: str = "cpu"
    """Device that trains, anything that torch knows; only the CPU is tested. The ranker is on the CPU in any case."""

    @abstractmethod
    def objective(self, factors: Sequence[Factor]) -> ObjectiveT:
        """A new objective with the bias parameters of these factors, those that the method `learns`."""

    @abstractmethod
    def stages(self, objective: ObjectiveT, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """The stages of training, one after the other; the first has so many steps."""

    def models(self, features: InputLayout, generator: torch.Generator) -> dict[str, RelevanceModel]:
        """New relevance models by name."""
        return {name: self.relevance.build(features, 1, generator=generator) for name in self.model_names}

    def value_models(self, features: InputLayout, generator: torch.Generator) -> dict[str, RelevanceModel]:
        """New relevance models of the value, by name."""
        return {VALUE: self.relevance.build(features, 1, generator=generator)}

    def value_stages(self, objective: ObjectiveT, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """The stages that learn the value after those of the clicks."""
        return [value_stage(objective, steps)]

    def learns(self, factor: Factor) -> bool:
        """True if the method can learn the bias of this factor; others are left out of it, and named in a warning."""
        if self.position_only:
            return factor.name == POSITION
        return not (self.within_lists and factor.by_page)

    def starts_warm(self, weight: str) -> bool:
        """True if a weight of this name may begin as an earlier ranker has it."""
        return True

    def training_lists(self, data: Any, inputs: Inputs) -> TrainingLists:
        """The lists that the method trains on; `inputs` are the features of the data."""
        return TrainingLists.of_log(data, inputs)

    def lists_of(self, data: ClickLog | JudgedLists, inputs: Inputs) -> TrainingLists:
        """The lists that the method trains on, with their value if there is one."""
        lists = self.training_lists(data, inputs)
        return lists if self.value is None else lists.with_value(self.value)

    @classmethod
    def measure_of(cls, stage: str) -> str:
        """The name of the value that validation by held-out clicks gives a stage."""
        return "negative held-out loss" if stage.rpartition(", ")[2] in cls.by_loss else cls.held_out_measure

    def library(self) -> str | None:
        """The package besides torch that training needs."""
        return self.relevance.library

    def title(self) -> str:
        """The name of the class, for the progress bar."""
        return type(self).__name__

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        if not isinstance(self.relevance, Relevance):
            raise OptionError(f"relevance must be a relevance model such as ultr.MLP(), got {self.relevance!r}")
        if not isinstance(self.relevance, self.takes):
            kind, given = self.takes.__name__, type(self.relevance).__name__
            raise OptionError(f"the relevance model of {type(self).__name__} is always {kind}(...), got {given}")
        self.relevance.check()
        for name in ("evaluate_every", "patience"):
            if (value := getattr(self, name)) is not None:
                checks.integer(name, value, at_least=1)
        checks.integer("seed", self.seed, at_least=0)
        checks.integer("seeds", self.seeds, at_least=1)
        if self.value is not None:
            check_weights(self.value)
        if self.relevance.on_cpu and str(self.device).partition(":")[0] != "cpu":
            raise OptionError(f"{self.relevance.kind} train on the CPU only, got device {self.device!r}; leave it out")
        check_device(self.device)
        self._check_unused()

    def fit(
        self,
        data: object,
        clicks: object = None,
        *,
        qid: object = None,
        group: object = None,
        position: object = None,
        impressions: object = None,
        factors: Mapping[str, object] | None = None,
        validation: JudgedLists | ClickLog | None = None,
        init_model: Ranker | None = None,
        checkpoint: str | Path | None = None,
        progress: bool | Observer = False,
    ) -> Self:
        """Learn from `data` and give the estimator back, with the ranker as `ranker_`.

        `data` is a log, or rows as XGBoost and LightGBM take them: `fit(X, clicks, qid=..., position=...)`, with the
        arguments of `ultr.log_of_rows`. A method that learns from labels takes `fit(X, labels, qid=...)`.
        `validation` decides which weights are kept: judged lists by nDCG@10, held-out clicks by their likelihood.
        With `init_model`, networks begin with the weights of an earlier ranker of the same method, sizes and features,
        and keep its preprocessing; trees are trained anew, with a warning. With `checkpoint`, a file, a run that was
        stopped goes on where it was and ends with the same weights.
        `progress` shows a bar, or tells an observer of yours.
        """
        self.check()
        rows = {"qid": qid, "group": group, "position": position, "impressions": impressions, "factors": factors}
        known = data_of(data, clicks, rows, wanted=self.learns_from, what=type(self).__name__, pairs=self.counts_pairs)
        self.check_data(known, validation)
        path = None if checkpoint is None else Path(checkpoint)
        start = usable(init_model, self)
        ranker: Ranker[ObjectiveT] = (
            learn_averaged(self, known, validation, checkpoint=path, progress=progress)
            if self.seeds > 1
            else self.learn(known, validation, init_model=start, checkpoint=path, progress=progress)
        )
        self.ranker_ = ranker
        return self

    def learn(
        self,
        data: ClickLog | JudgedLists,
        validation: JudgedLists | ClickLog | None,
        *,
        init_model: Ranker | None,
        checkpoint: Path | None,
        progress: bool | Observer,
    ) -> Ranker[ObjectiveT]:
        """Train a new ranker on data that were checked, from random weights or those of an earlier one."""
        # A log on disk that is not the one that was written is found out before it is trained on.
        data.fingerprint()
        factors = factors_of(data)
        learned = [factor for factor in factors if self.learns(factor)]
        warn_of_others(type(self).__name__, factors, learned)
        categories = data.categories if isinstance(data, ClickLog) else {}
        columns = category_columns(data.feature_names, categories)
        scaling = FeatureScaling.fit(data.features, categorical=columns)
        if init_model is not None:
            scaling = scaling_of(init_model, data, scaling, learned)
        preprocessing = Preprocessing(scaling, columns).to(self.device)
        lists = self.lists_of(data, Inputs(data.features, preprocessing, names=data.feature_names))
        model = self.build(preprocessing.layout, learned, seed=self.seed)
        if init_model is not None:
            begin_with(model, init_model, self.starts_warm)
        model = model.to(self.device)
        missing = by_name(scaling.missing, data.feature_names)
        if missing and not all(each.takes_missing for each in model.by_name.values()):
            warnings.warn(in_words(missing, len(data.feature_names)), UltrWarning, stacklevel=3)
        provenance = provenance_after(Provenance.of(data, validation), init_model)
        run = None if checkpoint is None else Checkpoint(checkpoint, self._run(data, validation, init_model))
        by_labels = isinstance(validation, JudgedLists)
        observer = self._observer(lambda stage: "nDCG@10" if by_labels else self.measure_of(stage), progress=progress)
        history = self.train_model(model, lists, data, validation, checkpoint=run, observer=observer)
        return Ranker(
            method=self.name,
            options=self.content(),
            model=model.cpu(),
            feature_names=tuple(data.feature_names),
            scaling=scaling,
            categories=categories,
            factors=factors,
            learned_factors=tuple(factor.name for factor in learned),
            clicks_per_impression=float(lists.clicks.sum(dtype=np.float64) / lists.impressions.sum()),
            provenance=provenance,
            history=tuple(history),
            sample=sample_of(data),
            choices=self.chosen(model.objective),
        )

    def chosen(self, objective: ObjectiveT) -> dict[str, Any]:
        """What training has chosen by itself, for the record of the ranker."""
        return {}

    def train_model(
        self,
        model: RankingModel[ObjectiveT],
        lists: TrainingLists,
        data: ClickLog | JudgedLists,
        validation: JudgedLists | ClickLog | None,
        *,
        checkpoint: Checkpoint | None,
        observer: Observer | None,
    ) -> Sequence[Record]:
        """Train a new model on the lists of the data by the one loop; its learning curve."""
        training = self.relevance.training()
        return train(
            model,
            self.all_stages(model.objective, lists, training.steps),
            lists,
            training=training,
            seed=self.seed,
            evaluate_every=self.evaluate_every,
            patience=self.patience,
            validation=self._validation(validation, data, lists.inputs),
            checkpoint=checkpoint,
            observer=observer,
        )

    def build(self, features: int | InputLayout, factors: Sequence[Factor], *, seed: int) -> RankingModel[ObjectiveT]:
        """A new model for preprocessed features of this layout, or so many numbers, and these factors."""
        if self.seeds > 1:
            one = replace(self, seeds=1)
            return averaged_model([one.build(features, factors, seed=seed + n) for n in range(self.seeds)])
        layout, generator = InputLayout.of(features), torch.Generator().manual_seed(int(seed))
        models = self.models(layout, generator)
        if self.value is not None:
            models |= self.value_models(layout, generator)
        return RankingModel(models, self.objective(factors))

    def all_stages(self, objective: ObjectiveT, lists: TrainingLists, steps: int) -> Sequence[Stage]:
        """The stages of the method, and that of the value if there is one."""
        stages = self.stages(objective, lists, steps)
        return stages if self.value is None else [*stages, *self.value_stages(objective, lists, steps)]

    def check_data(self, data: ClickLog | JudgedLists, validation: ClickLog | JudgedLists | None) -> None:
        """Raise an `OptionError` or a `DataError` for data that the method cannot learn from."""
        if not isinstance(data, self.learns_from):
            wanted = self.learns_from.__name__
            raise OptionError(f"{type(self).__name__} learns from {wanted}, got {type(data).__name__}")
        if not data.feature_names:
            raise DataError(
                "the training data have no features, so there is nothing to rank by; "
                "prepare the log with --features or --features-from"
            )
        self.relevance.check_features(data.features, data.feature_names)
        signals = data.clicks if isinstance(data, ClickLog) else data.labels
        if not signals.any():
            what = "click" if isinstance(data, ClickLog) else "relevant document"
            raise DataError(f"the training data have no {what}, so there is nothing to learn from")
        if isinstance(data, ClickLog) and self.value is not None:
            check_signals(self.value, data, validation if isinstance(validation, ClickLog) else None)
        if validation is None:
            if self.patience is not None:
                raise OptionError("patience needs validation data to lose it over; give some, or leave patience out")
            return
        if isinstance(validation, ClickLog) and not isinstance(data, ClickLog):
            raise OptionError(f"{type(self).__name__} learns from labels and is validated by them; give JudgedLists")
        if validation.feature_names != data.feature_names:
            counts = f"{len(validation.feature_names)} and {len(data.feature_names)}"
            raise DataError(f"the validation data must have the same features as the training data, got {counts}")
        if isinstance(validation, ClickLog):
            check_factors(validation, [factor for factor in factors_of(data) if self.learns(factor)])
            if isinstance(data, ClickLog) and validation.categories != data.categories:
                raise DataError("the validation log must have the categories of the training log, in the same order")
            if not validation.clicks.any():
                raise DataError(
                    "the validation log has no click, so it cannot choose weights; hold out more of the log"
                )

    def _check_unused(self) -> None:
        given, usual = self.get_params(), type(self)().get_params()
        for name in self.without:
            if given[name] != usual[name]:
                option = name.removeprefix("relevance__")
                why = f": {NO_VALUE}" if name == VALUE else ""
                raise OptionError(f"{type(self).__name__} has no use for the option {option}{why}; leave it out")

    def _validation(
        self,
        validation: JudgedLists | ClickLog | None,
        data: ClickLog | JudgedLists,
        inputs: Inputs,
    ) -> Validation | None:
        if isinstance(validation, JudgedLists):
            return LabelValidation(validation, inputs.preprocessing)
        if isinstance(validation, ClickLog):
            shared = (
                inputs if validation.features is data.features else Inputs(validation.features, inputs.preprocessing)
            )
            factors = factors_of(data)
            learned = [factor.name for factor in factors if self.learns(factor)]
            levels = known_levels(validation, factors, learned=learned)
            return ClickValidation(replace(self.lists_of(validation, shared), factors=levels))
        return None

    def _observer(self, measure: Callable[[str], str], *, progress: bool | Observer) -> Observer | None:
        if not progress or not ProcessGroup.of_environment().leads:
            return None
        return Bar(self.title(), measure) if progress is True else progress

    def _run(
        self, data: JudgedLists | ClickLog, validation: JudgedLists | ClickLog | None, init_model: Ranker | None
    ) -> str:
        """A digest of all that decides the weights; a checkpoint of another run is refused."""
        sources = [data.fingerprint(), None if validation is None else validation.fingerprint()]
        if init_model is not None:
            sources.append(weights_digest(init_model.model))
        how = vars(self.relevance.training())
        options = json.dumps([self.name, self.content(), how, *sources], sort_keys=True, default=str)
        return blake2b(options.encode(), digest_size=16).hexdigest()

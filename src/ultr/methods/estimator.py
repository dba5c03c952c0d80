"""The estimator API of every method: scikit-learn's conventions, one training loop."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from ultr import checks
from ultr.arrays import Doubles, Floats, Integers
from ultr.data import gathering, ragged
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.provenance import Provenance
from ultr.data.scaling import FeatureScaling
from ultr.errors import DataError, ModelFileError, OptionError
from ultr.methods import model_file
from ultr.methods.network import ClickNetwork, Shape
from ultr.methods.origin import Origin
from ultr.methods.sample import load_sample, sample_of
from ultr.train.checkpoint import Checkpoint, Record
from ultr.train.inputs import Inputs
from ultr.train.lists import Batch, TrainingLists
from ultr.train.loop import PRECISIONS, Settings, train
from ultr.train.progress import Bar, Observer
from ultr.train.recipe import RECIPES, recipe
from ultr.train.selection import ClickValidation, LabelValidation, Validation, chunks, score_lists
from ultr.train.stage import Stage
from ultr.train.team import Team


@dataclass(kw_only=True, eq=False)
class Estimator(ABC):
    """A ranker to be: the constructor stores options, `fit` learns, `score` ranks.

    A method is one file with a subclass: its options as fields, `build` for its network and `stages` for what is
    minimised. Everything else is here and in the loop.
    """

    name: ClassVar[str]
    """What the method is called on the command line and in files."""
    learns_from: ClassVar[type[ClickLog] | type[JudgedLists]] = ClickLog

    hidden: tuple[int, ...] = (512, 256, 128)
    """Sizes of the relevance network's hidden layers."""
    recipe: str = "fast"
    """`fast`, `collapsed` and `collapsed-adagrad`: click rates of whole lists, with Adam in small batches, a falling
    rate and layers that fade, with Adam, and with AdaGrad. `paper`: sampled sessions with AdaGrad."""
    steps: int | None = None
    """Steps before the base network's own, where a method has one; by default the recipe's."""
    learning_rate: float | None = None
    """By default the recipe's."""
    batch_size: int | None = None
    """Lists a step; by default the recipe's."""
    evaluate_every: int = 100
    """Steps between validations and checkpoints."""
    patience: int | None = None
    """Stop a stage after so many validations in a row without a new best one; by default never. With a recipe whose
    rate falls, that is before it has fallen."""
    precision: str = "float32"
    """Of the products of matrices in training; `bfloat16` is 1.5 to 2 times as fast where the processor knows it."""
    seed: int = 0
    """Of the first weights, the batches and the sampled sessions."""

    @abstractmethod
    def build(self, shape: Shape, generator: torch.Generator) -> ClickNetwork:
        """A new network."""

    @abstractmethod
    def stages(self, network: Any, lists: TrainingLists) -> Sequence[Stage]:
        """What is trained, one stage after the other."""

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        checks.sizes("hidden", self.hidden)
        checks.one_of("recipe", self.recipe, RECIPES)
        checks.one_of("precision", self.precision, PRECISIONS)
        for name in ("steps", "batch_size", "evaluate_every", "patience"):
            value = getattr(self, name)
            if value is not None:
                checks.integer(name, value, at_least=1)
        if self.learning_rate is not None:
            checks.positive("learning_rate", self.learning_rate)
        checks.integer("seed", self.seed, at_least=0)

    def title(self) -> str:
        """What the progress of training is shown under."""
        return type(self).__name__

    def choices(self) -> dict[str, Any]:
        """What `fit` chose where an option left it open, as JSON has it."""
        return {}

    def take_choices(self, choices: dict[str, Any]) -> None:
        """Restore what `choices` gave, before the network of a saved model is built."""
        if choices:
            raise OptionError(f"{type(self).__name__} leaves nothing to choose, got {', '.join(choices)}")

    def training_lists(self, data: Any, inputs: Inputs) -> TrainingLists:
        """What the method trains on; `inputs` are the features of the data."""
        return TrainingLists.of_log(data, inputs)

    def fit(
        self,
        data: ClickLog | JudgedLists,
        *,
        validation: JudgedLists | ClickLog | None = None,
        checkpoint: str | Path | None = None,
        progress: bool | Observer = False,
    ) -> Self:
        """Learn from `data` and give the estimator back, now a ranker.

        `validation` decides which weights are kept: judged lists by nDCG@10, held-out clicks by their likelihood.
        With `checkpoint`, a file, a run that was stopped goes on where it was and ends with the same weights.
        `progress` shows a bar, or tells an observer of yours.
        """
        self.check()
        self.check_data(data, validation)
        scaling = FeatureScaling.fit(data.features)
        lists = self.training_lists(data, Inputs(data.features, scaling))
        factors = _factors(data)
        shape = Shape(len(data.feature_names), tuple(len(levels) for _, levels in factors))
        network = self.build(shape, torch.Generator().manual_seed(int(self.seed)))
        provenance = Provenance.of(data, validation)
        fingerprint = data.fingerprint()
        history = train(
            network,
            self.stages(network, lists),
            lists,
            settings=self._settings(),
            validation=self._validation(validation, data, lists.inputs, scaling),
            checkpoint=Checkpoint(Path(checkpoint), self._run(fingerprint, validation)) if checkpoint else None,
            observer=self._observer(progress=progress),
        )
        self.network_ = network
        self.sample_: JudgedLists | None = sample_of(data)
        self.scaling_ = scaling
        self.feature_names_ = tuple(data.feature_names)
        self.factors_ = factors
        self.clicks_per_impression_ = float(lists.clicks.sum(dtype=np.float64) / lists.weights.sum())
        self.data_fingerprint_ = fingerprint
        self.provenance_: Provenance | None = provenance
        self.history_ = history
        self.origin_: Origin | None = None
        return self

    def score(self, features: Floats, offsets: Integers | None = None) -> Floats:
        """Scores of candidates, higher is better; without offsets they are the candidates of one query."""
        self.check_fitted()
        bounds = np.array([0, len(features)]) if offsets is None else np.asarray(offsets)
        ragged.check_offsets(bounds, len(features), what="candidates")
        # Each is looked at once, so nothing is gained by preparing all of them first.
        return score_lists(self.network_.score, self.inputs(features, in_memory=0), bounds)

    def inputs(self, features: Floats, *, in_memory: int | None = None) -> Inputs:
        """Candidates as the network takes them; what it cannot take is a `DataError`."""
        matrix = np.asarray(features, dtype=np.float32)
        if matrix.ndim != 2 or matrix.shape[1] != len(self.feature_names_):
            raise DataError(
                f"the ranker knows {len(self.feature_names_)} features, got an array of shape {matrix.shape}; "
                "give one row a candidate with the features in the order of feature_names_"
            )
        if not np.isfinite([matrix.min(initial=0.0), matrix.max(initial=0.0)]).all():
            row, column = np.argwhere(~np.isfinite(matrix))[0]
            name = self.feature_names_[column]
            raise DataError(f"candidate {row} has a NaN or infinite feature {name!r}; fill it in first")
        return Inputs(matrix, self.scaling_, in_memory=in_memory)

    def click_shares(self, log: ClickLog) -> Doubles:
        """For each shown document, the predicted share of its list's clicks that it gets."""
        return self._predict(log, lambda network, batch: network.click_shares(batch))

    def click_probabilities(self, log: ClickLog) -> Doubles:
        """For each shown document, the predicted probability of a click.

        Methods with a model of the click itself (RegressionEM, Affine) give its probability. The list-wise loss of the
        others fixes how the clicks of a list are shared out, not how many there are; their number an impression is
        that of the training log.
        """
        self.check_fitted()
        clicks = self.clicks_per_impression_
        return self._predict(
            log, lambda network, batch: network.click_probabilities(batch, clicks_per_impression=clicks)
        )

    def click_ratios(self, log: ClickLog, factor: str) -> Doubles:
        """How many times likelier each shown document is clicked under each level of a bias factor than under its
        first, all else being equal, [shown documents, levels].

        For a method with one propensity a position, that is the propensity over the first for all documents alike.
        """
        self.check_fitted()
        number = [name for name, _ in self.factors_].index(checks.one_of("factor", factor, dict(self.factors_)))
        logits = [
            self._predict(log, partial(_logits_at, number=number, level=level))
            for level in range(len(self.factors_[number][1]))
        ]
        return np.exp(np.stack(logits, axis=1) - logits[0][:, None])

    def _predict(self, log: ClickLog, predict: Callable[[ClickNetwork, Batch], Tensor]) -> Doubles:
        """What the network says of each shown document."""
        self.check_fitted()
        if self.learns_from is not ClickLog:
            raise OptionError(f"{type(self).__name__} does not model clicks, so there is nothing to compare with a log")
        if (log.feature_names, _factors(log)) != (self.feature_names_, self.factors_):
            raise DataError("the log has other features, bias factors or levels than the one the ranker was trained on")
        lists = TrainingLists.of_log(log, self.inputs(log.features))
        predictions: Doubles = gathering.new_array(len(log.documents), np.float64)
        with torch.no_grad():
            for chunk in chunks(lists.offsets):
                batch = lists.batch(chunk)
                shown = slice(log.offsets[chunk[0]], log.offsets[chunk[-1] + 1])
                predictions[shown] = predict(self.network_, batch)[batch.mask].numpy()
        return predictions

    def save(self, folder: str | Path, *, overwrite: bool = False, origin: Origin | None = None) -> None:
        """Write the ranker as a folder with its weights and a manifest, which may also say where it comes from."""
        self.check_fitted()
        model_file.save(
            folder,
            self.network_,
            model_file.Manifest.of(
                method=self.name,
                options={name: _plain(value) for name, value in self.get_params().items()},
                feature_names=self.feature_names_,
                scaling=self.scaling_,
                factors=self.factors_,
                clicks_per_impression=self.clicks_per_impression_,
                data_fingerprint=self.data_fingerprint_,
                provenance=self.provenance_,
                history=self.history_,
                choices=self.choices(),
                origin=origin or self.origin_,
            ),
            self.sample_,
            overwrite=overwrite,
        )

    @classmethod
    def from_saved(cls, manifest: model_file.Manifest, folder: str | Path) -> Self:
        """The ranker that `save` wrote."""
        ranker = cls()
        try:
            ranker.set_params(**{name: _untyped(value) for name, value in manifest.options.items()}).check()
            ranker.take_choices(manifest.choices)
        except (OptionError, TypeError) as error:
            raise ModelFileError(f"the manifest of {folder} does not fit {cls.__name__}: {error}") from error
        if bool(manifest.factors) != (cls.learns_from is ClickLog):
            raise ModelFileError(f"the manifest of {folder} does not fit {cls.__name__}: wrong bias factors")
        shape = Shape(len(manifest.feature_names), tuple(len(factor.levels) for factor in manifest.factors))
        network = ranker.build(shape, torch.Generator().manual_seed(0)).requires_grad_(False)
        model_file.load_weights(folder, network, manifest)
        ranker.network_ = network
        ranker.sample_ = load_sample(folder, tuple(manifest.feature_names))
        ranker.scaling_ = manifest.feature_scaling()
        ranker.feature_names_ = tuple(manifest.feature_names)
        ranker.factors_ = tuple((factor.name, tuple(factor.levels)) for factor in manifest.factors)
        ranker.clicks_per_impression_ = manifest.clicks_per_impression
        ranker.data_fingerprint_ = manifest.data_fingerprint
        ranker.provenance_ = manifest.provenance
        ranker.history_ = [Record(**record.model_dump()) for record in manifest.history]
        ranker.origin_ = manifest.origin
        return ranker

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001
        """The options by name, as scikit-learn asks for them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **options: Any) -> Self:
        """Change options by name."""
        known = self.get_params()
        for name, value in options.items():
            setattr(self, checks.one_of(f"option of {type(self).__name__}", name, known), value)
        return self

    def first_stage_steps(self) -> int:
        """The steps asked for, or else the recipe's."""
        return self.steps or recipe(self.recipe).steps

    def _settings(self) -> Settings:
        chosen = recipe(self.recipe)
        return Settings(
            recipe=chosen,
            learning_rate=self.learning_rate or chosen.learning_rate,
            batch_size=self.batch_size or chosen.batch_size,
            evaluate_every=self.evaluate_every,
            patience=self.patience,
            precision=self.precision,
            seed=self.seed,
        )

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
        signals = data.clicks if isinstance(data, ClickLog) else data.labels
        if not signals.any():
            what = "click" if isinstance(data, ClickLog) else "relevant document"
            raise DataError(f"the training data have no {what}, so there is nothing to learn from")
        if validation is None:
            if self.patience is not None:
                raise OptionError("patience needs validation data to lose it over; give some, or leave patience out")
            return
        if validation.feature_names != data.feature_names:
            counts = f"{len(validation.feature_names)} and {len(data.feature_names)}"
            raise DataError(f"the validation data must have the same features as the training data, got {counts}")
        if isinstance(validation, ClickLog):
            if _factors(validation) != _factors(data):
                raise DataError("the validation log must have the bias factors and levels of the training log")
            if not validation.clicks.any():
                raise DataError(
                    "the validation log has no click, so it cannot choose weights; hold out more of the log"
                )

    def _validation(
        self,
        validation: JudgedLists | ClickLog | None,
        data: ClickLog | JudgedLists,
        inputs: Inputs,
        scaling: FeatureScaling,
    ) -> Validation | None:
        if isinstance(validation, JudgedLists):
            return LabelValidation(validation, scaling)
        if isinstance(validation, ClickLog):
            shared = inputs if validation.features is data.features else Inputs(validation.features, scaling)
            return ClickValidation(self.training_lists(validation, shared))
        return None

    def _observer(self, *, progress: bool | Observer) -> Observer | None:
        if not progress or not Team.of_environment().leads:
            return None
        return Bar(self.title()) if progress is True else progress

    def _run(self, fingerprint: str, validation: JudgedLists | ClickLog | None) -> str:
        chosen_by = None if validation is None else validation.fingerprint()
        how = asdict(recipe(self.recipe))
        options = json.dumps([self.name, self.get_params(), how, fingerprint, chosen_by], sort_keys=True, default=str)
        return blake2b(options.encode(), digest_size=16).hexdigest()

    def check_fitted(self) -> None:
        """Raise an `OptionError` before `fit`."""
        if not hasattr(self, "network_"):
            raise OptionError(f"this {type(self).__name__} is not fitted yet; call fit first")


def _logits_at(network: ClickNetwork, batch: Batch, *, number: int, level: int) -> Tensor:
    """The click logits of a batch as if one bias factor had this level everywhere."""
    factors = batch.factors.clone()
    factors[:, number] = level
    return network.click_logits(replace(batch, factors=factors)).double()


def _factors(data: ClickLog | JudgedLists) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Names and levels of the bias factors; judged lists have none."""
    return tuple((factor.name, factor.levels) for factor in data.factors) if isinstance(data, ClickLog) else ()


def _untyped(value: Any) -> Any:
    """JSON knows no tuples; options do."""
    return tuple(value) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """JSON knows no numpy numbers; users do."""
    return value.item() if isinstance(value, np.generic) else value

"""The ranker that fitting leaves: a frozen value that scores, predicts clicks, and can be saved and exported."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
import torch
from torch import Tensor

from ultr import checks
from ultr.arrays import Doubles, Floats, Integers
from ultr.data import gathering, ragged
from ultr.data.categories import Categories, category_columns
from ultr.data.click_log import ClickLog
from ultr.data.column_names import listed
from ultr.data.judged import JudgedLists
from ultr.data.named_features import match_features
from ultr.data.provenance import Provenance
from ultr.data.scaling import FeatureScaling
from ultr.data.shown_rows import check_index, row_offsets
from ultr.data.training_range import TrainingRange
from ultr.errors import DataError, OptionError
from ultr.methods.factors import Factor
from ultr.methods.known_levels import known_levels
from ultr.methods.origin import Origin
from ultr.notebook import as_html
from ultr.relevance.inputs import Inputs, all_documents
from ultr.relevance.preprocessing import Preprocessing
from ultr.train.checkpoint import Record
from ultr.train.lists import Batch, TrainingLists
from ultr.train.ranking_model import ObjectiveT, RankingModel
from ultr.train.selection import chunks, score_lists

if TYPE_CHECKING:
    from ultr.exporting.export import Export


@dataclass(frozen=True, eq=False)
class Ranker(Generic[ObjectiveT]):
    """A fitted ranker, with all that it needs and all that is known about how it was made."""

    method: str
    """Name of the method."""
    options: Mapping[str, Any]
    """Options of the estimator, as JSON has them; the seed is one of them."""
    model: RankingModel[ObjectiveT]
    feature_names: tuple[str, ...]
    scaling: FeatureScaling
    """Preprocessing of the features."""
    factors: tuple[Factor, ...]
    """Bias factors of the training log; empty if it learned from labels."""
    learned_factors: tuple[str, ...]
    """Names of those that the method could learn."""
    clicks_per_impression: float
    """Clicks per impression of the training log."""
    categories: Categories = field(default_factory=dict)
    """Values of each categorical feature by its name; arrays hold their codes, frames the values."""
    history: Sequence[Record] = ()
    """The learning curve."""
    choices: Mapping[str, Any] = field(default_factory=dict)
    """Options that training chose, and what it chose from, as JSON has them."""
    sample: JudgedLists | None = None
    """A few lists of the training data, to check exports on."""
    origin: Origin | None = None
    """Command and files that it was trained with; None if unknown."""
    provenance: Provenance | None = None
    """The data that it was trained on, and how they were cut out of larger logs; None if unknown."""

    @staticmethod
    def load(folder: str | Path) -> Ranker:
        """The ranker that `save` wrote."""
        from ultr.methods.registry import load

        return load(folder)

    def save(self, folder: str | Path, *, overwrite: bool = False, origin: Origin | None = None) -> None:
        """Write weights, manifest and sample as a folder, whole or not at all."""
        from ultr.methods.model_file import save

        save(folder, self if origin is None else replace(self, origin=origin), overwrite=overwrite)

    def export(self, path: str | Path, **options: Any) -> Export:
        """Write an ONNX file and check it against this ranker; see `ultr.export`."""
        from ultr.exporting.export import export

        return export(self, path, **options)

    def _repr_html_(self) -> str:
        relevance = self.options["relevance"]
        settings = ", ".join(f"{name}={value}" for name, value in relevance.items() if value is not None)
        names = [factor.name for factor in self.factors]
        content = {
            "features": f"{len(self.feature_names)}: {listed(self.feature_names, most=8)}",
            "relevance": settings,
            "bias factors": ", ".join(names) if names else "none, it learned from labels",
            "seeds": f"{self.options.get('seeds', 1)}, from {self.options['seed']}",
            "trained on": self.data_fingerprint or "unknown",
        }
        return as_html(f"Ranker by the method {self.method}", [{"": key, " ": text} for key, text in content.items()])

    @property
    def data_fingerprint(self) -> str:
        """The name of the exact training data; empty if unknown."""
        return self.provenance.data[0].fingerprint if self.provenance is not None else ""

    @property
    def objective(self) -> ObjectiveT:
        """The bias parameters that were learned."""
        return self.model.objective

    @property
    def left_out_factors(self) -> tuple[str, ...]:
        """Names of the bias factors that the method could not learn, if it learns any."""
        names = [factor.name for factor in self.factors]
        return tuple(name for name in names if self.learned_factors and name not in self.learned_factors)

    @cached_property
    def preprocessing(self) -> Preprocessing:
        """The preprocessing of the features, ready to use."""
        return Preprocessing(self.scaling, category_columns(self.feature_names, self.categories))

    @cached_property
    def training_range(self) -> TrainingRange:
        """The values that training had, by which others are told."""
        seen = self.scaling
        return TrainingRange(self.feature_names, seen.minimum, seen.maximum, seen.missing > 0, self.categories)

    def score(self, features: object, offsets: Integers | None = None, *, ids: Collection[str] = ()) -> Floats:
        """Scores of candidates, higher is better.

        Args:
            features: An array [candidates, features] in the order of `feature_names`, with codes for categories, or a
                frame (pandas, polars, Arrow, a mapping of columns), whose columns are matched by name, whatever their
                order, with the values of categories. A value that was never seen counts as `other` or as missing.
            offsets: Query `i` has the rows `offsets[i]:offsets[i + 1]`; by default all are candidates of one query.
            ids: Columns of a frame that are no features, such as query and document.

        """
        # Each is looked at once, so nothing is gained by preprocessing all of them first.
        inputs = self.inputs(self._matrix(features, ids), in_memory=0)
        bounds = np.array([0, len(inputs)]) if offsets is None else np.asarray(offsets)
        ragged.check_offsets(bounds, len(inputs), what="candidates")
        return score_lists(self.model.score, inputs, bounds)

    def predict(self, features: object, *, qid: object = None, group: object = None) -> Floats:
        """`score` as XGBoost and LightGBM call it: one score per row, higher is better.

        Args:
            features: As for `score`.
            qid: Query of each row, the rows of a query together.
            group: Rows of each query, in the place of `qid`.

        Without `qid` and `group`, every row is scored by itself, which is refused where a score depends on the other
        candidates.

        """
        matrix = self._matrix(features)
        if qid is not None or group is not None:
            check_index("qid", qid, features)
            return self.score(matrix, row_offsets(len(matrix), qid=qid, group=group))
        if self.model.ranking.by_list:
            raise OptionError(
                f"a score by the method {self.method} depends on the other candidates of its query; give predict qid= "
                "or group=, for a single query group=[len(X)]"
            )
        return self.score(matrix)

    def _matrix(self, features: object, ids: Collection[str] = ()) -> Floats:
        """Candidates as an array with the features in the order of `feature_names`."""
        if isinstance(features, np.ndarray | list | tuple):
            return np.asarray(features)
        return match_features(features, self.feature_names, categories=self.categories, ids=ids)

    def inputs(self, features: Floats, *, in_memory: int | None = None) -> Inputs:
        """Candidates as the relevance models take them; what they cannot take is a `DataError`."""
        matrix = np.asarray(features, dtype=np.float32)
        if matrix.ndim != 2 or matrix.shape[1] != len(self.feature_names):
            raise DataError(
                f"the ranker knows {len(self.feature_names)} features, got an array of shape {matrix.shape}; "
                "give one row per candidate with the features in the order of feature_names"
            )
        if np.isinf(
            [np.fmin.reduce(matrix, axis=None, initial=0.0), np.fmax.reduce(matrix, axis=None, initial=0.0)]
        ).any():
            row, column = np.argwhere(np.isinf(matrix))[0]
            name = self.feature_names[column]
            raise DataError(f"candidate {row} has an infinite feature {name!r}; fill it in first")
        for column in self.preprocessing.categories:
            codes = matrix[:, column]
            if (wrong := ~np.isnan(codes) & (codes != np.floor(codes))).any():
                row, name = int(wrong.argmax()), self.feature_names[column]
                raise DataError(
                    f"candidate {row} has {codes[row]:g} as feature {name!r}, which is categorical; an array holds the "
                    f"places of its values in categories[{name!r}], a frame the values"
                )
        if self.preprocessing.categories:
            matrix = self.preprocessing.with_known_codes(torch.from_numpy(np.array(matrix))).numpy()
        return Inputs(matrix, self.preprocessing, in_memory=in_memory, names=self.feature_names)

    def outputs(self, features: Floats, models: Sequence[str] = ("relevance",)) -> Floats:
        """r(x) of each candidate, by these relevance models side by side, [candidates, outputs]."""
        with torch.no_grad():
            found: Floats = self.model.outputs(all_documents(self.inputs(features)), models).numpy()
        return found

    def click_shares(self, log: ClickLog) -> Doubles:
        """For each shown document, the predicted share of its list's clicks that it gets."""
        return self._predict(log, self.objective.click_shares)[0]

    def click_probabilities(self, log: ClickLog) -> Doubles:
        """For each shown document, the predicted probability of a click.

        Methods with a model of the click itself (RegressionEM, Affine, DoublyRobust, TwoTower) give its probability.
        The list-wise loss of the others fixes how the clicks of a list are shared out, not how many there are; their
        number per impression is that of the training log.
        """
        return self._predict(log, self._probabilities)[0]

    def predict_clicks(self, log: ClickLog) -> tuple[Doubles, Doubles]:
        """`click_shares` and `click_probabilities`, for the price of one of them."""
        shares, probabilities = self._predict(log, self.objective.click_shares, self._probabilities)
        return shares, probabilities

    def _probabilities(self, r: Tensor, batch: Batch) -> Tensor:
        return self.objective.click_probabilities(r, batch, clicks_per_impression=self.clicks_per_impression)

    def click_ratios(self, log: ClickLog, factor: str) -> Doubles:
        """Clicks on each shown document under each level of a bias factor relative to its first level, all else being
        equal, [shown documents, levels].

        For a method with one propensity per position, that is the propensity over the first for all documents alike.
        """
        chosen = {each.name: each for each in self.factors}[
            checks.one_of("factor", factor, [each.name for each in self.factors])
        ]
        at_each = (partial(self._logits_at, column=chosen.column, level=level) for level in range(len(chosen.levels)))
        logits = self._predict(log, *at_each)
        return np.exp(np.stack(logits, axis=1) - logits[0][:, None])

    def _logits_at(self, r: Tensor, batch: Batch, *, column: int, level: int) -> Tensor:
        """The click logits of a batch as if one bias factor had this level everywhere."""
        factors = batch.factors.clone()
        factors[:, column] = level
        return self.objective.click_logits(r, replace(batch, factors=factors)).double()

    def _predict(self, log: ClickLog, *predict: Callable[[Tensor, Batch], Tensor]) -> list[Doubles]:
        """The predictions of these functions for each shown document, whose r(x) is computed once."""
        if not self.factors:
            raise OptionError(
                f"a ranker by the method {self.method} does not model clicks, so there is nothing to compare with a log"
            )
        if log.feature_names != self.feature_names:
            raise DataError("the log has other features than the one that the ranker was trained on")
        levels = known_levels(log, self.factors, learned=self.learned_factors)
        inputs = self.inputs(log.with_categories(self.categories).features)
        lists = replace(TrainingLists.of_log(log, inputs), factors=levels)
        predictions: list[Doubles] = [gathering.new_array(len(log.documents), np.float64) for _ in predict]
        with torch.no_grad():
            for chunk in chunks(lists.offsets):
                batch = lists.batch(chunk)
                shown = slice(log.offsets[chunk[0]], log.offsets[chunk[-1] + 1])
                r = self.model.outputs(batch.documents, self.objective.clicks_with)
                for found, function in zip(predictions, predict, strict=True):
                    found[shown] = function(r, batch)[batch.mask].numpy()
        return predictions

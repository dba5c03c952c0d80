"""Gradient-boosted trees as the relevance model of any method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn

from ultr import checks
from ultr.arrays import Doubles, Floats, Integers
from ultr.data.column_names import check_column
from ultr.errors import DataError, OptionError, imported
from ultr.relevance.forest import forest_of_lightgbm
from ultr.relevance.inputs import Documents, Inputs
from ultr.relevance.preprocessing import InputLayout
from ultr.relevance.recipe import Training
from ultr.relevance.relevance_model import Relevance, RelevanceModel
from ultr.relevance.search_space import Between, SearchSpace
from ultr.scoring.forest import Forest

if TYPE_CHECKING:
    from lightgbm import Booster

_BIAS_RATE = 0.05
"""Learning rate of bias parameters, which move by Adam between the rounds."""
_MOST_CODES = 4
"""Most categories that a split takes out. A set of k becomes up to 2 k thresholds, with what stands below its sides up
to k and k + 1 times; larger sets make larger trees that rank no better."""
_MOST_CATEGORICAL = 2
"""Most categorical features on a path from the root: with any number of them, trees would grow as (k + 1)^features."""
_CODES = 2**24
"""Category codes are below this, where every integer is a float32."""
_SMALLEST = 1e-6
"""No document counts less than this in a leaf: the curvature is estimated, and may come out negative."""


class BoostedTrees(RelevanceModel):
    """r(x) by a forest that grows by one tree for each output and step."""

    takes_missing: ClassVar[bool] = True

    def __init__(self, options: Trees, outputs: int) -> None:
        super().__init__()
        self.options, self.outputs = options, outputs
        self.forest = Forest.empty()
        self._learning = False
        self._known: WeakKeyDictionary[Inputs, tuple[int, Doubles]] = WeakKeyDictionary()
        self._growth: _Growth | None = None

    def forward(self, documents: Documents) -> Tensor:
        """r(x) of these documents, [documents, outputs]."""
        # Without a gradient it is validation, whose documents need not be among those that are learned from.
        if self._learning and torch.is_grad_enabled() and self._growth is not None:
            return self._growth.outputs_of(documents.rows)
        return torch.from_numpy(self._sums(documents.inputs)[documents.rows.numpy()]).float()

    def begin(self, documents: Documents) -> None:
        """Get ready to grow on these documents, from the trees that there are."""
        self._growth = _Growth(self.options, documents, self._sums(documents.inputs)[documents.rows.numpy()])

    @property
    def table(self) -> Tensor | None:
        """r(x) of the documents that it learns from, whose gradient and curvature a step is fitted to."""
        return self._growth.table if self._learning and self._growth is not None else None

    def step(self, gradient: Tensor, curvature: Tensor) -> None:
        """Add a tree for each output, fitted to the gradient by Newton's steps."""
        assert self._growth is not None
        self.forest = self.forest.add(self._growth.grow(gradient, curvature))

    def project(self, vector: Tensor) -> BoostedTrees:
        """The trees of r(x) . vector, with the vector in their leaves."""
        projected = BoostedTrees(self.options, 1)
        projected.forest = self.forest.project(vector.double().numpy())
        return projected

    def graph(self) -> nn.Module:
        """The trees as one node of a graph."""
        from ultr.relevance.forest_graph import ForestGraph

        return ForestGraph(self.forest, self.outputs)

    def requires_grad_(self, requires_grad: bool = True) -> BoostedTrees:  # noqa: FBT001
        """Let it grow, or not."""
        self._learning = requires_grad
        if not requires_grad:
            self._growth = None
        return self

    def get_extra_state(self) -> Tensor:
        """The trees as one tensor."""
        return torch.from_numpy(self.forest.as_matrix())

    def set_extra_state(self, state: Tensor) -> None:
        """The trees of such a tensor, in the place of those there were."""
        forest = Forest.of_matrix(state.cpu().numpy())
        if (forest.outputs >= self.outputs).any() or (forest.outputs < 0).any():
            raise ValueError(f"the trees add to other outputs than the {self.outputs} that there are")
        self.forest = forest
        self._known.clear()
        self._growth = None

    def _sums(self, inputs: Inputs) -> Doubles:
        """r(x) of all documents of a matrix; only the trees that are new since the last call are followed."""
        seen, sums = self._known.get(inputs, (0, np.zeros((len(inputs), self.outputs))))
        if seen < len(self.forest):
            sums = self.forest.some(slice(seen, None)).predict(inputs.features, self.outputs, start=sums)
        self._known[inputs] = len(self.forest), sums
        return sums


class _Growth:
    """LightGBM on the documents that are learned from, with gradients from elsewhere."""

    def __init__(self, options: Trees, documents: Documents, start: Doubles) -> None:
        self._place = torch.full((len(documents.inputs),), -1)
        self._place[documents.rows] = torch.arange(len(documents.rows))
        features = np.array(documents.inputs.features[documents.rows.numpy()])
        named = [documents.inputs.names.index(name) for name in options.categorical]
        columns = sorted({*named, *documents.inputs.preprocessing.categories})
        self._codes = {column: _numbered(features[:, column]) for column in columns}
        self._booster = _booster(options, features, columns, start)
        self.table = torch.from_numpy(start).float().requires_grad_()

    def outputs_of(self, rows: Tensor) -> Tensor:
        """r(x) of these documents; a gradient flows back into the table."""
        return self.table.index_select(0, self._place[rows])

    def grow(self, gradient: Tensor, curvature: Tensor) -> Forest:
        """The trees of one more round, none if no split gains anything; the table moves with them."""
        steps = [each.double().numpy() for each in (gradient, curvature.clamp(min=_SMALLEST))]
        if self.table.shape[1] == 1:
            steps = [each.ravel() for each in steps]
        # LightGBM takes a round without a split back, so that rounds are not numbered by how often it was asked.
        rounds = self._booster.num_trees() // self.table.shape[1]
        self._booster.update(fobj=lambda *_: tuple(steps))
        dump = self._booster.dump_model(start_iteration=rounds, num_iteration=1)
        sums = self._sums().reshape(self.table.shape)
        self.table = torch.from_numpy(sums.astype(np.float32)).requires_grad_()
        return forest_of_lightgbm(dump["tree_info"], self.table.shape[1], self._codes)

    def _sums(self) -> Doubles:
        """The sums of leaves that LightGBM keeps of its data; only those who evaluate get to see them."""
        seen: list[Doubles] = []

        def look(scores: Doubles, _: object) -> tuple[str, float, bool]:
            seen.append(scores)
            return "", 0.0, True

        self._booster.eval_train(feval=look)
        return seen[0]


def _numbered(column: Floats) -> Integers:
    """The category codes of a column in their order, each of which becomes its number: LightGBM keeps a bit of each."""
    known = ~np.isnan(column)
    codes, numbers = np.unique(column[known], return_inverse=True)
    column[known] = numbers
    return codes.astype(np.int64)


def _booster(options: Trees, features: Floats, categorical: list[int], start: Doubles) -> Booster:
    lightgbm = imported("lightgbm", "trees", why="trees need LightGBM")
    fewest = min(options.fewest_documents, max(len(features) // 4, 1))
    parameters: dict[str, Any] = {
        "objective": "none",
        "metric": "none",
        "num_class": start.shape[1],
        "num_leaves": options.leaves,
        "learning_rate": options.learning_rate,
        "min_data_in_leaf": fewest,
        "min_sum_hessian_in_leaf": 0.0,
        "lambda_l2": options.shrinkage,
        "max_bin": options.bins,
        **category_parameters(categorical, features.shape[1], fewest),
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": torch.get_num_threads(),
        "feature_pre_filter": False,
        "verbosity": -1,
    }
    init = start if start.shape[1] > 1 else start.ravel()
    data = lightgbm.Dataset(
        features, init_score=init, categorical_feature=categorical, params=parameters, free_raw_data=True
    )
    booster: Booster = lightgbm.Booster(parameters, data)
    return booster


def category_parameters(categorical: Sequence[int], features: int, fewest: int) -> dict[str, Any]:
    """LightGBM's parameters that keep trees with categorical features small; `fewest` documents make a leaf."""
    parameters: dict[str, Any] = {"max_cat_threshold": _MOST_CODES, "min_data_per_group": 2 * fewest}
    if len(categorical) > _MOST_CATEGORICAL:
        others = [column for column in range(features) if column not in categorical]
        together = combinations(categorical, _MOST_CATEGORICAL)
        parameters["interaction_constraints"] = [[*others, *some] for some in together]
    return parameters


@dataclass(frozen=True, kw_only=True)
class Trees(Relevance):
    """Gradient-boosted regression trees, grown by LightGBM on the gradients of the method's loss."""

    kind: ClassVar[str] = "trees"
    library: ClassVar[str | None] = "lightgbm"
    on_cpu: ClassVar[bool] = True

    rounds: int = 300
    """Rounds of growing, with one tree each (for each output)."""
    leaves: int = 7
    """Most leaves of a tree."""
    learning_rate: float = 0.1
    """Share of Newton's step that a tree takes."""
    fewest_documents: int = 50
    """Fewest documents of a leaf; at most a quarter of all."""
    shrinkage: float = 1.0
    """Penalty of large leaves: a leaf is - sum g / (sum h + shrinkage)."""
    bins: int = 255
    """Most values of a feature that are told apart; of categories, the most frequent ones."""
    categorical: tuple[str, ...] = ()
    """Features whose values are category codes, without an order: integers from 0, below 2^24; besides those that the
    log has categories of."""

    def check(self) -> None:
        """Raise an `OptionError` for an option that does not fit."""
        for name, least in (("rounds", 1), ("leaves", 2), ("fewest_documents", 1), ("bins", 2)):
            checks.integer(name, getattr(self, name), at_least=least)
        checks.positive("learning_rate", self.learning_rate)
        checks.not_negative("shrinkage", self.shrinkage)
        names: object = self.categorical
        if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
            raise OptionError(f"categorical must be a tuple of names of features, got {self.categorical!r}")
        if len(set(self.categorical)) < len(self.categorical):
            raise OptionError(f"categorical names a feature twice: {', '.join(self.categorical)}; name it once")

    def check_features(self, features: Floats, names: Sequence[str]) -> None:
        """Raise an `OptionError` for a categorical feature that is none, a `DataError` for what is no code."""
        for name in self.categorical:
            check_column(name, names, what="the training data")
            values = np.asarray(features[:, list(names).index(name)])
            wrong = ~np.isnan(values) & ~((values >= 0) & (values < _CODES) & (values == np.floor(values)))
            if wrong.any():
                row = int(wrong.argmax())
                raise DataError(
                    f"feature {name!r} is categorical, so its values must be codes, integers from 0 to {_CODES - 1:,}, "
                    f"got {values[row]:g} for document {row}; number the categories, or take it out of categorical"
                )

    def build(self, features: InputLayout, outputs: int, *, generator: torch.Generator) -> BoostedTrees:
        """No trees yet."""
        return BoostedTrees(self, outputs)

    def training(self) -> Training:
        """A round is a step on all lists."""
        return Training(
            optimizer="adam",
            learning_rate=_BIAS_RATE,
            steps=self.rounds,
            sessions=False,
            batch_size=None,
            evaluate_every=10,
        )

    def search_space(self) -> SearchSpace:
        """Rounds, the size of trees and of their leaves, and the learning rate."""
        return {
            "rounds": Between(50, 600, whole=True),
            "leaves": Between(4, 31, whole=True),
            "learning_rate": Between(0.02, 0.3),
            "fewest_documents": Between(10, 300, whole=True),
        }

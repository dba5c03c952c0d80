"""Every method keeps to the contract that others can test their own methods with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.methods.trees_contract import TreesContract

from ultr.data.bias_factor import numeric_factor
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.errors import OptionError
from ultr.methods import DLA, LBD, Affine, Auto, RegressionEM, TwoTower, Vectorization, methods_with
from ultr.methods.estimator import Estimator
from ultr.methods.lambdamart import LambdaMART
from ultr.relevance import MLP, Trees
from ultr.testing.methods import MethodContract, small_log


class _Contract(MethodContract):
    changes: ClassVar[dict[str, Any]] = {
        "dimension": 2,
        "schedule": "joint",
        "combine": "sum",
        "smooth": False,
        "base_hidden": (5,),
        "base_steps": 3,
        "base_penalty": 10.0,
        "propensities": (1.0, 0.5, 0.4, 0.3, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2),
        "estimator": "pivot",
        "smallest": 0.5,
        "em_rate": 0.5,
        "norm": 0.0,
        "start": 0.2,
        "dropout": 0.3,
        "penalty": 5.0,
        "reversal": 0.5,
        "largest_weight": 5.0,
        "logging_score": "linear_2",
        "link": "softmax",
        "weight_power": 1.0,
        "stopping": 0.5,
        "debias": True,
        "sessions": 700,
    }

    def has_effect(self, option: str, method: type[Estimator]) -> bool:
        """Vectors of their own are for trees."""
        only = {"vector_hidden", "vector_steps", "soft_targets", "loss"}
        return super().has_effect(option, method) and option not in only

    def data_for(self, option: str, method: type[Estimator]) -> ClickLog | JudgedLists:
        """Several bias factors, where an option is about how they are combined, or a numeric one."""
        log = small_log()
        if option == "combine":
            return replace(log, factors=(*log.factors, replace(log.factors[0], name="device")))
        if option == "smooth":
            pixels = np.random.default_rng(0).uniform(size=len(log.documents))
            return replace(log, factors=(*log.factors, numeric_factor("pixels", pixels)))
        return self.data(method)


WITH_NETWORKS = methods_with(MLP)


@pytest.mark.parametrize("method", list(WITH_NETWORKS.values()), ids=list(WITH_NETWORKS))
class TestEveryMethod(_Contract):
    pass


class _TreesContract(TreesContract, _Contract):
    changes: ClassVar[dict[str, Any]] = _Contract.changes | {
        "vector_hidden": (4,),
        "vector_steps": 5,
        "soft_targets": 0.5,
        "loss": "softmax",
    }

    def make(self, method: type[Estimator], **options: Any) -> Estimator:
        # A network learns the vectors, in a moment, and trees the clicks, by heart; libraries draw few sessions.
        short: dict[str, Any] = {}
        if method in {Auto, Vectorization}:
            short = {"vector_hidden": (8,), "vector_steps": 30}
        if method is Vectorization:
            short["soft_targets"] = 0.0
        if issubclass(method, LambdaMART):
            short = {"sessions": 2_000}
        return super().make(method, **short | options)

    def has_effect(self, option: str, method: type[Estimator]) -> bool:
        # Trees have no base network. Where each document has a loss of its own, the curvature is exact, and nothing is
        # drawn.
        pointwise = method in {RegressionEM, TwoTower}
        unused = {"schedule", "base_hidden", "base_steps", "base_penalty", *(["seed"] if pointwise else [])}
        return MethodContract.has_effect(self, option, method) and option not in unused

    def test_separate_sessions_train_like_the_collapsed_log(self, method: type[Estimator]) -> None:
        if method in {Auto, Vectorization}:
            pytest.skip("a network learns its vectors, from batches of lists")
        super().test_separate_sessions_train_like_the_collapsed_log(method)


WITH_TREES = methods_with(Trees)


@pytest.mark.parametrize("method", list(WITH_TREES.values()), ids=list(WITH_TREES))
class TestEveryMethodWithTrees(_TreesContract):
    pass


@pytest.mark.parametrize("method", [TwoTower, LBD], ids=["two-tower with all remedies", "lbd with dropout"])
class TestRandomLosses(_Contract):
    """The contract once more, of losses that draw random numbers, have an adversary and weigh impressions."""

    def make(self, method: type[Estimator], **options: Any) -> Estimator:
        remedies = {"dropout": 0.3} | ({"reversal": 0.1, "largest_weight": 20.0} if method is TwoTower else {})
        return super().make(method, **remedies | options)

    changes: ClassVar[dict[str, Any]] = {"dropout": 0.6, "reversal": 1.0, "largest_weight": 2.0}

    def has_effect(self, option: str, method: type[Estimator]) -> bool:
        return option in self.changes


class _WithAValue(_Contract):
    """The contract once more, of rankers by what follows the click."""

    def make(self, method: type[Estimator], **options: Any) -> Estimator:
        return super().make(method, **{"value": {"purchase": 1.0}} | options)

    def has_effect(self, option: str, method: type[Estimator]) -> bool:
        return option == "value"

    common_changes: ClassVar[dict[str, Any]] = {"value": {"click": 1.0, "purchase": 20.0}}


@pytest.mark.parametrize("method", [Vectorization, Affine, DLA], ids=["vectorization", "affine", "dla"])
class TestMethodsWithAValue(_WithAValue):
    pass


@pytest.mark.parametrize("method", [Vectorization], ids=["vectorization"])
class TestTreesWithAValue(_WithAValue, _TreesContract):
    pass


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": ()}, "hidden must be a tuple of layer sizes"),
        ({"hidden": 16}, "hidden must be a tuple of layer sizes"),
        ({"hidden": (16.5,)}, "each size in hidden must be an integer"),
        ({"recipe": "papers"}, "did you mean 'paper'"),
        ({"steps": 0}, "steps must be an integer of at least 1, got 0"),
        ({"learning_rate": -1.0}, "learning_rate must be a number above 0"),
        ({"batch_size": 1.5}, "batch_size must be an integer of at least 1"),
        ({"precision": "float16"}, "precision must be one of float32, bfloat16"),
    ],
    ids=str,
)
def test_options_of_a_network_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        TwoTower(relevance=MLP(**options)).check()

"""Warm starts: training that begins with the weights of an earlier ranker.

Weights mean something only beside what they were learned with. So the earlier ranker's preprocessing is kept, and the
method, the sizes, the features, the categories and the levels of the bias factors that it learns must be the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from torch import nn

from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.provenance import Provenance
from ultr.data.scaling import FeatureScaling
from ultr.errors import UltrWarning, WarmStartError
from ultr.methods.factors import Factor
from ultr.methods.model_file import weights_digest
from ultr.relevance.preprocessing import indicated
from ultr.train.bounded import LOGGED
from ultr.train.weights import GROWING, check_weights

if TYPE_CHECKING:
    from ultr.methods.estimator import Estimator
    from ultr.methods.ranker import Ranker

FARTHEST = 3.0
"""Scaled features lie in [-1, 1] in training; new ones may lie as far outside as that range is wide."""
TREES_ANEW = (
    "trees are trained anew, not from the earlier model: a forest only grows, so that it would become slower with "
    "every start and never forget what has left the log"
)


def usable(init_model: Ranker | None, estimator: Estimator) -> Ranker | None:
    """The ranker to begin with; None, with a warning, where its kind is always trained anew.

    A ranker of another method, or that ranks by another value, is a `WarmStartError`.
    """
    if init_model is None:
        return None
    if estimator.seeds > 1:
        raise _unfit(f"the rankers of {estimator.seeds} seeds begin with weights of their own")
    kinds = [content["kind"] for content in (init_model.options["relevance"], estimator.content()["relevance"])]
    ours = (estimator.name, kinds[1], estimator.content()["value"])
    if (init_model.method, kinds[0], init_model.options.get("value")) != ours:
        raise _unfit(f"it is a ranker by {init_model.method} ({kinds[0]}), and this is {estimator.name} ({kinds[1]})")
    if any(name.endswith(GROWING) for name in init_model.model.state_dict()):
        warnings.warn(TREES_ANEW, UltrWarning, stacklevel=3)
        return None
    return init_model


def scaling_of(
    init_model: Ranker, data: ClickLog | JudgedLists, found: FeatureScaling, learned: Sequence[Factor]
) -> FeatureScaling:
    """The scaling that the earlier ranker was trained with, if it still fits the data, whose own is `found`.

    Of the bias factors of the data only those that are learned have weights, and so must be as they were.
    """
    if tuple(data.feature_names) != init_model.feature_names:
        raise _unfit(
            f"it knows {len(init_model.feature_names)} features, the log has {len(data.feature_names)} or other names"
        )
    if (data.categories if isinstance(data, ClickLog) else {}) != init_model.categories:
        raise _unfit("the values of categorical features are not those that it was trained with")
    before = [factor for factor in init_model.factors if factor.name in init_model.learned_factors]
    if _levels(learned) != _levels(before):
        raise _unfit("the bias factors of the log, or their levels, are not those that it was trained with")
    known = init_model.scaling
    numbers = np.array([name not in init_model.categories for name in data.feature_names])
    ends = np.abs(np.stack([(end - known.centre) * known.factor for end in (found.minimum, found.maximum)]))
    constant, moved = known.factor == 0, (found.minimum != known.minimum) | (found.maximum != known.maximum)
    for outside, why in (
        (constant & moved, "was the same everywhere when it was trained, so that it has no weights for it"),
        ((ends > FARTHEST).any(axis=0), "lies far outside the range that it was trained with"),
        (_newly_missing(known, found), "is missing now, and was not when it was trained"),
    ):
        if (wrong := outside & numbers).any():
            raise _unfit(f"feature {data.feature_names[int(wrong.argmax())]!r} {why}")
    return known


def begin_with(model: nn.Module, init_model: Ranker, warm: Callable[[str], bool]) -> None:
    """Put those weights of an earlier ranker into a new model whose names are `warm`; others stay as they are."""
    own = model.state_dict()
    earlier = {
        name: tensor
        for name, tensor in init_model.model.state_dict().items()
        # The logged order that a safe ranker keeps to is learned anew.
        if not (name == "factor" or name.startswith(f"models.{LOGGED}."))
    }
    try:
        check_weights(earlier, model)
    except ValueError as error:
        raise _unfit(f"its networks are of other sizes ({error})") from error
    model.load_state_dict({name: earlier[name] if warm(name) else tensor for name, tensor in own.items()})


def provenance_after(trained: Provenance, init_model: Ranker | None) -> Provenance | None:
    """The record of a ranker that began with the weights of another; None where that one has none."""
    if init_model is None:
        return trained
    return (
        None
        if init_model.provenance is None
        else trained.after(init_model.provenance, weights_digest(init_model.model))
    )


def _levels(factors: Iterable[Factor]) -> list[tuple[str, tuple[str, ...], tuple[float, ...]]]:
    return [(factor.name, factor.levels, factor.edges) for factor in factors]


def _newly_missing(known: FeatureScaling, found: FeatureScaling) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """[features], True for those that are missing often enough to need an indicator, and have none."""
    new = np.zeros(len(found.missing), dtype=np.bool_)
    new[sorted(set(indicated(found.missing)) - set(indicated(known.missing)))] = True
    return new


def _unfit(why: str) -> WarmStartError:
    return WarmStartError(f"training cannot begin with the earlier model: {why}; train anew, without init_model")

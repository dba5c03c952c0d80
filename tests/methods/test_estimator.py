from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone

from ultr.data.click_log import ClickLog
from ultr.errors import NotFittedError, OptionError
from ultr.methods import ClickBaseline, TwoTower, Vectorization
from ultr.methods.flat_options import estimator
from ultr.relevance import MLP

TINY = MLP(hidden=(4,), steps=3)


def test_options_of_the_relevance_model_are_options_of_the_method() -> None:
    method = Vectorization(relevance=TINY, dimension=2)
    options = method.get_params(deep=True)
    assert (options["relevance"], options["relevance__hidden"], options["relevance__steps"]) == (TINY, (4,), 3)
    assert options["dimension"] == 2
    assert not any("__" in name for name in method.get_params(deep=False))


def test_options_can_be_changed_at_any_depth() -> None:
    method = Vectorization(relevance=TINY)
    assert method.set_params(relevance__hidden=(8, 4), dimension=5) is method
    assert (method.relevance, method.dimension) == (MLP(hidden=(8, 4), steps=3), 5)
    # What is inside a new relevance model is changed after it, in whatever order they come.
    method.set_params(relevance__steps=7, relevance=MLP(hidden=(2,)))
    assert method.relevance == MLP(hidden=(2,), steps=7)
    # The value that was given is not changed behind its owner's back.
    assert MLP(hidden=(4,), steps=3) == TINY
    with pytest.raises(OptionError, match="did you mean 'relevance__hidden'"):
        method.set_params(relevance__hiden=(3,))
    with pytest.raises(OptionError, match="did you mean 'dimension'"):
        method.set_params(dimensions=3)


def test_a_clone_is_an_equal_unfitted_estimator(small_log: ClickLog) -> None:
    fitted = TwoTower(relevance=TINY, dropout=0.2, seed=3).fit(small_log)
    copy = clone(fitted)
    assert type(copy) is TwoTower
    assert copy is not fitted
    assert copy.get_params() == fitted.get_params()
    assert hasattr(fitted, "ranker_")
    assert not hasattr(copy, "ranker_")
    with pytest.raises(NotFittedError, match="this TwoTower is not fitted yet; call fit first"):
        copy.score(small_log.features)


def test_fit_gives_the_estimator_and_keeps_the_ranker(small_log: ClickLog) -> None:
    method = ClickBaseline(relevance=TINY)
    assert method.fit(small_log) is method
    ranker = method.ranker_
    assert (ranker.method, ranker.feature_names) == ("click", small_log.feature_names)
    assert method.feature_names_ == ranker.feature_names
    assert method.history_ == list(ranker.history)
    assert ranker.data_fingerprint == small_log.fingerprint()
    np.testing.assert_array_equal(method.score(small_log.features), ranker.score(small_log.features))
    with pytest.raises(AttributeError):
        ranker.method = "dla"  # type: ignore[misc]


def test_flat_options_are_shared_out_between_method_and_relevance_model() -> None:
    made = estimator(Vectorization, {"hidden": [16, 8], "steps": 30, "dimension": 2, "base_hidden": [5], "seed": 4})
    assert isinstance(made, Vectorization)
    assert made.relevance == MLP(hidden=(16, 8), steps=30)
    assert (made.dimension, made.base_hidden, made.seed) == (2, (5,), 4)
    assert estimator(Vectorization, {"relevance": "mlp"}).relevance == MLP()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hiden": (3,)}, "did you mean 'hidden'"),
        ({"dropout": 0.3}, "option of Vectorization"),
        ({"relevance": "mpl"}, "did you mean 'mlp'"),
        ({"steps": 0}, "steps must be an integer of at least 1"),
        ({"dimension": 0}, "dimension must be an integer of at least 1"),
    ],
    ids=str,
)
def test_flat_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        estimator(Vectorization, options)


def test_a_relevance_model_that_is_none_is_refused(small_log: ClickLog) -> None:
    with pytest.raises(OptionError, match=r"relevance must be a relevance model such as ultr\.MLP\(\), got 'mlp'"):
        ClickBaseline(relevance="mlp").fit(small_log)  # type: ignore[arg-type]


def test_a_device_by_number_trains_as_the_cpu_does(small_log: ClickLog) -> None:
    on_cpu, by_number = (Vectorization(relevance=TINY, device=name).fit(small_log) for name in ("cpu", "cpu:0"))
    np.testing.assert_array_equal(on_cpu.score(small_log.features), by_number.score(small_log.features))
    assert {parameter.device for parameter in by_number.ranker_.model.parameters()} == {torch.device("cpu")}


@pytest.mark.parametrize(
    "device",
    ["nonsense", "", pytest.param("cuda", marks=pytest.mark.skipif(torch.cuda.is_available(), reason="has CUDA"))],
)
def test_a_device_that_cannot_be_used_is_refused_in_one_sentence(device: str, small_log: ClickLog) -> None:
    with pytest.raises(OptionError) as caught:
        ClickBaseline(relevance=TINY, device=device).fit(small_log)
    assert str(caught.value).startswith(f"torch cannot use the device {device!r} here; use")
    assert str(caught.value).endswith("use 'cpu'")
    assert len(str(caught.value).splitlines()) == 1

"""What every method must do; a new one inherits it by being in the registry."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch.nn import functional

from ultr.arrays import Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.scaling import FeatureScaling
from ultr.datasets.splits import Splits
from ultr.errors import DataError, OptionError
from ultr.methods import METHODS, load
from ultr.methods.estimator import Estimator
from ultr.methods.network import Shape
from ultr.train.inputs import Inputs

SMALL: dict[str, Any] = {"hidden": (16,), "steps": 30, "evaluate_every": 10, "batch_size": 32}
CHANGES: dict[str, Any] = {
    "hidden": (8,),
    "recipe": "paper",
    "steps": 20,
    "learning_rate": 0.02,
    "batch_size": 16,
    "seed": 1,
    "dimension": 2,
    "schedule": "joint",
    "combine": "sum",
    "base_hidden": (5,),
    "base_steps": 3,
    "base_penalty": 10.0,
    "evaluate_every": 7,
    "patience": 1,
    "precision": "bfloat16",
    "propensities": (1.0, 0.5, 0.4, 0.3, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2),
    "estimator": "pivot",
    "smallest": 0.5,
    "em_rate": 0.5,
    "norm": 0.0,
    "start": 0.2,
}
"""A value other than the default for every option of every method."""


def _data(method: type[Estimator], small: Splits, pair_log: ClickLog) -> ClickLog | JudgedLists:
    return small.train if method.learns_from is JudgedLists else pair_log


@pytest.fixture(params=list(METHODS.values()), ids=list(METHODS))
def method(request: pytest.FixtureRequest) -> type[Estimator]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def data(method: type[Estimator], small: Splits, pair_log: ClickLog) -> ClickLog | JudgedLists:
    return _data(method, small, pair_log)


def test_the_same_seed_gives_the_same_scores_bit_for_bit(
    method: type[Estimator], data: ClickLog | JudgedLists, small: Splits
) -> None:
    first, second = (method(**SMALL).fit(data, validation=small.validation) for _ in range(2))
    assert (
        first.score(small.test.features, small.test.offsets) == second.score(small.test.features, small.test.offsets)
    ).all()


def _together(clicks: Integers, offsets: Integers) -> Integers:
    """Pair clicks of sessions where the document with fewer clicks has its own while the other has one too."""
    first, second = ragged.pair_members(offsets)
    return np.minimum(clicks[first], clicks[second])


@pytest.mark.parametrize("method", [method for method in METHODS.values() if method.learns_from is ClickLog])
def test_separate_sessions_train_like_the_collapsed_log(method: type[Estimator], pair_log: ClickLog) -> None:
    few = pair_log.select(pair_log.queries < 20)
    count = few.lists
    clicks = few.clicks % 5
    few = replace(few, impressions=np.full(count, 4), clicks=clicks, pair_clicks=_together(clicks, few.offsets))
    rows = ragged.rows_of(np.repeat(np.arange(count), 4), few.offsets)
    turns = np.repeat(np.tile(np.arange(4), count), few.lengths.repeat(4))
    clicks, offsets = (clicks[rows] > turns).astype(np.int64), ragged.from_lengths(few.lengths.repeat(4))
    separate = replace(
        few,
        documents=few.documents[rows],
        offsets=offsets,
        factors=tuple(replace(factor, values=factor.values[rows]) for factor in few.factors),
        impressions=np.ones(4 * count, dtype=np.int64),
        clicks=clicks,
        queries=few.queries.repeat(4),
        pair_clicks=_together(clicks, offsets),
    )
    assert separate.clicks.sum() == few.clicks.sum()
    # Full batches, so that both see the whole log at every step; the order of summation differs in the last digits.
    options = SMALL | {"steps": 5, "batch_size": 4 * count, "learning_rate": 1e-4}
    collapsed_scores = method(**options).fit(few).score(few.features)
    separate_scores = method(**options).fit(separate).score(few.features)
    # A list-wise loss does not see a constant in all scores, so rounding decides where it wanders.
    np.testing.assert_allclose(
        collapsed_scores - collapsed_scores.mean(), separate_scores - separate_scores.mean(), rtol=2e-3, atol=2e-4
    )


def test_masked_documents_change_nothing(method: type[Estimator], data: ClickLog | JudgedLists) -> None:
    ranker = method(**SMALL)
    lists = ranker.training_lists(data, Inputs(data.features, FeatureScaling.fit(data.features)))
    levels = tuple(len(factor.levels) for factor in data.factors) if isinstance(data, ClickLog) else ()
    network = ranker.build(Shape(64, levels), torch.Generator().manual_seed(0))
    narrow = lists.batch(np.arange(20))
    wide = replace(
        narrow,
        clicks=functional.pad(narrow.clicks, (0, 3), value=0.7),
        mask=functional.pad(narrow.mask, (0, 3), value=False),
        pairs=None if narrow.pairs is None else functional.pad(narrow.pairs, (0, 3, 0, 3)),
    )
    for stage in ranker.stages(network, lists):
        if stage.begin is not None:
            stage.begin()
        start, outcomes = deepcopy(network.state_dict()), []
        for batch in (narrow, wide):
            network.load_state_dict(start)
            network.zero_grad()
            losses, sums = stage.losses(batch)
            losses.sum().backward()
            if stage.update is not None:
                assert sums is not None
                stage.update(sums)
            gradients = [weights.grad for weights in network.parameters() if weights.grad is not None]
            outcomes.append([losses.detach(), *deepcopy(gradients), *deepcopy(network.state_dict()).values()])
        torch.testing.assert_close(*outcomes, rtol=1e-4, atol=1e-5)


def test_scores_do_not_depend_on_the_order_of_candidates(
    method: type[Estimator], data: ClickLog | JudgedLists, small: Splits
) -> None:
    ranker = method(**SMALL).fit(data)
    candidates = small.test.features[small.test.offsets[0] : small.test.offsets[1]]
    order = np.random.default_rng(0).permutation(len(candidates))
    np.testing.assert_allclose(ranker.score(candidates)[order], ranker.score(candidates[order]), rtol=1e-4, atol=1e-5)


def test_a_query_scores_the_same_alone_and_among_longer_ones(
    method: type[Estimator], data: ClickLog | JudgedLists, small: Splits
) -> None:
    ranker = method(**SMALL).fit(data)
    together = ranker.score(small.test.features, small.test.offsets)
    for start, end in list(zip(small.test.offsets[:-1], small.test.offsets[1:], strict=True))[:5]:
        np.testing.assert_allclose(
            ranker.score(small.test.features[start:end]), together[start:end], rtol=1e-4, atol=1e-5
        )


def test_queries_without_candidates_are_fine(
    method: type[Estimator], data: ClickLog | JudgedLists, small: Splits
) -> None:
    ranker = method(**SMALL).fit(data)
    some = small.test.features[:5]
    np.testing.assert_array_equal(ranker.score(some, np.array([0, 0, 5, 5])), ranker.score(some))
    assert ranker.score(some[:0]).shape == (0,)


def test_saving_and_loading_gives_the_same_scores(
    method: type[Estimator], data: ClickLog | JudgedLists, small: Splits, tmp_path: Path
) -> None:
    ranker = method(**SMALL).fit(data)
    ranker.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert type(loaded) is method
    assert loaded.get_params() == ranker.get_params()
    assert loaded.history_ == ranker.history_
    np.testing.assert_array_equal(
        loaded.score(small.test.features, small.test.offsets), ranker.score(small.test.features, small.test.offsets)
    )


@pytest.mark.parametrize("method", [method for method in METHODS.values() if method.learns_from is ClickLog])
def test_predicted_clicks_are_probabilities_in_the_proportion_of_the_shares(
    method: type[Estimator], pair_log: ClickLog
) -> None:
    ranker = method(**SMALL).fit(pair_log)
    chances, shares = ranker.click_probabilities(pair_log), ranker.click_shares(pair_log)
    lists = ragged.list_numbers(pair_log.offsets)
    assert ((chances > 0) & (chances <= 1)).all()
    np.testing.assert_allclose(np.bincount(lists, shares), 1)
    uncut = np.bincount(lists, chances == 1)[lists] == 0
    np.testing.assert_allclose((chances / np.bincount(lists, chances)[lists])[uncut], shares[uncut], rtol=1e-6)


def test_clone_gives_an_unfitted_estimator_with_the_same_options(
    method: type[Estimator], data: ClickLog | JudgedLists
) -> None:
    ranker = method(**SMALL | {"seed": 3}).fit(data)
    copy = clone(ranker)
    assert copy.get_params() == ranker.get_params()
    assert not hasattr(copy, "network_")


@pytest.mark.parametrize(
    ("method", "option"), [(method, option) for method in METHODS.values() for option in method().get_params()]
)
def test_every_option_changes_something(
    method: type[Estimator], option: str, small: Splits, pair_log: ClickLog
) -> None:
    data = _data(method, small, pair_log)
    base = dict(SMALL)
    if option == "combine":
        device = replace(pair_log.factors[0], name="device")
        data = replace(pair_log, factors=(*pair_log.factors, device))
    if option in {"patience", "evaluate_every"}:
        base |= {"steps": 200, "learning_rate": 0.02}
    first = method(**base).fit(data, validation=small.validation)
    second = method(**base | {option: CHANGES[option]}).fit(data, validation=small.validation)
    same_scores = np.array_equal(first.score(small.test.features[:40]), second.score(small.test.features[:40]))
    assert first.history_ != second.history_ or not same_scores


def test_every_option_has_a_changed_value_to_test(method: type[Estimator]) -> None:
    assert set(method().get_params()) <= set(CHANGES)


def test_more_training_fits_the_data_better(method: type[Estimator], data: ClickLog | JudgedLists) -> None:
    ranker = method(**SMALL | {"steps": 150}).fit(data, validation=data)
    values = [record.value for record in ranker.history_ if record.stage == ranker.history_[0].stage]
    assert values[0] is not None
    assert values[-1] is not None
    assert values[-1] > values[0]


def test_numpy_numbers_serve_as_options(method: type[Estimator], data: ClickLog | JudgedLists, tmp_path: Path) -> None:
    ranker = method(**SMALL | {"seed": np.int64(2), "learning_rate": np.float32(0.01)}).fit(data)
    ranker.save(tmp_path / "model")
    assert load(tmp_path / "model").get_params()["seed"] == 2


def test_one_feature_is_enough_to_tell_candidates_apart(method: type[Estimator], data: ClickLog | JudgedLists) -> None:
    one = replace(data, features=data.features[:, :1], feature_names=data.feature_names[:1])
    scores = method(**SMALL).fit(one).score(one.features[:50])
    assert len(np.unique(scores)) > 25


def test_data_without_a_signal_are_refused(method: type[Estimator], data: ClickLog | JudgedLists) -> None:
    if isinstance(data, ClickLog):
        silent: ClickLog | JudgedLists = replace(data, clicks=np.zeros_like(data.clicks), pair_clicks=None)
    else:
        silent = replace(data, labels=np.zeros_like(data.labels))
    with pytest.raises(DataError, match="nothing to learn from"):
        method(**SMALL).fit(silent)


def test_patience_without_validation_is_refused(method: type[Estimator], data: ClickLog | JudgedLists) -> None:
    with pytest.raises(OptionError, match="patience needs validation data"):
        method(**SMALL | {"patience": 3}).fit(data)


def test_an_unfitted_ranker_says_so(method: type[Estimator]) -> None:
    with pytest.raises(OptionError, match="not fitted yet"):
        method().score(np.zeros((1, 3), dtype=np.float32))


def test_missing_features_and_bad_values_are_named(
    method: type[Estimator], data: ClickLog | JudgedLists, small: Splits
) -> None:
    ranker = method(**SMALL).fit(data)
    with pytest.raises(DataError, match="the ranker knows 64 features"):
        ranker.score(small.test.features[:, :10])
    broken = small.test.features[:4].copy()
    broken[2, 5] = np.nan
    with pytest.raises(DataError, match="candidate 2 has a NaN or infinite feature 'linear_6'"):
        ranker.score(broken)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": ()}, "hidden must be a tuple of layer sizes"),
        ({"hidden": 16}, "hidden must be a tuple of layer sizes"),
        ({"hidden": (16.5,)}, "each size in hidden must be an integer"),
        ({"seed": 2**70}, "seed must be an integer"),
        ({"recipe": "papers"}, "did you mean 'paper'"),
        ({"steps": 0}, "steps must be an integer of at least 1, got 0"),
        ({"learning_rate": -1.0}, "learning_rate must be a number above 0"),
        ({"seed": -1}, "seed must be an integer of at least 0"),
        ({"batch_size": 1.5}, "batch_size must be an integer of at least 1"),
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused(
    options: dict[str, Any], message: str, method: type[Estimator], data: ClickLog | JudgedLists
) -> None:
    with pytest.raises(OptionError, match=message):
        method(**options).fit(data)


def test_the_wrong_kind_of_data_is_refused(method: type[Estimator], small: Splits, pair_log: ClickLog) -> None:
    wrong = pair_log if method.learns_from is JudgedLists else small.train
    with pytest.raises(OptionError, match="learns from"):
        method(**SMALL).fit(wrong)

"""Trees as a relevance model: growing, resuming, missing values."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ultr.data.click_log import ClickLog
from ultr.errors import MissingExtraError, ModelFileError, OptionError, UltrWarning
from ultr.exporting import export
from ultr.methods import ClickBaseline, LabelBaseline, Vectorization, load
from ultr.relevance import MLP, Trees
from ultr.relevance.trees import BoostedTrees
from ultr.scoring import Scorer
from ultr.testing.methods import small_lists, small_log

FEW = Trees(rounds=5, fewest_documents=10)


def _forest(fitted: ClickBaseline | LabelBaseline) -> BoostedTrees:
    model = fitted.ranker_.model.by_name["relevance"]
    assert isinstance(model, BoostedTrees)
    return model


def test_a_leaf_is_a_newton_step() -> None:
    """One tree of two leaves on labels: - rate sum g / (sum h + shrinkage), with the exact derivatives of a list."""
    lists = small_lists().train
    fitted = LabelBaseline(relevance=Trees(rounds=1, leaves=2, learning_rate=1.0, shrinkage=0.0)).fit(lists)
    forest = _forest(fitted).forest
    goes_left = forest.leaves(lists.features)[:, 0] == forest.left[0]
    gains = (2.0**lists.labels - 1) / 2.0**lists.max_label
    lengths = np.diff(lists.offsets)
    total, share = np.add.reduceat(gains, lists.offsets[:-1]), np.repeat(1 / lengths, lengths)
    gradient = np.repeat(total, lengths) * share - gains
    curvature = np.repeat(total, lengths) * share * (1 - share)
    for leaf, rows in ((forest.left[0], goes_left), (forest.right[0], ~goes_left)):
        # The curvature is estimated with random signs, so it is near, not the same.
        assert forest.values[leaf] == pytest.approx(-gradient[rows].sum() / curvature[rows].sum(), rel=0.2)


def test_missing_values_are_learned_from_and_networks_take_them_for_typical() -> None:
    """A feature that is missing where documents are relevant."""
    lists = small_lists().train
    hidden = np.where(lists.labels >= 3, np.float32("nan"), np.float32(1))
    features = np.concatenate([hidden[:, None], np.ones((len(hidden), 1), dtype=np.float32)], axis=1)
    told = replace(lists, features=features, feature_names=("hidden", "constant"))
    trees = LabelBaseline(relevance=Trees(rounds=20)).fit(told)
    missing, known = trees.score(np.array([[np.nan, 1], [1, 1]], dtype=np.float32))
    assert missing > known
    share = f"{np.isnan(hidden).mean():.1%}"
    with pytest.warns(UltrWarning, match=rf"missing values in 1 of 2 features: hidden \({share}\); networks take the"):
        network = LabelBaseline(relevance=MLP(hidden=(4,), steps=5)).fit(told)
    typical = np.nan_to_num(features, nan=1.0)
    np.testing.assert_array_equal(network.score(features), network.score(typical), "to a network it is the typical one")


def test_a_forest_is_as_large_as_it_is_asked_for() -> None:
    fitted = ClickBaseline(relevance=replace(FEW, leaves=4)).fit(small_log())
    forest = _forest(fitted).forest
    assert len(forest) == 5
    assert all(3 <= len(tree.features) <= 7 for tree in (forest.some(slice(n, n + 1)) for n in range(5)))


def test_early_stopping_keeps_the_best_rounds(small_log: ClickLog) -> None:
    fitted = ClickBaseline(relevance=Trees(rounds=300, learning_rate=0.5), patience=2, evaluate_every=5).fit(
        small_log, validation=small_lists().validation
    )
    values = [record.value for record in fitted.history_]
    best = int(np.argmax(values))
    assert len(values) == best + 3
    assert len(_forest(fitted).forest) == 5 * (best + 1)


def test_an_exported_forest_scores_the_same_with_values_missing(tmp_path: Path) -> None:
    fitted = ClickBaseline(relevance=FEW).fit(small_log())
    features = small_lists().test.features.copy()
    features[::3, ::5] = np.nan
    for pointwise in (False, True):
        export(fitted, tmp_path / f"{pointwise}.onnx", pointwise=pointwise)
        found = Scorer.load(tmp_path / f"{pointwise}.onnx").score(features)
        np.testing.assert_allclose(found, fitted.score(features), rtol=1e-5, atol=1e-6)


def test_a_damaged_forest_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = ClickBaseline(relevance=FEW).fit(small_log())
    monkeypatch.setattr(BoostedTrees, "get_extra_state", lambda _: torch.zeros(3, 8, dtype=torch.float64))
    fitted.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="do not fit"):
        load(tmp_path / "model")


def test_without_lightgbm_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'ultr\[trees\]'"):
        ClickBaseline(relevance=FEW).fit(small_log())


def test_the_joint_schedule_has_no_base_network_to_train() -> None:
    with pytest.raises(OptionError, match="schedule 'joint' trains a base network, which trees do without"):
        Vectorization(relevance=FEW, schedule="joint").check()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "rounds must be an integer of at least 1"),
        ({"leaves": 1}, "leaves must be an integer of at least 2"),
        ({"learning_rate": 0.0}, "learning_rate must be a number above 0"),
        ({"fewest_documents": 0}, "fewest_documents must be an integer of at least 1"),
        ({"shrinkage": -1.0}, "shrinkage must be a number of at least 0"),
        ({"bins": 1}, "bins must be an integer of at least 2"),
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        ClickBaseline(relevance=Trees(**options)).check()  # type: ignore[arg-type]

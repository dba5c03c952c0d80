"""Training that begins with the weights of an earlier ranker."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ultr.clicks.registry import click_model
from ultr.data.bias_factor import BiasFactor
from ultr.data.click_log import ClickLog
from ultr.data.provenance import Lineage
from ultr.datasets.letor_like import letor_like
from ultr.errors import ModelFileError, UltrWarning, WarmStartError
from ultr.evaluation import unseen_part
from ultr.methods import DLA, METHODS, Auto, ClickBaseline, LabelBaseline, Vectorization, load
from ultr.methods.model_file import weights_digest
from ultr.methods.ranker import Ranker
from ultr.methods.safe import make_safe
from ultr.relevance import MLP, Trees
from ultr.simulation.log import simulate

NETWORK = MLP(hidden=(8,), steps=20)


@lru_cache(maxsize=4)
def _log(seed: int = 0) -> ClickLog:
    lists = letor_like(train_queries=60, validation_queries=1, test_queries=1).train
    return simulate(
        lists, click_model("trust"), impressions=20_000, svm_share=0.1, rankings=2, noise=0.5, pairs=True, seed=seed
    )


def _with_features(log: ClickLog, column: int, change: Any) -> ClickLog:
    features = np.array(log.features)
    features[:, column] = change(features[:, column])
    return replace(log, features=features)


def _same(one: Ranker, other: Ranker) -> bool:
    ours, theirs = one.model.state_dict(), other.model.state_dict()
    return all(torch.equal(ours[name], theirs[name]) for name in ours)


NETWORKS = [name for name, kind in METHODS.items() if kind is not LabelBaseline and issubclass(MLP, kind.takes)]


@pytest.mark.parametrize("name", NETWORKS)
def test_no_step_at_all_leaves_the_scores_of_the_earlier_ranker_and_few_stay_near_them(name: str) -> None:
    earlier = METHODS[name](relevance=replace(NETWORK, steps=200)).fit(_log()).ranker_
    # Weights that decay would move without any gradient.
    short = replace(NETWORK, steps=1, learning_rate=1e-9, recipe="collapsed")
    options: dict[str, Any] = {"em_rate": 1e-6} if "em_rate" in METHODS[name]().get_params() else {}
    near = METHODS[name](relevance=short, **options).fit(_log(), init_model=earlier).ranker_
    cold = METHODS[name](relevance=short, **options).fit(_log()).ranker_
    for part in ("relevance", "judge", "raw_relevance"):
        if part in earlier.model.by_name:
            want, found, other = (each.outputs(_log().features, [part]) for each in (earlier, near, cold))
            np.testing.assert_allclose(found, want, atol=1e-4)
            assert np.abs(other - want).max() > 0.01
    assert near.provenance is not None
    assert near.provenance.init_model == weights_digest(earlier.model)


def test_it_repeats_and_is_another_than_without() -> None:
    estimator = ClickBaseline(relevance=NETWORK)
    earlier = estimator.fit(_log(1)).ranker_
    warm, again = (estimator.fit(_log(), init_model=earlier).ranker_ for _ in range(2))
    assert _same(warm, again)
    assert not _same(warm, estimator.fit(_log()).ranker_)


def test_a_killed_run_goes_on_and_a_checkpoint_of_another_start_is_refused(tmp_path: Path) -> None:
    estimator = ClickBaseline(relevance=NETWORK, evaluate_every=5)
    first, second = (estimator.fit(_log(seed)).ranker_ for seed in (1, 2))
    whole = estimator.fit(_log(), init_model=first).ranker_
    file = tmp_path / "checkpoint"

    class KilledError(Exception):
        pass

    class Killer:
        def watch(self, *_: Any, **__: Any) -> Any:
            from contextlib import nullcontext

            return nullcontext()

        def step(self, step: int) -> None:
            if step == 8:
                raise KilledError

        def record(self, *_: Any, **__: Any) -> None:
            return

    with pytest.raises(KilledError):
        estimator.fit(_log(), init_model=first, checkpoint=file, progress=Killer())
    for other in (None, second):
        with pytest.raises(ModelFileError, match="other options or data"):
            estimator.fit(_log(), init_model=other, checkpoint=file)
    assert _same(estimator.fit(_log(), init_model=first, checkpoint=file).ranker_, whole)


def test_the_earlier_preprocessing_is_kept() -> None:
    earlier = ClickBaseline(relevance=NETWORK).fit(_log()).ranker_
    wider = _with_features(_log(), 0, lambda values: np.where(values == values.max(), values + 0.1, values))
    warm = ClickBaseline(relevance=NETWORK).fit(wider, init_model=earlier).ranker_
    for part in ("minimum", "maximum", "typical", "missing"):
        np.testing.assert_array_equal(getattr(warm.scaling, part), getattr(earlier.scaling, part))
    assert ClickBaseline(relevance=NETWORK).fit(wider).ranker_.scaling.maximum[0] != earlier.scaling.maximum[0]


def test_what_does_not_fit_is_one_sentence() -> None:
    log = _log()
    earlier = ClickBaseline(relevance=NETWORK).fit(log).ranker_
    flat = ClickBaseline(relevance=NETWORK).fit(_with_features(log, 0, np.zeros_like)).ranker_
    names = replace(log, feature_names=("other", *log.feature_names[1:]))
    categories = _with_features(log, 0, lambda values: np.zeros_like(values))
    categories = replace(categories, categories={log.feature_names[0]: ("a", "b")})
    gaps = _with_features(log, 0, lambda values: np.where(np.arange(len(values)) % 3, values, np.nan))
    lists = np.flatnonzero(log.lengths > 0)
    short = log.select(lists[log.lengths[lists] >= 1])
    nine = ClickLog.of(
        features=short.features,
        documents=short.documents[short.positions < 10],
        offsets=np.arange(short.lists + 1) * 9,
        clicks=short.clicks[short.positions < 10],
        impressions=short.impressions,
        queries=short.queries,
        feature_names=short.feature_names,
    )
    cases: list[tuple[Any, ClickLog, Ranker, str]] = [
        (Vectorization(relevance=NETWORK), log, earlier, "ranker by click"),
        (ClickBaseline(relevance=Trees(rounds=2)), log, earlier, r"click \(mlp\), and this is click \(trees\)"),
        (ClickBaseline(relevance=MLP(hidden=(9,), steps=1)), log, earlier, "other sizes"),
        (ClickBaseline(relevance=NETWORK), names, earlier, "features"),
        (ClickBaseline(relevance=NETWORK), categories, earlier, "categorical"),
        (Vectorization(relevance=NETWORK, dimension=2), nine, _vector(2), "bias factors"),
        (ClickBaseline(relevance=NETWORK), log, flat, "the same everywhere"),
        (ClickBaseline(relevance=NETWORK), _with_features(log, 0, lambda x: 100 * x), earlier, "far outside"),
        (ClickBaseline(relevance=NETWORK), gaps, earlier, "missing now"),
        (Vectorization(relevance=NETWORK, dimension="auto"), log, _vector(2), "dimension"),
        (Vectorization(relevance=NETWORK, dimension=3), log, _vector(2), "other sizes"),
        (ClickBaseline(relevance=NETWORK, seeds=2), log, earlier, "2 seeds"),
    ]
    for estimator, data, ranker, said in cases:
        with pytest.raises(WarmStartError, match=said):
            estimator.fit(data, init_model=ranker)


@pytest.mark.parametrize("method", [ClickBaseline, DLA])
def test_a_new_level_of_a_factor_that_the_method_does_not_learn_is_no_reason_to_begin_anew(method: Any) -> None:
    log = _log()
    by_page = np.repeat(np.arange(log.lists, dtype=np.int32) % 2, log.lengths)
    devices = [
        replace(log, factors=(log.position, BiasFactor("device", by_page, levels)))
        for levels in (("desktop", "phone"), ("desktop", "phone", "watch"))
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UltrWarning)
        earlier = method(relevance=NETWORK).fit(devices[0]).ranker_
        warm = method(relevance=NETWORK).fit(devices[1], init_model=earlier).ranker_
    assert warm.provenance is not None
    assert warm.provenance.init_model == weights_digest(earlier.model)
    assert warm.factors[1].levels == ("desktop", "phone", "watch")


@lru_cache(maxsize=1)
def _vector(dimension: int) -> Ranker:
    return Vectorization(relevance=NETWORK, dimension=dimension).fit(_log()).ranker_


def test_trees_are_trained_anew_and_it_is_said() -> None:
    estimator = ClickBaseline(relevance=Trees(rounds=3))
    earlier = estimator.fit(_log(1)).ranker_
    with pytest.warns(UltrWarning, match="trees are trained anew"):
        warm = estimator.fit(_log(), init_model=earlier).ranker_
    assert _same(warm, estimator.fit(_log()).ranker_)
    assert warm.provenance is not None
    assert warm.provenance.init_model is None


def test_the_halves_of_auto_begin_anew_since_they_are_other_queries() -> None:
    earlier = Auto(relevance=NETWORK).fit(_log(1)).ranker_
    warm, cold = (Auto(relevance=NETWORK).fit(_log(), init_model=each).ranker_ for each in (earlier, None))
    ours, theirs = warm.model.state_dict(), cold.model.state_dict()
    for name in ours:
        half = name.startswith(("models.first_", "models.second_", "objective.fits.2.", "objective.fits.3."))
        if half:
            assert torch.equal(ours[name], theirs[name]), name
    assert not torch.equal(*(each["models.raw_relevance.layers.linear.0.weight"] for each in (ours, theirs)))
    assert not torch.equal(*(each["models.relevance.layers.linear.0.weight"] for each in (ours, theirs)))


def test_a_safe_ranker_can_be_begun_with() -> None:
    kept, held_out = _log().split(0.3)
    estimator = ClickBaseline(relevance=NETWORK)
    plain = estimator.fit(kept).ranker_
    safe = make_safe(plain, kept, held_out, largest=2)
    assert _same(estimator.fit(kept, init_model=plain).ranker_, estimator.fit(kept, init_model=safe).ranker_)


def test_what_the_earlier_ranker_has_seen_counts_as_seen(tmp_path: Path) -> None:
    log = _log()
    first, second = log.split(0.5, seed=1)
    estimator = ClickBaseline(relevance=NETWORK)
    earlier = estimator.fit(first).ranker_
    warm = estimator.fit(second, init_model=earlier).ranker_
    warm.save(tmp_path / "model")
    read = load(tmp_path / "model")
    assert read.provenance == warm.provenance
    assert warm.provenance is not None
    assert warm.provenance.data == (Lineage.of(second), Lineage.of(first))
    assert unseen_part({"warm": estimator.fit(second).ranker_}, log).warnings == ()
    assert "too good" in unseen_part({"warm": read}, log).warnings[0]
    unknown = estimator.fit(second, init_model=replace(earlier, provenance=None)).ranker_
    assert unknown.provenance is None

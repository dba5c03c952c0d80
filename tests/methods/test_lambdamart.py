"""LightGBM and XGBoost as methods: what both have in common, and what each makes of positions."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
import xgboost

from ultr.clicks.position_based import PositionBased
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.sessions import draw_sessions
from ultr.datasets.letor_like import letor_like
from ultr.datasets.splits import Splits
from ultr.errors import DataError, MissingExtraError, OptionError, UltrWarning
from ultr.evaluation import evaluate
from ultr.evaluation.judged import of_scores
from ultr.exporting.export import export
from ultr.exporting.forest_file import export_forest
from ultr.methods import LightGBMRanker, XGBoostRanker, load
from ultr.methods.lambdamart import LambdaMART
from ultr.relevance import MLP, Trees
from ultr.relevance.trees import BoostedTrees
from ultr.simulation.log import simulate
from ultr.train.checkpoint import Record

LIBRARIES: list[type[LambdaMART]] = [LightGBMRanker, XGBoostRanker]


@pytest.fixture(params=LIBRARIES, ids=["lightgbm", "xgboost"])
def method(request: pytest.FixtureRequest) -> type[LambdaMART]:
    return request.param  # type: ignore[no-any-return]


def _make(method: type[LambdaMART], *, rounds: int = 5, learning_rate: float = 0.1, **options: Any) -> LambdaMART:
    made = method(**{"sessions": 400} | options)
    made.set_params(relevance__rounds=rounds, relevance__learning_rate=learning_rate)
    return made


def _trees(estimator: LambdaMART) -> int:
    model = estimator.ranker_.model.by_name["relevance"]
    assert isinstance(model, BoostedTrees)
    return len(model.forest)


@pytest.fixture(scope="module")
def world() -> Splits:
    return letor_like(train_queries=300, validation_queries=100, test_queries=200)


@pytest.fixture(scope="module")
def biased(world: Splits) -> ClickLog:
    """Users look at position p with chance 1/p, and lists are in the order of a feature that means nothing."""
    examination = tuple(1 / position for position in range(1, 11))
    shown = world.train.features[:, world.train.feature_names.index("noise_1")].astype(np.float64)
    model = PositionBased(examination=examination)
    return simulate(world.train, model, scores=shown, impressions=300_000, rankings=4, noise=0.3)


@pytest.fixture(scope="module")
def fitted(biased: ClickLog) -> dict[tuple[str, bool], LambdaMART]:
    return {
        (method.name, debias): _make(method, rounds=60, sessions=6_000, debias=debias).fit(biased)
        for method in LIBRARIES
        for debias in (False, True)
    }


@pytest.fixture(scope="module")
def values(world: Splits, fitted: dict[tuple[str, bool], LambdaMART]) -> dict[tuple[str, bool], float]:
    return {key: evaluate(ranker, world.test).mean("nDCG@10") for key, ranker in fitted.items()}


def test_each_ranks_better_than_chance(world: Splits, values: dict[tuple[str, bool], float]) -> None:
    chance = of_scores(np.random.default_rng(0).random(world.test.documents), world.test).mean("nDCG@10")
    assert min(values.values()) > chance + 0.05


def test_debiasing_helps_on_strongly_biased_clicks(values: dict[tuple[str, bool], float]) -> None:
    assert values["xgboost", True] > values["xgboost", False]
    assert values["lightgbm", True] > values["lightgbm", False] + 0.03


def _options(**options: Any) -> dict[str, Any]:
    """The one rule: 20 trees of 31 leaves and 255 bins at a rate of 0.1, everything else as the library has it."""
    return {"num_leaves": 31, "max_bin": 255, "learning_rate": 0.1, "num_threads": 1, "verbosity": -1, **options}


@pytest.mark.parametrize("debias", [False, True])
def test_the_trees_are_those_that_lightgbm_grows_by_itself(*, debias: bool, biased: ClickLog, world: Splits) -> None:
    drawn = draw_sessions(biased, sessions=2_000, seed=4)
    data = lightgbm.Dataset(
        drawn.features[drawn.documents],
        label=drawn.clicks,
        group=drawn.lengths,
        position=drawn.positions - 1 if debias else None,
    )
    options = _options(objective="lambdarank", lambdarank_truncation_level=10, deterministic=True, force_col_wise=True)
    booster = lightgbm.train(options, data, 20)
    ours = _make(LightGBMRanker, rounds=20, sessions=2_000, debias=debias, seed=4).fit(biased)
    np.testing.assert_array_equal(
        ours.score(world.test.features), np.asarray(booster.predict(world.test.features), dtype=np.float32)
    )


@pytest.mark.parametrize("debias", [False, True])
def test_the_trees_are_those_that_xgboost_grows_by_itself(*, debias: bool, biased: ClickLog, world: Splits) -> None:
    drawn = draw_sessions(biased, sessions=2_000, seed=4)
    data = xgboost.QuantileDMatrix(
        drawn.features[drawn.documents], label=drawn.clicks, group=drawn.lengths, max_bin=255
    )
    options = {"objective": "rank:ndcg", "lambdarank_unbiased": debias, "lambdarank_pair_method": "topk"}
    options |= {"lambdarank_num_pair_per_sample": 10, "grow_policy": "lossguide", "max_leaves": 31, "max_depth": 0}
    options |= {"tree_method": "hist", "max_bin": 255, "learning_rate": 0.1, "nthread": 1}
    booster = xgboost.train(options, data, 20)
    ours = _make(XGBoostRanker, rounds=20, sessions=2_000, debias=debias, seed=4).fit(biased)
    np.testing.assert_allclose(
        ours.score(world.test.features),
        booster.inplace_predict(world.test.features, predict_type="margin"),
        rtol=1e-5,
        atol=1e-6,
    )
    if debias:
        told = json.loads(booster.save_raw("json"))["learner"]["objective"]
        assert isinstance(ours, XGBoostRanker)
        for found, key in zip(ours.propensities(), ("ti+", "tj-"), strict=True):
            np.testing.assert_array_equal(found, np.array(told[key], dtype=np.float32))


def test_xgboost_tells_what_it_learned_about_positions(
    fitted: dict[tuple[str, bool], LambdaMART], biased: ClickLog, tmp_path: Path
) -> None:
    ranker = fitted["xgboost", True]
    assert isinstance(ranker, XGBoostRanker)
    clicked, skipped = ranker.propensities()
    assert clicked[0] == skipped[0] == 1
    assert clicked[0] > clicked[1] > clicked[3] > clicked[7] > 0
    np.testing.assert_allclose(
        ranker.click_ratios(biased, "position"), np.broadcast_to(clicked, (len(biased.documents), 10)), rtol=1e-5
    )
    ranker.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").click_shares(biased), ranker.click_shares(biased))
    plain = fitted["xgboost", False]
    assert isinstance(plain, XGBoostRanker)
    with pytest.raises(OptionError, match="debias=True"):
        plain.propensities()


def test_clicks_are_predicted_from_relevance_alone_where_nothing_is_told(
    fitted: dict[tuple[str, bool], LambdaMART], biased: ClickLog
) -> None:
    for key in (("xgboost", False), ("lightgbm", False), ("lightgbm", True)):
        assert (fitted[key].click_ratios(biased, "position") == 1).all()


def test_labels_choose_the_number_of_trees_with_the_best_ndcg(
    method: type[LambdaMART], small: Splits, small_log: ClickLog
) -> None:
    options: dict[str, Any] = {"learning_rate": 0.5, "seed": 2}
    kept = _make(method, rounds=8, **options).fit(small_log, validation=small.validation)
    prefixes = [_make(method, rounds=rounds, **options).fit(small_log) for rounds in range(1, 9)]
    worth = [evaluate(ranker, small.validation).mean("nDCG@10") for ranker in prefixes]
    assert _trees(kept) == 1 + int(np.argmax(worth))
    best = max(record.value for record in kept.history_)
    assert best == pytest.approx(max(worth), abs=1e-6)
    assert best == {record.step: record.value for record in kept.history_}[_trees(kept)]


def test_clicks_choose_the_number_of_trees_with_the_best_ndcg(
    method: type[LambdaMART], small: Splits, small_log: ClickLog
) -> None:
    log, held_out = small_log.split(0.3)
    kept = _make(method, rounds=8, learning_rate=0.5).fit(log, validation=held_out)
    prefixes = [_make(method, rounds=rounds, learning_rate=0.5).fit(log) for rounds in range(1, 9)]
    drawn = draw_sessions(held_out, sessions=80, seed=0)
    sessions = JudgedLists.of(features=drawn.features[drawn.documents], labels=drawn.clicks, offsets=drawn.offsets)
    worth = [of_scores(ranker.score(sessions.features), sessions).mean("nDCG@10") for ranker in (kept, *prefixes)]
    assert worth[0] == pytest.approx(max(worth[1:]), abs=1e-6)


def test_training_ends_when_it_is_out_of_patience(method: type[LambdaMART], small: Splits, small_log: ClickLog) -> None:
    for patience in (None, 3):
        ranker = _make(method, rounds=200, learning_rate=0.5, patience=patience)
        ranker.fit(small_log, validation=small.validation)
        assert ranker.history_[-1].step == _trees(ranker) + (patience or 30)


def test_without_validation_all_trees_are_kept(method: type[LambdaMART], small_log: ClickLog) -> None:
    ranker = _make(method, rounds=12).fit(small_log)
    assert _trees(ranker) == 12
    assert ranker.history_ == [Record("trees", 12, None, None)]


def test_an_observer_sees_every_tree(method: type[LambdaMART], small: Splits, small_log: ClickLog) -> None:
    class Watcher:
        def __init__(self) -> None:
            self.told: list[Any] = []

        def watch(self, stage: str, steps: int, *, done: int) -> Any:
            self.told.append((stage, steps, done))
            return nullcontext()

        def step(self, done: int) -> None:
            self.told.append(done)

        def record(self, record: Record, *, best: float | None) -> None:
            self.told.append(record.step)

    watcher = Watcher()
    _make(method, rounds=11).fit(small_log, validation=small.validation, progress=watcher)
    assert watcher.told == [("trees", 11, 0), *range(1, 11), 10, 11]


def test_missing_values_are_learned_from(method: type[LambdaMART], small_log: ClickLog) -> None:
    holes = small_log.features.copy()
    holes[np.random.default_rng(0).random(holes.shape) < 0.3] = np.nan
    ranker = _make(method, sessions=3_000).fit(replace(small_log, features=holes))
    gone = holes.copy()
    gone[:, ragged.ranks(np.array([0, 64]))] = np.nan
    assert np.isfinite(ranker.score(gone)).all()
    assert len(np.unique(ranker.score(holes))) > 10


def test_it_is_exported_like_any_forest(
    method: type[LambdaMART], small: Splits, small_log: ClickLog, tmp_path: Path
) -> None:
    ranker = _make(method, debias=True).fit(small_log)
    assert export(ranker, tmp_path / "model.onnx", lists=small.test).parity.kendall_tau == pytest.approx(1, abs=1e-6)
    for to in ("lightgbm", "xgboost", "solr"):
        assert export_forest(ranker.ranker_, tmp_path / f"{to}.json", to=to).trees == 5
    written = xgboost.Booster(model_file=str(tmp_path / "xgboost.json"))
    names = list(small.test.feature_names)
    found = written.predict(xgboost.DMatrix(small.test.features, feature_names=names), output_margin=True)
    np.testing.assert_allclose(found, ranker.score(small.test.features), rtol=1e-4, atol=1e-5)


def test_a_saved_ranker_is_loaded_without_the_library(
    method: type[LambdaMART], small: Splits, small_log: ClickLog, tmp_path: Path
) -> None:
    ranker = _make(method).fit(small_log)
    ranker.save(tmp_path / "model")
    np.save(tmp_path / "features.npy", small.test.features)
    script = (
        "import sys, numpy, ultr; sys.modules['lightgbm'] = sys.modules['xgboost'] = None; "
        f"print(ultr.load({str(tmp_path / 'model')!r}).score(numpy.load({str(tmp_path / 'features.npy')!r})).sum())"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert float(said) == ranker.score(small.test.features).sum()


def test_other_bias_factors_are_named(method: type[LambdaMART], small_log: ClickLog) -> None:
    log = replace(small_log, factors=(*small_log.factors, replace(small_log.factors[0], name="device")))
    with pytest.warns(UltrWarning, match="leaves out the bias factor 'device': it learns the position only"):
        ranker = _make(method, debias=True).fit(log)
    assert ranker.ranker_.learned_factors == ("position",)
    assert _make(method).fit(log).ranker_.learned_factors == ()


def test_xgboost_says_that_it_takes_places_for_positions() -> None:
    log = ClickLog.of(
        features=[[0.1], [0.5], [0.2], [0.9]],
        documents=[0, 1, 2, 3],
        offsets=[0, 2, 4],
        clicks=[30, 10, 5, 3],
        positions=[1, 3, 1, 2],
        impressions=[40, 10],
    )
    with pytest.warns(UltrWarning, match="takes the place in a list for the position"):
        _make(XGBoostRanker, debias=True).fit(log)
    _make(LightGBMRanker, debias=True).fit(log)
    _make(XGBoostRanker).fit(log)


def test_what_does_not_fit_is_refused(method: type[LambdaMART], small: Splits, small_log: ClickLog) -> None:
    for options, message in (
        ({"sessions": 0}, "sessions must be an integer of at least 1"),
        ({"debias": "yes"}, "debias must be True or False"),
        ({"relevance": MLP()}, f"the relevance model of {method.__name__} is always Trees"),
        ({"relevance": Trees(leaves=1)}, "leaves must be an integer of at least 2"),
        ({"evaluate_every": 5}, f"{method.__name__} has no use for the option evaluate_every"),
    ):
        with pytest.raises(OptionError, match=message):
            method(**options).fit(small_log)
    silent = replace(small_log, clicks=np.zeros_like(small_log.clicks))
    for nothing in (silent, replace(small.validation, labels=np.zeros_like(small.validation.labels))):
        with pytest.raises(DataError, match=r"the validation (log|data) ha(s|ve) no "):
            _make(method).fit(small_log, validation=nothing)
    rare = ClickLog.of(features=[[0.0], [1.0]], documents=[0, 1], offsets=[0, 2], clicks=[1, 0], impressions=[10**9])
    with pytest.raises(DataError, match="the training data have no drawn session with a click"):
        _make(method).fit(rare)


def test_xgboost_cannot_count_the_documents_of_a_leaf(small_log: ClickLog) -> None:
    with pytest.raises(OptionError, match="XGBoostRanker has no use for the option fewest_documents"):
        XGBoostRanker(relevance=Trees(fewest_documents=5)).fit(small_log)


def test_a_missing_library_is_an_extra(
    method: type[LambdaMART], small_log: ClickLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, method.name, None)
    extra = {"lightgbm": "trees", "xgboost": "xgboost"}[method.name]
    with pytest.raises(MissingExtraError, match=rf"needs {method.name}; .*pip install '\.\[{extra}\]'"):
        _make(method).fit(small_log)

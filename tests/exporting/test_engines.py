"""Model files of engines, against the real libraries and against interpreters of their rules."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from pathlib import Path

import lightgbm
import numpy as np
import pytest
from tests.cli.console import ultr

from ultr.arrays import Floats
from ultr.errors import ExportError, OptionError
from ultr.exporting.engines import targets
from ultr.exporting.engines.targets import TARGETS
from ultr.exporting.forest_file import export_forest
from ultr.methods import ClickBaseline
from ultr.relevance import MLP, Trees
from ultr.relevance.forest import forest_of_lightgbm
from ultr.scoring.forest import LEAF, Forest
from ultr.testing.methods import small_log

NAMES = ("title", "body", "age", "price")


@pytest.fixture(scope="module", params=[9, 60], ids=["small", "deep"])
def forest(request: pytest.FixtureRequest) -> Forest:
    random = np.random.default_rng(0)
    features = random.normal(size=(500, len(NAMES))).astype(np.float32).round(1)
    features[random.random(features.shape) < 0.2] = np.nan
    target = np.nan_to_num(features[:, 0]) * np.nan_to_num(features[:, 1]) + np.isnan(features[:, 2])
    parameters = {"verbosity": -1, "num_leaves": request.param, "min_data_in_leaf": 2, "learning_rate": 0.5}
    model = lightgbm.train(parameters, lightgbm.Dataset(features, target), 12)
    grown = forest_of_lightgbm(model.dump_model()["tree_info"], 1)
    assert (grown.depth > 8) == (request.param == 60)
    return grown


@pytest.fixture(scope="module")
def rows(forest: Forest) -> Floats:
    """Values on thresholds and right beside them, zeros, large ones, missing ones."""
    largest = np.finfo(np.float32).max
    thresholds = forest.thresholds[(forest.features != LEAF) & (forest.thresholds < largest)]
    near = np.concatenate([thresholds, *(np.nextafter(thresholds, np.float32(end)) for end in (-np.inf, np.inf))])
    special = np.array([0.0, -0.0, 1e30, -1e30, np.nan, np.nan], dtype=np.float32)
    return np.random.default_rng(1).choice(np.concatenate([near, special]), size=(500, len(NAMES)))


@pytest.fixture(scope="module")
def ranker() -> ClickBaseline:
    return ClickBaseline(relevance=Trees(rounds=5, fewest_documents=10)).fit(small_log())


@pytest.mark.parametrize("to", TARGETS)
def test_an_engine_scores_as_the_forest_does(to: str, forest: Forest, rows: Floats) -> None:
    target = TARGETS[to]
    chosen = rows if target.knows_missing else rows[~np.isnan(rows).any(axis=1)]
    chosen = chosen[~((np.abs(chosen) < target.finest) & (chosen != 0)).any(axis=1)]
    assert len(chosen) > 50
    found = target.score(target.write(forest, NAMES, "mine"), NAMES, chosen)
    np.testing.assert_allclose(found, forest.predict(chosen, 1)[:, 0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("to", ["xgboost", "elasticsearch-ltr", "elastic", "solr", "vespa"])
def test_files_have_no_numbers_that_json_lacks(to: str, forest: Forest) -> None:
    # A split of missing values from all others.
    apart = replace(forest, thresholds=np.full_like(forest.thresholds, np.finfo(np.float32).max))

    def refuse(number: str) -> None:
        pytest.fail(f"{number} is not JSON")

    body = json.loads(TARGETS[to].write(apart, NAMES, "mine"), parse_constant=refuse)
    if to == "elasticsearch-ltr":
        json.loads(body["model"]["model"]["definition"], parse_constant=refuse)
    if to == "elastic":
        json.loads(gzip.decompress(base64.b64decode(body["compressed_definition"])), parse_constant=refuse)


@pytest.mark.parametrize("to", TARGETS)
def test_a_deep_tree_is_followed_to_its_end(to: str) -> None:
    """Deeper than the levels that engines lay out on their own; each value has a leaf."""
    steps = np.arange(40, dtype=np.float32)[:, None]
    parameters = {"verbosity": -1, "num_leaves": 40, "min_data_in_leaf": 1, "min_data_in_bin": 1, "learning_rate": 1.0}
    data = lightgbm.Dataset(np.repeat(steps, 3, axis=0), np.repeat(2.0 ** (steps[:, 0] / 2 - 10), 3))
    forest = forest_of_lightgbm(lightgbm.train(parameters, data, 2).dump_model()["tree_info"], 1)
    assert forest.depth > 12
    target = TARGETS[to]
    found = target.score(target.write(forest, ["age"], "mine"), ["age"], steps)
    np.testing.assert_allclose(found, forest.predict(steps, 1)[:, 0], atol=1e-2)
    assert np.ptp(found) > 500


@pytest.mark.parametrize("to", TARGETS)
def test_a_ranker_is_written_and_checked(to: str, ranker: ClickBaseline, tmp_path: Path) -> None:
    written = export_forest(ranker, tmp_path / "model", to=to)
    assert (written.trees, written.size) == (5, (tmp_path / "model").stat().st_size)
    assert written.documents >= 900
    assert (written.shift > 0) == (to in {"elasticsearch-ltr", "opensearch-ltr", "elastic", "solr", "ranklib"})
    if written.shift:
        content = (tmp_path / "model").read_text()
        features = np.asarray(small_log().features[:200])
        scores = TARGETS[to].score(content, ranker.feature_names_, features)
        assert scores.min() >= 0
        np.testing.assert_allclose(scores - written.shift, ranker.score(features), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("to", TARGETS)
def test_a_file_that_disagrees_is_not_written(
    to: str, ranker: ClickBaseline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = TARGETS[to]
    # The other side for whatever is on a threshold.
    wrong = replace(target, write=lambda forest, *names: target.write(_with_higher_thresholds(forest), *names))
    monkeypatch.setitem(targets.TARGETS, to, wrong)
    with pytest.raises(ExportError, match=f"the file for {to} scores documents otherwise"):
        export_forest(ranker, tmp_path / "model", to=to)
    assert not list(tmp_path.iterdir())


def _with_higher_thresholds(forest: Forest) -> Forest:
    higher: Floats = (forest.thresholds * np.where(forest.thresholds > 0, 1.001, 0.999)).astype(np.float32)
    return replace(forest, thresholds=higher)


def test_features_have_the_names_of_the_engine(ranker: ClickBaseline, tmp_path: Path) -> None:
    first, second = ranker.feature_names_[:2]
    export_forest(ranker, tmp_path / "model", to="solr", feature_map={first: "titleScore"})
    names = [feature["name"] for feature in json.loads((tmp_path / "model").read_text())["features"]]
    assert names[:2] == ["titleScore", second]
    with pytest.raises(OptionError, match="feature of the model must be one of"):
        export_forest(ranker, tmp_path / "other", to="solr", feature_map={"nothing": "x"})
    with pytest.raises(OptionError, match=f"two features the name {second!r}"):
        export_forest(ranker, tmp_path / "other", to="solr", feature_map={first: second})


def test_a_name_that_lightgbm_refuses_is_refused(ranker: ClickBaseline, tmp_path: Path) -> None:
    first = ranker.feature_names_[0]
    with pytest.raises(OptionError, match="LightGBM refuses the feature name 'title score'"):
        export_forest(ranker, tmp_path / "model", to="lightgbm", feature_map={first: "title score"})
    assert not list(tmp_path.iterdir())


def test_xgboost_takes_names_in_any_language_and_no_brackets(ranker: ClickBaseline, tmp_path: Path) -> None:
    first = ranker.feature_names_[0]
    export_forest(ranker, tmp_path / "model", to="xgboost", feature_map={first: "prix réduit"})
    assert "prix réduit" in (tmp_path / "model").read_text(encoding="utf-8")
    with pytest.raises(OptionError, match=r"XGBoost refuses the feature name 'emb\[0\]'"):
        export_forest(ranker, tmp_path / "other", to="xgboost", feature_map={first: "emb[0]"})
    assert not (tmp_path / "other").exists()


def test_a_network_is_refused(tmp_path: Path) -> None:
    network = ClickBaseline(relevance=MLP(hidden=(4,), steps=2)).fit(small_log())
    with pytest.raises(OptionError, match="solr takes trees, and the model is a network"):
        export_forest(network, tmp_path / "model", to="solr")


def test_the_command_writes_beside_the_model(ranker: ClickBaseline, tmp_path: Path) -> None:
    ranker.save(tmp_path / "model")
    (tmp_path / "map.json").write_text(json.dumps({ranker.feature_names_[0]: "titleScore"}))
    text = ultr("export", tmp_path / "model", "--to", "solr", "--feature-map", tmp_path / "map.json").stdout
    assert "5 trees for solr" in text
    assert "so that none is below 0" in text
    assert "titleScore" in (tmp_path / "model.solr.json").read_text()
    assert "knows no missing values" in ultr("export", tmp_path / "model", "--to", "ranklib").stdout
    for wrong, message in (
        (["--to", "solr", "--pointwise"], "are for onnx"),
        (["--to", "onnx", "--feature-map", tmp_path / "map.json"], "--feature-map is for engines"),
        (["--to", "sole"], "did you mean 'solr'"),
    ):
        assert message in ultr("export", tmp_path / "model", *wrong, expect=2).stderr
    (tmp_path / "map.json").write_text("[]")
    wrong = ["--to", "vespa", "--feature-map", tmp_path / "map.json"]
    assert "must be a JSON object of names" in ultr("export", tmp_path / "model", *wrong, expect=2).stderr

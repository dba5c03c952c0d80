"""Categories and missing values through the commands, from a log to a file for an engine."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.console import ultr

from ultr.data.click_log import ClickLog
from ultr.methods import load

VALUES = ("nike", "puma", "other")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clicks on brands; a third of the prices are missing."""
    random = np.random.default_rng(0)
    brand, price = random.integers(3, size=1200), random.normal(size=1200)
    price[random.random(1200) < 0.3] = np.nan
    made = ClickLog.of(
        features=np.column_stack([brand, price]),
        documents=np.arange(1200),
        offsets=np.arange(201) * 6,
        clicks=random.random(1200) < np.array([0.1, 0.7, 0.3])[brand],
        feature_names=["brand", "price"],
    )
    path = tmp_path_factory.mktemp("features") / "log"
    replace(made, categories={"brand": VALUES}).save(path)
    return path


@pytest.fixture(scope="module")
def judged(log: Path) -> Path:
    """Judged candidates with brands as texts, one of them new, and a price that is missing."""
    path = log.with_name("judged.csv")
    path.write_text(
        "query,document,label,price,brand\n"
        "shoes,a,0,1.0,nike\nshoes,b,2,,puma\nshoes,c,1,0.5,other\nshoes,d,1,0.5,asics\nshoes,e,0,0.5,\n"
    )
    return path


@pytest.mark.parametrize("relevance", ["mlp", "trees"])
def test_texts_are_ranked_evaluated_and_exported(log: Path, judged: Path, relevance: str, tmp_path: Path) -> None:
    model = tmp_path / "model"
    size = ["--set", "hidden=8", "--steps", 60] if relevance == "mlp" else ["--steps", 10]
    trained = ultr(
        *("train", "click", "--log", log, "--validate", judged, "--relevance", relevance, *size, "--out", model)
    )
    unseen = f"ultr: {judged} has values of categorical features that were not seen in training: 1 of 'brand'"
    assert unseen in trained.stderr
    ranker = load(model)
    assert ranker.categories == {"brand": VALUES}
    frame = pd.read_csv(judged)
    codes = np.column_stack([[0, 1, 2, 2, np.nan], frame["price"]])
    wanted = dict(zip(frame["document"], ranker.score(codes), strict=True))
    assert wanted["c"] == wanted["d"], "what was never seen is `other`"
    assert max(wanted, key=lambda name: wanted[name]) == "b"
    ultr("export", model, "--form", "flat", "--out", tmp_path / "model.onnx")
    for file in (model, tmp_path / "model.onnx"):
        ranked = ultr("rank", file, judged, "--json")
        found = {row["document"]: row["score"] for row in map(json.loads, ranked.stdout.splitlines())}
        assert found == pytest.approx(wanted, abs=1e-5)
        assert unseen in ranked.stderr
    measured = ultr("evaluate", model, "--data", judged, "--log", log, "--json")
    assert json.loads(measured.stdout)["queries"] == 1


def test_the_screen_says_what_a_file_takes(log: Path, tmp_path: Path) -> None:
    network, trees = tmp_path / "network", tmp_path / "trees"
    ultr("train", "click", "--log", log, "--validate", "none", "--set", "hidden=8", "--steps", 5, "--out", network)
    share = np.isnan(ClickLog.load(log).features[:, 1]).mean()
    said = ultr("export", network).stdout
    assert "counts as its typical value in the training data; the network also knows that it is missing" in said
    assert f"missing in training: price ({share:.1%}); a service refuses other gaps by default" in said
    assert "taken as codes, the places of values on the card of the file: brand (3 values)" in said
    ultr("train", "click", "--log", log, "--validate", "none", "--relevance", "trees", "--steps", 2, "--out", trees)
    file = tmp_path / "trees.lightgbm.txt"
    said = ultr("export", trees, "--to", "lightgbm", "--out", file).stdout
    assert f"1 categorical features are taken as codes; {file}.categories.json has the code of each value" in said


def test_models_of_other_dictionaries_are_not_measured_on_the_same_codes(
    log: Path, judged: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    turned = ClickLog.load(log).with_categories({"brand": VALUES[::-1]})
    turned.save(tmp_path / "turned")
    for path, out in ((log, first), (tmp_path / "turned", second)):
        train = ["train", "click", "--log", path, "--validate", "none", "--set", "hidden=8", "--steps", 5]
        ultr(*train, "--out", out)
    refused = ultr("evaluate", first, second, "--data", judged, expect=2)
    assert f"{first} and {second} know other values of categorical features" in refused.stderr
    fits = [
        json.loads(ultr("evaluate", first, "--log", each, "--json").stdout)["clicks"][str(first)]
        for each in (log, tmp_path / "turned")
    ]
    assert fits[0]["log_likelihood"] == pytest.approx(fits[1]["log_likelihood"])

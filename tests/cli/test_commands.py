from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from tests.cli.console import ultr

from ultr.bias import SwapTable, click_rate_propensities, pivot
from ultr.data.bias_factor import BiasFactor
from ultr.data.click_log import ClickLog
from ultr.files import read_json, write_json
from ultr.methods import METHODS, ClickBaseline, load
from ultr.methods.flat_options import types
from ultr.relevance import MLP, Trees

TINY = ["--set", "hidden=16", "--set", "base_hidden=8", "--set", "evaluate_every=10"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulate") / "log"
    ultr("simulate", "--data", "letor-like=60", "--impressions", 6_000, "--svm-share", 0.1, "--out", folder)
    return folder


@pytest.fixture(scope="module")
def model(log: Path) -> Path:
    folder = log.with_name("model")
    ultr("train", "vectorization", "--log", log, "--dimension", 2, "--steps", 20, *TINY, "--out", folder)
    return folder


@pytest.fixture(scope="module")
def candidates(model: Path) -> Path:
    """Three candidates of query 7 and two of query 9, one of which stands between them."""
    random = np.random.default_rng(0)
    columns = {"query": [7, 7, 9, 7, 9], "document": ["a", "b", "c", "d", "e"], "label": [2, 0, 1, 0, 3]}
    features = {name: random.normal(size=5) for name in load(model).feature_names}
    path = model.with_name("candidates.csv")
    csv.write_csv(pa.table(columns | features), path)
    return path


@pytest.fixture(scope="module")
def numbered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose features only have numbers."""
    folder = tmp_path_factory.mktemp("numbered")
    _two_features(["1", "2"]).save(folder / "log")
    ultr("train", "click", "--log", folder / "log", "--steps", 40, "--set", "hidden=4", "--out", folder / "model")
    return folder / "model"


def _two_features(names: list[str]) -> ClickLog:
    """A log whose users click on the first of two documents, the one with the first feature."""
    return ClickLog.of(
        features=[[1.0, 0.0], [0.0, 1.0]],
        documents=[0, 1] * 20,
        offsets=range(0, 41, 2),
        clicks=[1, 0] * 20,
        queries=range(20),
        feature_names=names,
    )


def test_help_names_every_command() -> None:
    text = ultr("--help").stdout
    for command in (
        "demo",
        "simulate",
        "prepare",
        "doctor",
        "methods",
        "train",
        "tune",
        "evaluate",
        "compare",
        "rank",
        "export",
        "serve",
        "report",
        "reproduce",
    ):
        assert command in text
        assert "Example: ultr" in ultr(command, "--help").stdout.replace("`", "")


def test_a_simulated_log_is_written_and_described(log: Path) -> None:
    written = ClickLog.load(log)
    assert written.impressions.sum() == 6_000
    text = ultr(
        "simulate",
        "--data",
        "letor-like=60",
        "--impressions",
        6_000,
        "--svm-share",
        0.1,
        "--out",
        log,
        "--overwrite",
        "--json",
    ).stdout
    described = json.loads(text)
    assert described["clicks"] == written.clicks.sum()
    assert len(described["click_rate_by_position"]) == 10


def test_a_click_model_takes_its_options(tmp_path: Path) -> None:
    arguments = ["--data", "letor-like=30", "--impressions", 3_000, "--svm-share", 0.2, "--clicks", "position-based"]
    ultr("simulate", *arguments, "--set", "noise=1.0", "--out", tmp_path / "log")
    # With noise 1 every examined document is clicked, so the rates are those of the examination.
    written = ClickLog.load(tmp_path / "log")
    assert written.clicks[written.positions == 1].sum() / 3_000 == pytest.approx(0.68, abs=0.03)


@pytest.mark.usefixtures("_operators_read_once")
def test_trees_are_trained_evaluated_and_exported(log: Path, tmp_path: Path) -> None:
    arguments = ["train", "click", "--relevance", "trees", "--log", log, "--steps", 4, "--set", "leaves=3"]
    ultr(*arguments, "--out", tmp_path / "model")
    ranker = load(tmp_path / "model")
    assert ranker.options["relevance"] == asdict(Trees(rounds=4, leaves=3)) | {"kind": "trees", "categorical": []}
    assert "nDCG@10" in ultr("evaluate", tmp_path / "model", "--data", "letor-like=60").stdout
    ultr("export", tmp_path / "model", "--to", "onnx", "--out", tmp_path / "model.onnx")


def test_categories_of_trees_are_named_on_the_command_line(tmp_path: Path) -> None:
    lines = [f"{n // 4},{n % 2},{n % 3},{n % 5}" for n in range(400)]
    (tmp_path / "lists.csv").write_text("\n".join(["query,label,brand,colour", *lines]) + "\n")
    train = [
        "train",
        "label",
        "--data",
        tmp_path / "lists.csv",
        "--validate",
        "none",
        "--relevance",
        "trees",
        "--steps",
        3,
    ]
    ultr(*train, "--set", "categorical=brand,colour", "--out", tmp_path / "model")
    assert load(tmp_path / "model").options["relevance"]["categorical"] == ["brand", "colour"]
    refused = ultr(*train, "--set", "categorical=color", "--out", tmp_path / "no", expect=2)
    assert "no column 'color', did you mean 'colour'" in refused.stderr
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--relevance", "tree"], "did you mean 'trees'"),
        (["--set", "relevance=trees"], "give it by --relevance, not by --set"),
        (["--set", "leaves=3"], "leaves"),
        (["--relevance", "trees", "--set", "hidden=3"], "hidden"),
    ],
)
def test_options_of_another_relevance_model_are_refused(
    arguments: list[object], message: str, log: Path, tmp_path: Path
) -> None:
    error = ultr("train", "click", "--log", log, *arguments, "--out", tmp_path / "model", expect=2).stderr
    assert message in error
    assert not list(tmp_path.iterdir())


def test_a_dimension_is_chosen_and_the_candidates_are_shown(log: Path, tmp_path: Path) -> None:
    arguments = ["train", "vectorization", "--log", log, "--dimension", "auto", "--steps", 5, *TINY]
    text = ultr(*arguments, "--out", tmp_path / "model").stdout
    assert "the smallest that no larger one beats" in text
    marked = [line.split()[0] for line in text.splitlines() if line.split()[2:3] == ["chosen"]]
    assert marked == [str(load(tmp_path / "model").choices["dimension"])]
    again = json.loads(ultr(*arguments, "--out", tmp_path / "again", "--json").stdout)
    assert [each["dimension"] for each in again["choices"]["candidates"]] == [1, 2, 3, 4, 5]
    assert load(tmp_path / "model").choices == again["choices"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "model"]


def test_a_trained_model_is_evaluated_on_labels_and_on_clicks(model: Path, log: Path) -> None:
    text = ultr(
        "evaluate", model, "--data", "letor-like=60", "--log", log, "--measures", "nDCG@10,MRR", "--json"
    ).stdout
    result = json.loads(text)
    values = result["measures"][str(model)]
    assert set(values) == {"nDCG@10", "MRR"}
    assert values["nDCG@10"]["low"] < values["nDCG@10"]["mean"] < values["nDCG@10"]["high"]
    assert result["clicks"][str(model)]["perplexity"] > 1
    table = ultr("evaluate", model, model, "--data", "letor-like=60", "--log", log)
    assert "nDCG@10" in table.stdout


def test_two_models_are_compared_by_a_paired_test(model: Path, log: Path) -> None:
    other = log.with_name("click")
    ultr("train", "click", "--log", log, "--steps", 10, "--set", "hidden=16", "--out", other)
    result = json.loads(ultr("evaluate", model, other, "--data", "letor-like=60", "--json").stdout)
    assert 0 < result["first_against"][str(other)]["nDCG@10"]["p_value"] <= 1


def test_an_exported_file_is_measured_by_labels_as_its_model_is(tmp_path: Path, log: Path, model: Path) -> None:
    file = tmp_path / "model.onnx"
    ultr("export", model, "--to", "onnx", "--out", file)
    printed = ultr("evaluate", model, file, "--data", "letor-like=60", "--json").stdout
    of_folder, of_file = json.loads(printed)["measures"].values()
    assert of_file["nDCG@10"] == pytest.approx(of_folder["nDCG@10"])
    refused = ultr("evaluate", model, file, "--log", log, expect=2).stderr
    assert "model.onnx has scores but no probabilities of clicks, which --log asks for" in refused


def test_numbered_features_are_refused_by_a_model_that_knows_names_whatever_their_number(tmp_path: Path) -> None:
    _two_features(["match", "price"]).save(tmp_path / "log")
    model = tmp_path / "model"
    ultr("train", "click", "--log", tmp_path / "log", "--steps", 40, "--set", "hidden=4", "--out", model)
    judged = tmp_path / "judged.txt"
    judged.write_text("2 qid:1 1:1 2:0\n0 qid:1 1:0 2:1\n")
    sentence = "judged.txt has numbered features, but the ranker knows its 2 features by name (match, price)"
    for command in (
        ["evaluate", model, "--data", judged],
        ["rank", model, judged],
        ["export", model, "--data", judged],
        ["report", model, "--data", judged],
        ["train", "click", "--log", tmp_path / "log", "--validate", judged, "--out", tmp_path / "other"],
    ):
        message = ultr(*command, expect=2).stderr
        assert sentence in message
        assert "give a CSV or Parquet file with named columns" in message
    judged = tmp_path / "judged.csv"
    judged.write_text("price,query,match,label\n0,1,1,2\n1,1,0,0\n")
    result = json.loads(ultr("evaluate", model, "--data", judged, "--json").stdout)
    assert result["measures"][str(model)]["nDCG@1"]["mean"] == 1
    for command in (
        ["export", model, "--data", judged],
        ["report", model, "--data", judged],
        ["train", "click", "--log", tmp_path / "log", "--validate", judged, "--steps", 2, "--out", tmp_path / "other"],
    ):
        ultr(*command)


def test_numbered_features_are_matched_by_number_if_the_model_was_trained_on_numbers(
    numbered: Path, tmp_path: Path
) -> None:
    judged = tmp_path / "judged.txt"
    judged.write_text("0 qid:1 1:0 2:1\n2 qid:1 1:1 2:0\n")
    result = json.loads(ultr("evaluate", numbered, "--data", judged, "--json").stdout)
    assert result["measures"][str(numbered)]["nDCG@1"]["mean"] == 1
    assert [line.split("\t")[2] for line in ultr("rank", numbered, judged).stdout.splitlines()[1:]] == ["2", "1"]
    judged.write_text("2 qid:1 1:1 2:0 3:0\n0 qid:1 1:0 2:1 3:1\n")
    for command in (["evaluate", numbered, "--data", judged], ["rank", numbered, judged]):
        assert "columns that the ranker does not know: '3'" in ultr(*command, expect=2).stderr
    named = tmp_path / "named.csv"
    named.write_text("2,1,query,label\n1,0,1,0\n0,1,1,2\n")
    assert json.loads(ultr("evaluate", numbered, "--data", named, "--json").stdout)["measures"] == result["measures"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_order_of_the_columns_of_a_file_changes_nothing(
    model: Path, candidates: Path, tmp_path: Path, ending: str
) -> None:
    table = csv.read_csv(candidates)
    turned = tmp_path / f"turned.{ending}"
    write = csv.write_csv if ending == "csv" else parquet.write_table
    write(table.select(table.column_names[::-1]), turned)
    assert ultr("rank", model, turned).stdout == ultr("rank", model, candidates).stdout
    assert _measured(model, turned) == _measured(model, candidates)
    for change, sentence in (
        (table.drop_columns(["linear_1"]), "lacks 1 of the 64 features of the ranker: 'linear_1'"),
        (table.append_column("title", pa.array(["?"] * 5)), "columns that the ranker does not know: 'title'"),
        (table.rename_columns({"linear_1": "linear 1"}), "'linear_1'; is it 'linear 1', which the ranker does not"),
    ):
        write(change, turned)
        for command in (["evaluate", model, "--data", turned], ["rank", model, turned]):
            assert sentence in ultr(*command, expect=2).stderr


def _measured(model: Path, data: Path, *options: str) -> object:
    return json.loads(ultr("evaluate", model, "--data", data, "--json", *options).stdout)["measures"]


def test_what_was_guessed_of_a_table_is_said_beside_the_result(model: Path, candidates: Path, tmp_path: Path) -> None:
    said = f"{candidates}: query = query (guessed), label = label (guessed), document = document (guessed), 64 features"
    assert said in ultr("rank", model, candidates).stderr
    assert said in ultr("evaluate", model, "--data", candidates).stderr
    renamed = tmp_path / "renamed.csv"
    names = {"query": "Suche", "label": "Note", "document": "Ding"}
    csv.write_csv(csv.read_csv(candidates).rename_columns(names), renamed)
    options = ["--query-column", "Suche", "--label-column", "Note", "--document-column", "Ding"]
    assert "query = Suche, label = Note, document = Ding" in ultr("rank", model, renamed, *options).stderr
    assert ultr("rank", model, renamed, *options).stdout == ultr("rank", model, candidates).stdout
    assert _measured(model, renamed, *options) == _measured(model, candidates)
    assert "name it with --query-column" in ultr("rank", model, renamed, expect=2).stderr
    # Without a column of labels there is nothing to measure, but enough to rank.
    csv.write_csv(csv.read_csv(candidates).drop_columns(["label"]), renamed)
    assert ultr("rank", model, renamed).stdout == ultr("rank", model, candidates).stdout
    assert "name it with --label-column" in ultr("evaluate", model, "--data", renamed, expect=2).stderr


@pytest.mark.parametrize("ending", ["csv", "txt"])
def test_missing_values_of_a_file_are_told_and_ranked(tmp_path: Path, ending: str) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 3)).round(3)
    rows[::4, 1] = np.nan
    names = ["1", "2", "3"]
    if ending == "csv":
        lines = ["query,label," + ",".join(names)]
        lines += [
            f"{n // 4},{n % 2}," + ",".join("" if value != value else str(value) for value in row)
            for n, row in enumerate(rows)
        ]
    else:
        lines = [
            f"{n % 2} qid:{n // 4} " + " ".join(f"{i + 1}:{value}" for i, value in enumerate(row))
            for n, row in enumerate(rows)
        ]
    path = tmp_path / f"lists.{ending}"
    path.write_text("\n".join(lines) + "\n")
    said = (
        f"{path}: missing values in 1 of 3 features: 2 (25.0%); networks take the median "
        "(and an indicator, if enough were missing in training), trees take them as they are"
    )
    trained = ultr("train", "label", "--data", path, "--validate", "none", "--steps", 2, "--out", tmp_path / "model")
    assert said in trained.stderr
    for command in (["evaluate", tmp_path / "model", "--data", path], ["rank", tmp_path / "model", path, "--json"]):
        result = ultr(*command)
        assert said in result.stderr
    scores = [json.loads(line) for line in result.stdout.splitlines()]
    ranker = load(tmp_path / "model")
    expected = ranker.score(rows, np.arange(0, 41, 4))
    filled = ranker.score(np.where(np.isnan(rows), np.nanmedian(rows, axis=0), rows), np.arange(0, 41, 4))
    np.testing.assert_array_equal(filled != expected, np.isnan(rows[:, 1]), "a network knows what is missing")
    found = {4 * int(each["query"]) + each["candidate"] - 1: each["score"] for each in scores}
    np.testing.assert_allclose([found[row] for row in range(40)], expected, rtol=1e-5, atol=1e-6)


def test_the_first_of_each_query_can_be_asked_for(model: Path, candidates: Path) -> None:
    header, *rows = ultr("rank", model, candidates).stdout.splitlines()
    few = ultr("rank", model, candidates, "--top", 2).stdout.splitlines()
    assert few == [header, *(row for row in rows if int(row.split("\t")[1]) <= 2)]
    assert len(few) == 1 + 4 < 1 + len(rows)
    assert (
        "top must be an integer of at least 0, got -1" in ultr("rank", model, candidates, "--top", -1, expect=2).stderr
    )


def test_candidates_come_back_ranked(model: Path, candidates: Path, tmp_path: Path) -> None:
    lines = ultr("rank", model, candidates).stdout.splitlines()
    assert lines[0].split("\t") == ["query", "rank", "candidate", "document", "score"]
    rows = [line.split("\t") for line in lines[1:]]
    assert [(query, rank) for query, rank, *_ in rows] == [("7", "1"), ("7", "2"), ("7", "3"), ("9", "1"), ("9", "2")]
    assert {(query, candidate, document) for query, _, candidate, document, _ in rows} == {
        ("7", "1", "a"),
        ("7", "2", "b"),
        ("7", "3", "d"),
        ("9", "1", "c"),
        ("9", "2", "e"),
    }
    table = csv.read_csv(candidates)
    ranker = load(model)
    rows_of_7 = [0, 1, 3]
    features = np.stack([table[name].to_numpy()[rows_of_7] for name in ranker.feature_names], axis=1)
    scores = dict(zip("abd", ranker.score(features.astype(np.float32)), strict=True))
    assert {document: float(score) for query, _, _, document, score in rows if query == "7"} == pytest.approx(
        scores, abs=1e-5
    )
    assert [document for query, _, _, document, _ in rows if query == "7"] == sorted("abd", key=lambda d: -scores[d])
    ultr("rank", model, candidates, "--json", "--out", tmp_path / "ranked.jsonl")
    first = json.loads((tmp_path / "ranked.jsonl").read_text().splitlines()[0])
    assert first["query"] == "7"
    assert first["document"] == rows[0][3]
    assert first["score"] == pytest.approx(float(rows[0][4]), abs=1e-5)


def test_pairs_are_counted_on_demand(tmp_path: Path) -> None:
    arguments = ["--data", "letor-like=40", "--impressions", 4_000, "--svm-share", 0.1]
    ultr("simulate", *arguments, "--pairs", "--out", tmp_path / "log")
    ultr("train", "pair-debias", "--log", tmp_path / "log", "--steps", 5, *TINY[:2], "--out", tmp_path / "model")
    ultr("simulate", *arguments, "--out", tmp_path / "without")
    refused = ultr(
        "train", "pair-debias", "--log", tmp_path / "without", *TINY[:2], "--out", tmp_path / "other", expect=2
    )
    assert "give --pairs to `ultr prepare` or `ultr simulate`" in refused.stderr
    assert not (tmp_path / "other").exists()


def test_the_experiments_are_listed() -> None:
    names = [row["experiment"] for row in json.loads(ultr("reproduce", "--json").stdout)]
    assert {"real-clicks", "trust-bias", "dimension", "embeddings", "projection"} <= set(names)
    assert "real-clicks" in ultr("reproduce").stdout


def test_an_experiment_without_training_prints_and_writes_its_tables(tmp_path: Path) -> None:
    result = ultr("reproduce", "click-matrix", "--out", tmp_path)
    assert "singular value" in result.stdout
    assert str(tmp_path / "click-matrix") in result.stdout
    assert json.loads((tmp_path / "click-matrix" / "results.json").read_text())[0]["clicks"] == "real"
    again = json.loads(ultr("reproduce", "click-matrix", "--out", tmp_path, "--json").stdout)
    assert again["findings"][0]["singular_values"][0] == pytest.approx(1.40, abs=0.005)


def test_labels_are_learned_from_data(tmp_path: Path) -> None:
    arguments = ["--data", "letor-like=40", "--steps", 5, "--set", "hidden=16"]
    ultr("train", "label", *arguments, "--out", tmp_path / "model")
    assert load(tmp_path / "model").history[-1].value is not None


def test_a_run_killed_with_sigkill_and_started_again_ends_with_the_same_weights(log: Path, tmp_path: Path) -> None:
    arguments = ["train", "vectorization", "--log", log, "--steps", 500, "--set", "base_steps=100", *TINY]
    ultr(*arguments, "--out", tmp_path / "whole")
    command = [sys.executable, "-m", "ultr", *map(str, arguments), "--out", str(tmp_path / "killed")]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    checkpoint = tmp_path / ".killed.checkpoint"
    deadline = time.monotonic() + 120
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "killed").exists()
    assert "going on from" in ultr(*arguments, "--out", tmp_path / "killed").stderr
    whole, resumed = (tmp_path / name / "weights.safetensors" for name in ("whole", "killed"))
    assert whole.read_bytes() == resumed.read_bytes()
    assert not checkpoint.exists()


def test_a_factor_that_a_method_leaves_out_is_named_in_one_line(log: Path, tmp_path: Path) -> None:
    whole = ClickLog.load(log)
    devices = np.repeat(np.arange(whole.lists) % 2, whole.lengths).astype(np.int32)
    device = BiasFactor("device", devices, ("phone", "desktop"))
    replace(whole, factors=(*whole.factors, device)).save(tmp_path / "log")
    train = ["--log", tmp_path / "log", "--steps", 2, "--set", "hidden=4"]
    said = ultr("train", "dla", *train, "--out", tmp_path / "dla").stderr
    (line,) = [line for line in said.splitlines() if "'device'" in line]
    assert line.startswith("ultr: ")
    assert load(tmp_path / "dla").learned_factors == ("position",)
    assert "'device'" not in ultr("train", "two-tower", *train, "--out", tmp_path / "towers").stderr
    assert load(tmp_path / "towers").learned_factors == ("position", "device")


def test_methods_are_listed_with_what_they_learn_from() -> None:
    text = ultr("methods").stdout
    for name, kind in METHODS.items():
        assert name in text
        assert kind.__name__ in text
    rows = {row["name"]: row for row in json.loads(ultr("methods", "--json").stdout)}
    assert list(rows) == list(METHODS)
    assert rows["label"]["learns_from"] == "labels"
    assert rows["vectorization"] == {
        "name": "vectorization",
        "class": "Vectorization",
        "learns_from": "clicks",
        "summary": "Clicks as r(x) . o(t), ranking by projection on a base vector found for each query.",
    }


def test_a_method_is_shown_with_its_paper_and_every_option() -> None:
    text = ultr("methods", "inverse-propensity").stdout
    assert "log softmax_i( f(x_i) )" in text
    assert "WSDM 2017" in text
    assert "propensities: tuple[float, ...] | None = None" in text
    assert "estimator: str = 'all-pairs'" in text
    assert "Options of the relevance model mlp, for --set or as arguments of MLP:" in text
    assert "Sizes of the hidden layers." in text
    for name, kind in METHODS.items():
        shown = json.loads(ultr("methods", name, "--json").stdout)
        listed = [*shown["options"], *shown["relevance"][kind().relevance.kind]]
        assert len(listed) == len(types(kind))
        assert {option["name"] for option in listed} == set(types(kind))
    (penalty,) = [
        option
        for option in json.loads(ultr("methods", "vectorization", "--json").stdout)["options"]
        if option["name"] == "base_penalty"
    ]
    assert penalty == {
        "name": "base_penalty",
        "type": "float",
        "default": 0.001,
        "description": "lambda, the weight of |theta_v|^2.",
    }


def test_a_library_boosts_for_a_method_like_any_other(log: Path, model: Path, tmp_path: Path) -> None:
    train = ["train", "xgboost", "--log", log, "--steps", 12, "--set", "debias=true", "--set", "sessions=500"]
    ran = ultr(*train, "--out", tmp_path / "trees")
    first = ran.stdout.splitlines()[0]
    assert first.startswith("stage trees: 12 steps, best held-out nDCG@10 0.")
    best = max(record.value or 0 for record in load(tmp_path / "trees").history)
    assert first.endswith(f"{best:.4f}")
    assert "XGBoostRanker · trees · step 10: held-out nDCG@10 0." in ran.stderr
    assert not list(tmp_path.glob(".*checkpoint"))
    compared = json.loads(ultr("compare", model, tmp_path / "trees", "--log", log, "--json").stdout)
    assert compared
    page = tmp_path / "page.html"
    ultr("report", tmp_path / "trees", "--log", log, "--out", page)
    assert "held-out nDCG@10" in page.read_text()
    assert "training loss" not in page.read_text()
    text = ultr("methods", "xgboost").stdout
    assert "leaves: int = 31" in text
    assert "relevance: Relevance = 'trees'" in text
    assert "relevance model mlp" not in text
    assert "fewest_documents" not in text


@pytest.fixture(scope="module")
def random_log(log: Path) -> Path:
    folder = log.with_name("random")
    arguments = ["--data", "letor-like=60", "--clicks", "position-based", "--impressions", 600_000, "--svm-share", 0.1]
    ultr("simulate", *arguments, "--rankings", 20, "--noise", 1e6, "--out", folder)
    return folder


def test_propensities_come_from_a_file_a_randomised_log_or_the_command_line(
    log: Path, random_log: Path, tmp_path: Path
) -> None:
    given = (2.0, 1.6, 1.2, 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4)
    file = tmp_path / "propensities.csv"
    file.write_text("position,propensity\n" + "".join(f"{p},{v}\n" for p, v in enumerate(given, start=1)))
    train = ["train", "inverse-propensity", "--log", log, "--steps", 3, "--set", "hidden=8"]
    ultr(*train, "--propensities", file, "--out", tmp_path / "file")
    ultr(*train, "--set", f"propensities={','.join(map(str, given))}", "--out", tmp_path / "line")
    ultr(*train, "--propensities", random_log, "--out", tmp_path / "log")
    assert tuple(load(tmp_path / "file").options["propensities"]) == given
    assert tuple(load(tmp_path / "line").options["propensities"]) == given
    rates = click_rate_propensities(ClickLog.load(random_log))
    assert load(tmp_path / "log").options["propensities"] == rates.tolist()


@pytest.fixture(scope="module")
def swapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with swaps, beside the models `raw` and `vectors` that were trained on nine tenths of its queries."""
    folder = tmp_path_factory.mktemp("swapped")
    simulate = ["simulate", "--data", "letor-like=300", "--clicks", "position-based", "--rankings", 4, "--noise", 1]
    ultr(*simulate, "--impressions", 60_000, "--svm-share", 0.1, "--out", folder / "log")
    for method, name in (("click", "raw"), ("vectorization", "vectors")):
        tiny = TINY if method == "vectorization" else ["--set", "hidden=16"]
        ultr("train", method, "--log", folder / "log", "--steps", 40, *tiny, "--out", folder / name)
    return folder


def test_two_models_are_compared_by_clicks_alone(swapped: Path) -> None:
    command = ["compare", swapped / "raw", swapped / "vectors", "--log", swapped / "log"]
    text = ultr(*command).stdout
    assert "Compared on the 30 queries of the log that neither model was trained on." in text
    for part in ("the lists as shown", "ranks better than raw clicks", "effective clicks", "predicts clicks"):
        assert part in text.replace("\n", " ")
    content = json.loads(ultr(*command, "--json").stdout)
    answers = content["answers"]
    assert answers["likelihood"]["winner"] == str(swapped / "vectors")
    assert answers["value"]["verdict"] in {
        "cannot tell",
        *(f"{swapped / name} is better" for name in ("raw", "vectors")),
    }
    assert len(content["propensities"]) == 10
    assumption = content["one_number_for_each_position"]
    assert assumption["rejected"] is (assumption["p_value"] <= 0.05)
    assert assumption["sentence"] in text
    assert set(content["values"]) == {str(swapped / "raw"), str(swapped / "vectors"), "the lists as shown"}
    assert answers["value"]["difference"].keys() == {"mean", "low", "high"}
    assert content["looks"] == 1
    often = ultr(*command, "--looks", 20).stdout
    assert "answers, 95 % intervals for 20 looks" in often
    wider = json.loads(ultr(*command, "--looks", 20, "--json").stdout)["answers"]["likelihood"]["difference"]
    once = answers["likelihood"]["difference"]
    assert wider["low"] < once["low"] < once["high"] < wider["high"]


@pytest.mark.usefixtures("_few_draws", "_plain_drawings")
def test_a_ranker_orders_pages_or_all_documents_of_a_query(swapped: Path) -> None:
    command = ["compare", swapped / "raw", swapped / "vectors", "--log", swapped / "log", "--json"]
    page, query = (json.loads(ultr(*command, "--candidates", each).stdout)["values"] for each in ("page", "query"))
    shown = "the lists as shown"
    assert page[shown] == query[shown]
    assert page[str(swapped / "raw")] != query[str(swapped / "raw")]
    assert "candidates must be one of page, query" in ultr(*command, "--candidates", "list", expect=2).stderr


@pytest.mark.usefixtures("_few_draws", "_plain_drawings")
def test_of_many_models_each_has_a_row_and_the_best_comes_first(swapped: Path, tmp_path: Path) -> None:
    raw, vectors, again = swapped / "raw", swapped / "vectors", tmp_path / "again"
    shutil.copytree(raw, again)
    command = ["compare", again, vectors, raw, "--log", swapped / "log"]
    found = json.loads(ultr(*command, "--json").stdout)
    differences = {name: each["answers"]["value"]["difference"]["mean"] for name, each in found["rankers"].items()}
    assert list(differences) == sorted(differences, key=lambda name: -differences[name])
    assert found["a"] == str(again)
    assert differences[str(raw)] == 0
    alone = json.loads(ultr("compare", again, vectors, "--log", swapped / "log", "--json").stdout)
    assert alone["answers"]["value"]["difference"]["mean"] == pytest.approx(differences[str(vectors)])
    other = json.loads(ultr(*command, "--against", vectors, "--json").stdout)
    assert other["a"] == str(vectors)
    assert set(other["rankers"]) == {str(raw), str(again)}
    text = ultr(*command, "--html", tmp_path / "page.html").stdout
    assert "Each interval holds for itself" in text
    assert "Which ranks better than" in (tmp_path / "page.html").read_text(encoding="utf-8")
    measured = ultr("evaluate", raw, vectors, again, "--data", "letor-like=60", "--against", vectors).stdout
    means = [float(mean) for mean in re.findall(r"^ */\S+ +(0\.\d+) ", measured, re.MULTILINE)[:3]]
    assert len(means) == 3
    assert means == sorted(means, reverse=True)


@pytest.mark.usefixtures("_few_draws")
def test_a_comparison_without_swaps_says_what_is_missing(model: Path, swapped: Path, log: Path, tmp_path: Path) -> None:
    command = ["compare", model, swapped / "raw", "--log", log]
    text = ultr(*command).stdout
    assert text.startswith("cannot tell: the propensities are not identified: no chain of clicked documents")
    assert "Give --propensities, or a log with swaps" in text
    assert "cannot be tested: no clicked document" in text
    given = tmp_path / "propensities.json"
    given.write_text(json.dumps([1 / position for position in range(1, 11)]))
    assert json.loads(ultr(*command, "--json").stdout)["propensities"] is None
    by_file = json.loads(ultr(*command, "--propensities", given, "--json").stdout)
    assert by_file["propensities"] == [1 / position for position in range(1, 11)]
    by_log = json.loads(ultr(*command, "--propensities", swapped / "log", "--json").stdout)
    rates = click_rate_propensities(ClickLog.load(swapped / "log"))
    assert by_log["propensities"] == pytest.approx(rates.tolist())
    by_pivot = ultr(*command, "--propensities", swapped / "log", "--estimator", "pivot", "--json").stdout
    table = SwapTable.of_log(ClickLog.load(swapped / "log"))
    assert json.loads(by_pivot)["propensities"] == pytest.approx(pivot(table).tolist())


@pytest.mark.usefixtures("_few_draws")
def test_models_trained_on_the_whole_log_are_not_compared_in_silence(swapped: Path, tmp_path: Path) -> None:
    train = ["train", "click", "--log", swapped / "log", "--steps", 3, "--set", "hidden=8", "--validate", "none"]
    ultr(*train, "--out", tmp_path / "all")
    command = ["compare", tmp_path / "all", swapped / "raw", "--log", swapped / "log"]
    lines = ultr(*command).stdout.splitlines()
    told = f"{tmp_path / 'all'} was trained on this log, so numbers measured on it are too good; use another log"
    assert lines[1:3] == ["Compared on all 300 queries of the log.", f"Warning: {told}."]
    content = json.loads(ultr(*command, "--json").stdout)
    assert (content["compared_on"], content["warnings"]) == ("all 300 queries of the log", [told])
    measured = ultr("evaluate", tmp_path / "all", "--log", swapped / "log").stdout.splitlines()
    assert measured[:2] == ["Measured on all 300 queries of the log.", f"Warning: {told}."]


@pytest.mark.usefixtures("_few_draws")
def test_models_of_a_part_of_the_log_are_compared_on_the_rest(swapped: Path, tmp_path: Path) -> None:
    log = ClickLog.load(swapped / "log")
    kept, held = log.split(0.2)
    for name, data in (("one", kept), ("two", kept), ("nested", kept.split(0.25)[0])):
        ClickBaseline(relevance=MLP(hidden=(4,), steps=3), seed=len(name)).fit(data).save(tmp_path / name)
    compare = ["compare", tmp_path / "one", tmp_path / "two", "--log", swapped / "log"]
    assert "\nCompared on the 60 queries of the log that neither model was trained on.\n" in ultr(*compare).stdout
    held.save(tmp_path / "held")
    kept.save(tmp_path / "kept")
    alone = json.loads(ultr(*compare[:-1], tmp_path / "held", "--json").stdout)
    assert alone["compared_on"] == "all 60 queries of the log, which neither model was trained on"
    assert alone["answers"]["likelihood"] == json.loads(ultr(*compare, "--json").stdout)["answers"]["likelihood"]
    evaluate = ["evaluate", tmp_path / "nested"]
    whole, on_held, on_kept = (
        json.loads(ultr(*evaluate, "--log", folder, "--json").stdout)
        for folder in (swapped / "log", tmp_path / "held", tmp_path / "kept")
    )
    assert whole["measured_on"] == "the 120 queries of the log that the model was not trained on"
    assert on_held["measured_on"] == "all 60 queries of the log, which the model was not trained on"
    assert on_kept["measured_on"] == "the 60 queries of the log that the model was not trained on"
    assert [each["warnings"] for each in (whole, on_held, on_kept)] == [[], [], []]


@pytest.mark.usefixtures("_few_draws")
def test_a_model_without_a_record_of_its_data_is_not_measured_in_silence(swapped: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(swapped / "raw", old)
    write_json(old / "manifest.json", read_json(old / "manifest.json") | {"provenance": None})
    told = (
        f"Warning: what {old} was trained on is not recorded, so numbers are too good if it was this log; train again "
        "to have it recorded, or make sure that it was another log."
    )
    compared = ultr("compare", old, swapped / "vectors", "--log", swapped / "log").stdout.splitlines()
    assert compared[1] == f"Compared on the 30 queries of the log that {swapped / 'vectors'} was not trained on."
    assert compared[2] == told
    measured = ultr("evaluate", old, "--log", swapped / "log").stdout.splitlines()
    assert measured[:2] == ["Measured on all 300 queries of the log.", told]


@pytest.mark.usefixtures("_few_draws")
def test_what_is_held_out_can_be_queries_pages_or_the_end(log: Path, tmp_path: Path) -> None:
    whole = ClickLog.load(log)
    timed = replace(whole, periods=np.arange(whole.lists) % 10, period_names=tuple("abcdefghij"))
    timed.save(tmp_path / "timed")
    for by in ("query", "page", "time"):
        out = tmp_path / by
        train = ["train", "click", "--log", tmp_path / "timed", "--hold-out", by, "--steps", 2, "--set", "hidden=4"]
        ultr(*train, "--out", out)
        assert load(out).data_fingerprint == timed.split(0.1, by=by)[0].fingerprint()
        ultr(*train, "--seed", 1, "--out", out.with_name(f"{by}-again"))
    compare = ["compare", "--log", tmp_path / "timed"]
    assert "the end of the log that neither" in ultr(*compare, tmp_path / "time", tmp_path / "time-again").stdout
    text = ultr(*compare, tmp_path / "time", tmp_path / "query").stdout
    common = timed.split(0.1, by="time")[1]
    common = common.select(np.isin(common.queries, timed.split(0.1)[1].queries))
    assert f"the {common.impressions.sum():,} pages of the log that neither" in text
    text = ultr(*compare, tmp_path / "page", tmp_path / "page-again").stdout
    assert "Warning: nothing of the log is left that neither model was trained on, so numbers measured" in text
    text = ultr(*compare, tmp_path / "query", tmp_path / "query-again").stdout
    held = [set(timed.split(0.1, seed=seed)[1].queries.tolist()) for seed in (0, 1)]
    both = len(held[0] & held[1])
    assert f"the {both} queries of the log" in text if both else "nothing of the log is left" in text
    assert 0 <= both < len(held[0])


IPW = ["train", "inverse-propensity", "--log", "{log}", "--out", "{out}"]
BAD = [
    (["train", "vectorisation", "--log", "{log}", "--out", "{out}"], "did you mean 'vectorization'"),
    (["train", "vectorization", "--log", "{out}", "--out", "{out}2"], "there is no folder"),
    (
        ["train", "--log", "{log}/manifest.json", "--out", "{out}"],
        "is a file and not the folder of a click log; prepare",
    ),
    (["train", "vectorization", "--out", "{out}"], "give it --log FOLDER"),
    (["train", "label", "--log", "{log}", "--out", "{out}"], "give it --data"),
    (["train", "vectorization", "--log", "{log}", "--out", "{model}"], "is not empty"),
    (
        ["train", "vectorization", "--log", "{log}", "--out", "{out}", "--dimension", "0"],
        "dimension must be an integer",
    ),
    (
        ["train", "click", "--log", "{log}", "--out", "{out}", "--dimension", "2"],
        "method click has no option dimension",
    ),
    (["train", "vectorization", "--log", "{log}", "--out", "{out}", "--dimension", "two"], "dimension cannot be 'two'"),
    (["train", "click", "--log", "{log}", "--out", "{out}", "--set", "step=3"], "did you mean 'steps'"),
    (["train", "click", "--log", "{log}", "--out", "{out}", "--set", "steps=many"], "steps cannot be 'many'"),
    (["train", "click", "--log", "{log}", "--out", "{out}", "--validate", "mq2007"], "needs its folder"),
    (["train", "click", "--log", "{log}", "--out", "{out}", "--hold-out", "pages"], "did you mean 'page'"),
    (["train", "click", "--log", "{log}", "--out", "{out}", "--hold-out", "time"], "prepare it with --time COLUMN"),
    (["methods", "regresion-em"], "did you mean 'regression-em'"),
    (
        ["train", "lightgbm", "--log", "{log}", "--out", "{out}", "--relevance", "mlp"],
        "the relevance model of LightGBMRanker is always Trees(...), got MLP",
    ),
    (
        ["train", "xgboost", "--log", "{log}", "--out", "{out}", "--set", "fewest_documents=3"],
        "must be one of rounds, leaves,",
    ),
    (
        ["train", "dla", "--log", "{log}", "--out", "{out}", "--propensities", "{bad}"],
        "method dla takes no propensities; leave --propensities out or use inverse-propensity",
    ),
    (
        [*IPW, "--propensities", "{bad}", "--set", "propensities=1,0.5"],
        "propensities are given twice, by --propensities and by --set",
    ),
    ([*IPW, "--propensities", "{bad}"], "bad.txt, line 1: 3 columns"),
    ([*IPW, "--propensities", "nowhere"], "nowhere is neither a file of propensities nor the folder of a click log"),
    ([*IPW, "--propensities", "{bad}/.."], "is neither a file of propensities nor the folder of a click log"),
    ([*IPW, "--propensities", "{model}"], "is a model and no click log"),
    ([*IPW, "--set", "propensities=1,0.5"], "the log shows 10 positions, but 2 propensities are given"),
    ([*IPW, "--set", "propensities=1,half"], "propensities cannot be '1,half'"),
    (["simulate", "--clicks", "thrust", "--out", "{out}"], "did you mean 'trust'"),
    (["simulate", "--data", "mq2007=nowhere", "--out", "{out}"], "there is no folder nowhere"),
    (["simulate", "--data", "mq20007=x", "--out", "{out}"], "did you mean 'mq2007'"),
    (
        ["simulate", "--data", "letor-like=50", "--impressions", "3", "--out", "{out}"],
        "impressions must be at least 50",
    ),
    (["evaluate", "{log}", "--data", "letor-like"], "is a click log and no model; give the folder of a model"),
    (["evaluate", "{model}"], "nothing to evaluate on"),
    (["evaluate", "{model}", "--data", "letor-like=50", "--measures", "nDGC@10"], "did you mean 'nDCG'"),
    (["compare", "{model}", "{model}", "--log", "{log}"], "need different names"),
    (["compare", "{model}", "--log", "{log}"], "give two models or more"),
    (["compare", "{model}", "nomodel", "--log", "{log}"], "there is no folder nomodel"),
    (["compare", "{model}", "{model}/.", "--log", "nolog"], "there is no folder nolog"),
    (["compare", "{model}", "{model}"], "give two model folders and --log LOG, or --interleaved FOLDER"),
    (
        ["compare", "{model}", "{swapped}/raw", "--log", "{log}", "--propensities", "nowhere"],
        "nowhere is neither a file of propensities nor the folder of a click log",
    ),
    (
        ["compare", "{model}", "{swapped}/raw", "--log", "{log}", "--propensities", "{bad}", "--estimator", "pivot"],
        "there is nothing to estimate; leave --estimator out",
    ),
    (
        ["compare", "{model}", "{swapped}/raw", "--log", "{log}", "--estimator", "all-pair"],
        "did you mean 'all-pairs'",
    ),
    (["compare", "{model}", "{swapped}/raw", "--log", "{log}", "--utility", "ndcg"], "did you mean 'dcg'"),
    (
        ["compare", "{model}", "{swapped}/raw", "--log", "{log}", "--weighting", "doubly-robust"],
        "doubly-robust needs a model of relevance",
    ),
    (["rank", "{model}", "{bad}"], "bad.txt"),
    (["reproduce", "real-click"], "did you mean 'real-clicks'"),
    (["reproduce", "nowhere.toml"], "cannot read nowhere.toml"),
    (["reproduce", "real-clicks", "--data", "mq2007=nowhere", "--out", "{out}"], "there is no folder nowhere"),
    (["reproduce", "real-clicks", "--data", "mq20007=x", "--out", "{out}"], "did you mean 'mq2007'"),
    (["reproduce", "real-clicks", "--seeds", "0;1", "--out", "{out}"], "--seeds takes numbers"),
    (["reproduce", "real-clicks", "--workers", "0", "--out", "{out}"], "workers must be an integer of at least 1"),
    (["reproduce", "click-matrix", "--out", "{bad}"], "bad.txt is a file, not a folder"),
    (["reproduce", "click-matrix", "--quick", "--out", "{out}"], "no table [quick]"),
    (
        ["rank", "{model}", "{bad}", "--out", "{bad}"],
        "bad.txt exists; give another file or ask to overwrite it (--overwrite)",
    ),
    (["train", "click", "--log", "{log}", "--out", "{bad}/model"], "bad.txt/model"),
    (
        ["train", "click", "--log", "{log}", "--out", "{out}", "--steps", "2", "--set", "steps=3"],
        "steps is given twice",
    ),
    (["train", "click", "--log", "{log}", "--out", "{out}", "--steps", "many"], "invalid value for '--steps'"),
    (["train", "click", "--lgo", "{log}", "--out", "{out}"], "no such option"),
    (["trian"], "no such command"),
    (["simulate", "--out", "{out}", "--set", "name=x"], "option of click model trust must be one of"),
    (
        ["simulate", "--data", "letor-like=50", "--out", "{out}", "--impressions", "99999999999999999999"],
        "impressions must be",
    ),
    (["evaluate", "{model}", "--data", "nofile.txt"], "there is no file 'nofile.txt'"),
    (["evaluate", "{model}", "--data", "{log}"], "is a folder; a click log is given with --log, and a data set by"),
    (["rank", "{model}", "{log}"], "is a folder; give an SVMlight, CSV or Parquet file with a row per candidate"),
    (["evaluate", "nomodel", "--data", "letor-like=50"], "there is no folder nomodel"),
    (["train", "label", "--data", "{bad}", "--out", "{out}"], "without a validation part; add --validate"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=lambda value: value if isinstance(value, str) else "")
def test_bad_input_ends_in_one_sentence_exit_code_2_and_nothing_written(
    arguments: list[str], message: str, model: Path, log: Path, swapped: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text("1 qid:1 1:0.5\n1 2:0.5\n")
    places = {"model": model, "log": log, "swapped": swapped, "out": tmp_path / "out", "bad": bad}
    result = ultr(*(argument.format(**places) for argument in arguments), expect=2)
    assert message in result.stderr
    assert result.stderr.startswith("ultr: ")
    assert len(result.stderr.strip().splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["bad.txt"]


def test_numbered_features_that_a_file_leaves_out_are_zero_if_that_is_said(numbered: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.txt"
    few.write_text("0 qid:1 1:0.5\n")
    message = ultr("rank", numbered, few, expect=2).stderr
    assert "few.txt lacks 1 of the 2 features of the ranker: '2'" in message
    assert "--features 2 if those that are left out are zero" in message
    assert ultr("rank", numbered, few, "--features", 2).stdout.count("\n") == 2


def test_options_of_one_kind_of_file_are_refused_for_the_other(
    numbered: Path, model: Path, candidates: Path, tmp_path: Path
) -> None:
    few = tmp_path / "few.txt"
    few.write_text("0 qid:1 1:0.5 2:1\n")
    assert "--features is for SVMlight" in ultr("rank", model, candidates, "--features", 64, expect=2).stderr
    message = ultr("rank", numbered, few, "--query-column", "q", expect=2).stderr
    assert "columns are named for CSV and Parquet files" in message


def test_causes_of_bias_are_simulated_by_name(tmp_path: Path) -> None:
    arguments = ["--data", "letor-like=30", "--impressions", 3_000, "--svm-share", 0.2, "--out", tmp_path / "log"]
    ultr("simulate", *arguments, "--factor", "device", "--factor", "pixels")
    factors = ClickLog.load(tmp_path / "log").factors
    assert [(factor.name, len(factor.levels)) for factor in factors] == [
        ("position", 10),
        ("device", 3),
        ("pixels", 20),
    ]
    assert "did you mean 'device'" in ultr("simulate", *arguments, "--factor", "devise", expect=2).stderr

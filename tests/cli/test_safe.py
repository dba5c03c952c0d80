"""`ultr train --safe`, the exposure shift of `ultr compare`, `ultr head` and `ultr rank --head`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from tests.cli.console import ultr

from ultr.data.click_log import ClickLog
from ultr.methods import load

TINY = ["--steps", 10, "--set", "hidden=8"]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulate") / "log"
    swaps = ["--rankings", 4, "--noise", 0.5, "--clicks", "position-based"]
    ultr("simulate", "--data", "letor-like=100", "--impressions", 20_000, "--svm-share", 0.1, *swaps, "--out", folder)
    return folder


@pytest.fixture(scope="module")
def models(log: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("models")
    ultr("train", "dla", "--log", log, *TINY, "--out", folder / "free")
    said = ultr("train", "dla", "--log", log, *TINY, "--safe", 2, "--out", folder / "safe").stdout
    assert "safe: discounted debiased clicks on held-out queries" in said
    assert "Propensities come from documents that the log shows at several positions." in said
    assert "its Kendall tau with the shown order is" in said
    return folder / "free", folder / "safe"


def test_a_safe_model_says_what_it_may_change_and_holds_out_more(models: tuple[Path, Path], log: Path) -> None:
    choice = load(models[1]).choices["safe"]
    assert choice["largest"] == 2
    assert [each["factor"] for each in choice["tried"]] == [1, 1.5, 2]
    assert choice["factor"] in (1, 1.5, 2)
    provenance = load(models[1]).provenance
    assert provenance is not None
    assert provenance.validation[0].splits[-1].share == pytest.approx(1 / 3)


def test_a_comparison_states_how_exposure_shifts(models: tuple[Path, Path], log: Path) -> None:
    told = ultr("compare", *models, "--log", log).stdout
    assert f"With {models[0]} against the lists as shown, half of the results get at most " in told
    shifts = json.loads(ultr("compare", *models, "--log", log, "--json").stdout)["exposure_shift"]
    assert list(shifts) == [str(model) for model in models]
    assert all(shift["growth"] >= 1 and shift["fall"] >= 1 and shift["median"] >= 1 for shift in shifts.values())


def test_a_report_states_how_exposure_shifts(models: tuple[Path, Path], log: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    content = json.loads(ultr("report", models[0], "--log", log, "--out", page, "--json").stdout)
    assert content["orders"]["exposure_shift"]["growth"] > 1
    assert "against the most frequent lists, half of the results get at most" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--safe", "0.5"], "safe must be a factor of at least 1, or auto, got 0.5"),
        (["--safe", "much"], "safe cannot be 'much'"),
        (["--safe", "auto", "--validate", "none"], "--safe goes by held-out clicks; leave --validate out"),
    ],
    ids=str,
)
def test_what_is_not_safe_is_refused_and_nothing_is_written(
    log: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    refused = ultr("train", "dla", "--log", log, *TINY, *arguments, "--out", tmp_path / "model", expect=2)
    assert message in refused.stderr
    assert not (tmp_path / "model").exists()


def test_labels_have_no_logged_order(tmp_path: Path) -> None:
    arguments = ["--data", "letor-like=60", *TINY, "--safe", "auto", "--out", tmp_path / "model"]
    assert (
        "method label learns from labels, not from a log with an order; leave --safe out"
        in ultr("train", "label", *arguments, expect=2).stderr
    )


def test_candidates_of_head_queries_are_ranked_by_their_rates(
    models: tuple[Path, Path], log: Path, tmp_path: Path
) -> None:
    told = ultr("head", models[0], "--log", log, "--out", tmp_path / "head.parquet")
    assert "was not prepared from raw rows: documents are called by their rows" in told.stderr
    assert "What features say counts as much as" in told.stdout
    table = parquet.read_table(tmp_path / "head.parquet").to_pandas()
    clicks = ClickLog.load(log)
    assert table["clicks"].sum() == clicks.clicks.sum()
    assert (table["low"] <= table["posterior"]).all()
    assert (table["posterior"] <= table["high"]).all()
    query = table["query"].iloc[0]
    known = table[table["query"] == query]
    rows = known["document"].astype(int).to_numpy()
    candidates = {"query": [query] * len(rows), "document": rows.astype(str)}
    candidates |= {name: clicks.features[rows, i] for i, name in enumerate(clicks.feature_names)}
    csv.write_csv(pa.table(candidates), tmp_path / "candidates.csv")
    arguments = [models[0], tmp_path / "candidates.csv", "--head", tmp_path / "head.parquet", "--json"]
    ranked = ultr("rank", *arguments)
    assert "1 of 1 queries are ranked by" in ranked.stderr
    found = [json.loads(line) for line in ranked.stdout.splitlines()]
    assert [each["document"] for each in found] == known.sort_values("posterior", ascending=False)["document"].tolist()
    assert [each["score"] for each in found] == sorted(known["posterior"], reverse=True)
    again = ultr("head", models[0], "--log", log, "--out", tmp_path / "head.parquet", expect=2)
    assert "exists" in again.stderr


def test_documents_of_a_prepared_log_have_their_own_ids(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    pages, width = 200, 4
    query, position = np.repeat(np.arange(pages) % 5, width), np.tile(np.arange(1, width + 1), pages)
    document = (random.permuted(np.tile(np.arange(width), (pages, 1)), axis=1)).ravel()
    rows: dict[str, Any] = {
        "session": np.repeat(np.arange(pages), width),
        "query": [f"q{each}" for each in query],
        "document": [f"doc-{each}" for each in document],
        "position": position,
        "clicked": (random.random(pages * width) < 0.6 / position).astype(int),
        "size": document / 3 + query,
    }
    parquet.write_table(pa.table(rows), tmp_path / "raw.parquet")
    ultr(
        "prepare", tmp_path / "raw.parquet", "--impression", "session", "--features", "size", "--out", tmp_path / "log"
    )
    ultr("train", "click", "--log", tmp_path / "log", *TINY, "--validate", "none", "--out", tmp_path / "model")
    told = ultr("head", tmp_path / "model", "--log", tmp_path / "log", "--out", tmp_path / "head.parquet", "--json")
    content = json.loads(told.stdout)
    assert (content["queries"], content["documents"]) == (5, 20)
    table = parquet.read_table(tmp_path / "head.parquet").to_pandas()
    assert set(table["document"]) == {f"doc-{each}" for each in range(width)}
    expected = {(row["query"], row["document"]): 0 for row in table.to_dict("records")}
    for key in zip(rows["query"], rows["document"], rows["clicked"], strict=True):
        expected[key[:2]] += int(key[2])
    found = {(row["query"], row["document"]): row["clicks"] for row in table.to_dict("records")}
    assert found == expected


def test_head_says_that_users_stop_where_they_do(models: tuple[Path, Path], log: Path, tmp_path: Path) -> None:
    """By simulation intervals of 95 % hold three in four rates of a cascade."""
    swaps = ["--rankings", 4, "--noise", 0.5, "--clicks", "cascade"]
    stopped = tmp_path / "log"
    ultr("simulate", "--data", "letor-like=100", "--impressions", 20_000, "--svm-share", 0.1, *swaps, "--out", stopped)
    for name, each, share in (("plain", log, 0.0), ("stopped", stopped, 1.0)):
        said = ultr("head", models[0], "--log", each, "--out", tmp_path / f"{name}.parquet").stdout
        assert ("Users stop after a click, which propensities do not know" in said) == (share > 0)
        told = ultr("head", models[0], "--log", each, "--out", tmp_path / f"{name}.parquet", "--overwrite", "--json")
        assert json.loads(told.stdout)["stopping"] == share

"""`ultr explain`, and the line on unusual values of `ultr rank`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.console import ultr
from tests.explanation.rankers import BRANDS, NAMES, NUMBERS, SHOPS, candidates, log, ranker
from tests.serving.ranker_file import write_ranker


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model, its log and candidates of two queries, one of which has a value too large and a new brand."""
    path = tmp_path_factory.mktemp("explain")
    ranker("trees").save(path / "model")
    ranker("vectors").save(path / "vectors")
    log().save(path / "log")
    features = candidates(9)
    features[:, 1] = 0.5
    features[0, 0] = 40.0
    lines = [",".join(["query", "document", *NAMES])]
    for number, row in enumerate(features):
        brand = "brand new" if number == 1 else BRANDS[int(np.nan_to_num(row[NUMBERS]))]
        values = [*(f"{value:.4f}" for value in row[:NUMBERS]), brand, SHOPS[int(row[-1])]]
        lines.append(",".join(["red shoes" if number < 4 else "socks", f"sku-{number}", *values]))
    (path / "candidates.csv").write_text("\n".join(lines) + "\n")
    return path


def test_the_screen_names_the_features_that_moved_each_candidate(folder: Path) -> None:
    shown = ultr("explain", folder / "model", folder / "candidates.csv", "--query", "red shoes", "--top", 2)
    assert "query red shoes, mean score" in shown.stdout
    assert "socks" not in shown.stdout
    assert "By exact Shapley values: contributions add up to the score less the mean of the list." in shown.stdout
    assert "2 of 4 candidates have values that training did not have: number 0 (1), brand (1)" in shown.stderr
    rows = [line for line in shown.stdout.splitlines() if " sku-" in line]
    ranked = ultr("rank", folder / "model", folder / "candidates.csv").stdout.splitlines()
    columns, *expected = [line.split("\t") for line in ranked if line.startswith(("query", "red shoes"))]
    assert columns == ["query", "rank", "candidate", "document", "score"]
    [header] = [line for line in shown.stdout.splitlines() if line.split()[:1] == ["rank"]]
    assert header.split()[:4] == ["rank", "candidate", "document", "score"]
    assert [row.split()[:3] for row in rows] == [line[1:4] for line in expected[:2]]


def test_the_json_of_a_candidate_adds_up_and_agrees_with_ultr_rank(folder: Path) -> None:
    told = json.loads(ultr("explain", folder / "model", folder / "candidates.csv", "--top", 0, "--json").stdout)
    ranked = ultr("rank", folder / "model", folder / "candidates.csv", "--json").stdout.splitlines()
    assert len(told["candidates"]) == 9
    for found, line in zip(told["candidates"], ranked, strict=True):
        expected = json.loads(line)
        assert {name: found[name] for name in ("query", "rank", "candidate", "document", "score")} == expected
        assert sum(found["contributions"].values()) == pytest.approx(found["score"] - found["mean_score"], abs=1e-5)
    unusual = {found["document"]: found["unusual"] for found in told["candidates"] if found["unusual"]}
    assert unusual["sku-0"][0].startswith("number 0 40 > ")
    assert unusual["sku-1"] == ["brand was never seen"]


def test_what_is_held_fixed_is_said(folder: Path) -> None:
    told = ultr("explain", folder / "vectors", folder / "candidates.csv").stdout
    assert "By integrated gradients" in told
    assert "the base vector, is held fixed" in " ".join(told.split())


def test_ultr_rank_counts_candidates_with_unusual_values(folder: Path) -> None:
    told = ultr("rank", folder / "model", folder / "candidates.csv").stderr
    assert "2 of 9 candidates have values that training did not have: number 0 (1), brand (1); `ultr explain`" in told


def test_an_exported_file_says_how_sure_it_is_and_that_it_knows_no_ranges(tmp_path: Path) -> None:
    model = write_ranker(tmp_path / "model.onnx", form="documents", hidden=(4,))
    (tmp_path / "c.csv").write_text("query,bm25,clicks:30d,age\na,1,2,3\na,3,2,1\na,2,2,2\n")
    told = ultr("explain", model, tmp_path / "c.csv")
    assert "By sampled Shapley values" in told.stdout
    assert "the largest standard error of a contribution is" in told.stdout
    assert "no ranges of its training data" in told.stderr
    seen = write_ranker(tmp_path / "seen.onnx", form="documents", minimum=[0.0] * 3, maximum=[2.0] * 3)
    assert "2 of 3 candidates have values that training did not have" in ultr("rank", seen, tmp_path / "c.csv").stderr


def test_the_importance_of_features_is_told_by_labels_and_by_clicks(folder: Path, tmp_path: Path) -> None:
    lines = (folder / "candidates.csv").read_text().splitlines()
    labels = ["label", *(str(number % 3) for number in range(9))]
    judged = tmp_path / "judged.csv"
    judged.write_text("".join(f"{line},{label}\n" for line, label in zip(lines, labels, strict=True)))
    model = folder / "model"
    by_labels = json.loads(ultr("explain", model, "--global", "--data", judged, "--json").stdout)
    assert by_labels["measure"] == "loss in nDCG@10"
    assert by_labels["queries"] == 2
    by_clicks = ultr("explain", model, "--global", "--log", folder / "log", "--repeats", 2).stdout
    assert "60 queries, 95 % intervals" in by_clicks
    assert all(name in by_clicks for name in NAMES)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "there is nothing to explain; give a file of candidates, or --global with --data or --log"),
        (("--global",), "--global needs lists to measure on: give --data or --log"),
        (("CANDIDATES", "--global", "--log", "log"), "--global is about all queries"),
        (("CANDIDATES", "--log", "log"), "--data and --log are for --global"),
        (("CANDIDATES", "--query", "red shoe"), "'red shoes'"),
        (("CANDIDATES", "--top", "-1"), "top must be"),
        (("CANDIDATES", "--show", "0"), "show must be"),
    ],
)
def test_a_mistake_is_one_sentence(folder: Path, arguments: tuple[str, ...], sentence: str) -> None:
    given = [folder / "candidates.csv" if each == "CANDIDATES" else each for each in arguments]
    assert sentence in ultr("explain", folder / "model", *given, expect=2).stderr

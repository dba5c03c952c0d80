from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.cli.console import ultr

from ultr.files import read_json, write_json

pytestmark = pytest.mark.usefixtures("_few_draws")
TINY = ["--steps", 10, "--set", "hidden=8", "--set", "evaluate_every=5"]
DATA = "letor-like=60"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    ultr("simulate", "--data", DATA, "--impressions", 6_000, "--svm-share", 0.1, "--out", folder / "log")
    for name, method in {"model": "vectorization", "raw": "click"}.items():
        ultr("train", method, "--log", folder / "log", *TINY, "--out", folder / name)
    ultr("train", "label", "--data", DATA, *TINY, "--out", folder / "upper")
    return folder


def test_training_says_in_the_manifest_where_a_model_comes_from(runs: Path) -> None:
    origin = json.loads((runs / "model" / "manifest.json").read_text())["origin"]
    assert origin["log"] == "../log"
    assert origin["validation"] == "clicks"
    assert origin["hold_out"] == "query"
    assert origin["command"].startswith("ultr train vectorization --log ")
    labels = json.loads((runs / "upper" / "manifest.json").read_text())["origin"]
    assert labels["data"] == labels["validation"] == DATA


def test_a_model_needs_no_option_wherever_one_stands(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = ultr("report", runs / "model")
    page = runs / "model" / "report.html"
    assert shown.stdout.splitlines()[-1] == str(page)
    assert "6,000 impressions" in page.read_text(encoding="utf-8")
    first = page.read_text(encoding="utf-8")
    ultr("report", runs / "model")
    assert page.read_text(encoding="utf-8") == first


@pytest.mark.usefixtures("_plain_drawings")
def test_log_and_models_can_be_moved_together(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs, tmp_path / "moved")
    content = json.loads(ultr("report", tmp_path / "moved" / "model", "--json").stdout)
    assert content["models"]["log_is_that_of"] == ["model"]
    assert content["examination"]["log"] == str(tmp_path / "moved" / "log")


@pytest.mark.usefixtures("_plain_drawings")
def test_labels_that_are_given_are_those_of_the_seed_of_the_training(runs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    ultr("train", "label", "--data", DATA, "--seed", 3, *TINY, "--out", other)
    given, known = (
        json.loads(ultr("report", other, *options, "--overwrite", "--json").stdout)["quality"]["measures"]
        for options in (("--data", DATA), ())
    )
    assert given == known


def test_all_models_of_a_folder_are_measured_by_the_labels_that_one_of_them_knows(runs: Path) -> None:
    content = json.loads(ultr("report", runs, "--json").stdout)
    assert content["page"] == str(runs / "report.html")
    assert list(content["quality"]["measures"]) == ["raw", "model", "upper"]
    assert content["quality"]["judged"] == f"the test part of {DATA}"
    assert content["quality"]["gap_closed"]["upper"] == 1


@pytest.mark.usefixtures("_plain_drawings")
def test_two_models_are_compared(runs: Path, tmp_path: Path) -> None:
    out = tmp_path / "both.html"
    content = json.loads(ultr("report", runs / "model", runs / "raw", "--data", DATA, "--out", out, "--json").stdout)
    assert content["title"] == "model beside raw"
    assert content["differences"]["differ"]["method"] == ["vectorization", "click"]
    assert out.exists()


@pytest.mark.usefixtures("_plain_drawings")
def test_the_run_is_looked_at_whatever_stands_beside_it(runs: Path, tmp_path: Path) -> None:
    log, out = runs / "log", tmp_path / "page.html"
    ultr("train", "dla", "--log", log, *TINY, "--set", "seed=3", "--out", runs.parent / "dual", "--overwrite")
    for run, beside in ((runs / "model", runs.parent / "dual"), (runs.parent / "dual", runs / "model")):
        content = json.loads(ultr("report", run, "--against", beside, "--data", DATA, "--out", out, "--json").stdout)
        assert list(content["quality"]["lead"]) == [beside.name]


@pytest.mark.usefixtures("_plain_drawings")
def test_a_log_that_is_gone_is_no_error(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "model", tmp_path / "alone")
    shown = ultr("report", tmp_path / "alone")
    assert f"{tmp_path / 'log'} is not there any more. Give it with --log FOLDER." in shown.stdout
    given = ultr("report", tmp_path / "alone", "--log", runs / "log", "--against", runs / "raw").stdout
    assert "What the log says" not in given
    assert "than raw" in given


@pytest.mark.usefixtures("_plain_drawings")
def test_what_doubts_the_numbers_is_on_the_screen(runs: Path, tmp_path: Path) -> None:
    ultr("train", "click", "--log", runs / "log", *TINY, "--validate", "none", "--out", tmp_path / "all")
    command = ["report", tmp_path / "all", "--log", runs / "log"]
    told = "all was trained on this log, so numbers measured on it are too good; use another log"
    assert f"Warning: {told}." in ultr(*command).stdout.splitlines()
    assert told in (tmp_path / "all" / "report.html").read_text(encoding="utf-8")
    content = json.loads(ultr(*command, "--overwrite", "--json").stdout)
    assert content["quality"]["warnings"] == [told]
    chosen = "Note: clicks of this part chose the weights of model, so numbers may be a little too good."
    shutil.copytree(runs / "model", tmp_path / "model")
    manifest = tmp_path / "model" / "manifest.json"
    write_json(manifest, read_json(manifest) | {"origin": None})
    assert chosen in ultr("report", tmp_path / "model", "--log", runs / "log").stdout.splitlines()


@pytest.mark.usefixtures("_plain_drawings")
def test_a_file_of_somebody_else_is_not_overwritten(runs: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.html"
    mine.write_text("<p>mine</p>")
    error = ultr("report", runs / "upper", "--out", mine, expect=2).stderr
    assert "is not a page of ultr" in error
    assert mine.read_text() == "<p>mine</p>"
    ultr("report", runs / "upper", "--out", mine, "--overwrite")
    assert "Report on" in mine.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no folder nowhere"),
        (["{runs}/log"], "is no model and has none inside"),
        (["{runs}/model", "--log", "{runs}/raw"], "is a model and no click log"),
        (["{runs}/model", "--data", "mq2007"], "mq2007"),
        (["{runs}/model", "--against", "{runs}/model"], "given twice"),
        (["{runs}/model", "--out", "{runs}"], "is a folder"),
    ],
)
def test_a_mistake_ends_in_one_sentence(runs: Path, arguments: list[str], message: str, tmp_path: Path) -> None:
    given = [argument.format(runs=runs) for argument in arguments]
    out = [] if "--out" in given else ["--out", str(tmp_path / "page.html")]
    error = ultr("report", *given, *out, expect=2).stderr
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())

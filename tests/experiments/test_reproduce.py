"""Whole experiments in small."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from tests.experiments.in_this_process import in_this_process
from tests.plugin import EAGER, install

from ultr.clicks import CLICK_MODELS
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.scaling import FeatureScaling
from ultr.datasets.source import Source
from ultr.errors import DataError, OptionError
from ultr.evaluation import Evaluation
from ultr.experiments.analyses.click_matrix import click_matrix
from ultr.experiments.analyses.projection import (
    BASE,
    MEAN,
    PRINCIPAL,
    PROBABLE,
    most_probable_positions,
    principal_axis,
)
from ultr.experiments.experiment import Experiment
from ultr.experiments.progress_table import ProgressTable
from ultr.experiments.reproduce import command_line, reproduce
from ultr.experiments.run import Found, execute
from ultr.experiments.spec import read_spec
from ultr.experiments.store import _statements
from ultr.experiments.stored_tables import StoredTables
from ultr.methods import load

HEAD = """
title = "small"
clicks = ["trust"]
{}

[simulation]
impressions = 20_000
svm_share = 0.1

[data.letor-like]
queries = 100
training = {{ hidden = [8], steps = {}, evaluate_every = 10, batch_size = 32 }}
"""
METHODS = """
[[methods]]
label = "SVM"
method = "ranking-svm"
[[methods]]
label = "Labeled"
method = "label"
[[methods]]
label = "Click"
method = "click"
[[methods]]
label = "IPW"
method = "inverse-propensity"
randomised = true
[[methods]]
label = "V"
method = "vectorization"
grid = { dimension = [1, 2] }
"""
VECTORS = """
[[methods]]
label = "V"
method = "vectorization"
options = { dimension = 2, base_hidden = [8] }
"""


def _spec(folder: Path, head: str, methods: str, *, steps: int = 20) -> str:
    path = folder / "small.toml"
    path.write_text(HEAD.format(head, steps) + methods)
    return str(path)


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    """Give back the threads that a test takes away."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    in_this_process(monkeypatch)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("reproduce")
    name = _spec(folder, 'analysis = "table"\nvalidation = ["labels", "clicks"]\nseeds = [0, 1]', METHODS)
    reproduce(name, out=folder / "out", workers=2)
    return name, folder / "out"


def test_tables_figures_and_numbers_are_written(done: tuple[str, Path]) -> None:
    folder = done[1] / "small"
    text = (folder / "tables.md").read_text()
    assert "| V d=2 |" in text
    assert "weights chosen by held-out clicks" in text
    assert r"\begin{tabular}" in (folder / "tables.tex").read_text()
    assert (folder / "trust-clicks.svg").read_text().startswith("<?xml")
    assert (folder / "trust-clicks.png").stat().st_size > 5_000
    by_labels, by_clicks = json.loads((folder / "results.json").read_text())
    assert (by_labels["validation"], by_clicks["validation"]) == ("labels", "clicks")
    labels = [ranker["label"] for ranker in by_labels["rankers"]]
    assert labels == ["SVM", "Labeled", "Click", "IPW", "V d=1", "V d=2"]
    # What does not learn from clicks is one and the same run in both.
    same = [a["measures"] == b["measures"] for a, b in zip(by_labels["rankers"], by_clicks["rankers"], strict=True)]
    assert same[:3] == [True, True, False]


def test_tables_are_stored_with_the_command_that_gives_them(done: tuple[str, Path]) -> None:
    stored = StoredTables.read(done[1] / "small" / "tables.json")
    assert stored.command == "ultr reproduce small.toml"
    text = (done[1] / "small" / "tables.md").read_text()
    assert len(stored.tables) == 2
    assert all(table.as_markdown() in text for table in stored.tables)
    assert stored.numbers == json.loads((done[1] / "small" / "results.json").read_text())


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        ({}, "ultr reproduce docs/specs/a.toml"),
        ({"data": "mq2008=/home/me/mq2008", "seeds": [0, 2]}, "--data mq2008=FOLDER --seeds 0,2"),
        ({"data": "letor-like=300", "quick": True}, "--data letor-like=300 --quick"),
        ({"changes": ["data.mq2007.folds=[1,2]", "only=['Click']"]}, "--set 'data.mq2007.folds=[1,2]' --set "),
    ],
)
def test_the_command_names_what_decides_and_no_folder_of_this_machine(arguments: dict[str, Any], command: str) -> None:
    nothing = {"data": None, "quick": False, "as_published": False, "seeds": None, "changes": ()}
    for name in ("docs/specs/a.toml", str(Path.cwd() / "docs/specs/a.toml")):
        found = command_line(name, **nothing | arguments)
        assert command in found
        assert found.startswith("ultr reproduce docs/specs/a.toml")
        assert "/home" not in found


def test_a_finished_reproduction_runs_nothing_again(done: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    name, out = done
    before = {path: path.stat().st_mtime_ns for path in (out / "runs").iterdir()}
    monkeypatch.setattr("ultr.experiments.experiment.run_all", lambda *_, **__: pytest.fail("ran again"))
    said: list[str] = []
    reproduce(name, out=out, say=said.append)
    assert said == [f"{len(before)} of {len(before)} runs are kept in {out / 'runs'} already"]
    assert before == {path: path.stat().st_mtime_ns for path in (out / "runs").iterdir()}


def test_a_kept_run_is_what_the_run_gives(done: tuple[str, Path]) -> None:
    name, out = done
    experiment = Experiment.of(read_spec(name), None, out / "runs")
    contender = experiment.contenders()[2]
    for validation in ("labels", "clicks"):
        outcome = experiment.outcomes(contender, "trust", validation)[1]
        assert outcome.run.seed == 1
        torch.set_num_threads(1)
        found = execute(outcome.run)
        np.testing.assert_array_equal(found.evaluation.values["nDCG@10"], outcome.values[3])


def test_another_seed_option_or_data_set_is_another_run(done: tuple[str, Path]) -> None:
    name, out = done
    experiment = Experiment.of(read_spec(name), None, out / "runs")
    keys = [experiment.store.key(run) for run in experiment.runs()]
    assert len(keys) == len(set(keys)) == 2 * (2 + 2 * 4)
    other = Experiment.of(read_spec(name), "letor-like=120", out / "runs")
    assert not set(keys) & {other.store.key(run) for run in other.runs()}


def test_a_label_in_tables_does_not_run_anything_again(done: tuple[str, Path], tmp_path: Path) -> None:
    name, out = done
    renamed = tmp_path / "renamed.toml"
    renamed.write_text(Path(name).read_text().replace('"IPW"', '"Weighted"'))
    first, second = (Experiment.of(read_spec(str(each)), None, out / "runs") for each in (name, renamed))
    assert [first.store.key(run) for run in first.runs()] == [second.store.key(run) for run in second.runs()]


def test_of_a_grid_validation_can_select_one_ranker(done: tuple[str, Path]) -> None:
    name, out = done
    # The same runs: what is shown of them decides none.
    experiment = Experiment.of(read_spec(name, changes=["methods.V.select = true"]), None, out / "runs")
    results = experiment.results("trust", "labels")
    assert [line.label for line in results.lines] == ["SVM", "Labeled", "Click", "IPW", "V"]
    by_hand = {}
    for contender in experiment.contenders()[-2:]:
        histories = [load(each.model).history for each in experiment.outcomes(contender, "trust", "labels")]
        best = [max(each.value or 0 for each in history if each.stage == "base") for history in histories]
        by_hand[contender.label] = np.mean(best)
    assert results.selected["V"] == pytest.approx(by_hand)
    chosen = max(by_hand, key=lambda label: by_hand[label])
    assert f"V d={results.lines[-1].contender.options['dimension']}" == chosen


def test_a_damaged_run_is_named(done: tuple[str, Path], tmp_path: Path) -> None:
    import shutil

    name, out = done
    shutil.copytree(out, tmp_path / "out")
    broken = next((tmp_path / "out" / "runs").glob("*/values.npy"))
    broken.write_bytes(b"half")
    with pytest.raises(DataError, match=f"{broken.parent.name} is damaged .* remove it"):
        reproduce(name, out=tmp_path / "out")


@pytest.mark.usefixtures("_here")
def test_stopped_with_sigkill_it_goes_on_where_it_was(tmp_path: Path) -> None:
    methods = '[[methods]]\nlabel = "DLA"\nmethod = "dla"\n'
    name = _spec(tmp_path, 'analysis = "table"', methods, steps=300)
    command = [sys.executable, "-m", "ultr", "reproduce", name, "--out", str(tmp_path / "out"), "--workers", "1"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    experiment = Experiment.of(read_spec(name), None, tmp_path / "out" / "runs")
    (run,) = experiment.runs()
    checkpoint, deadline = experiment.store.checkpoint(run), time.monotonic() + 120
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    time.sleep(2)
    left = checkpoint.stat().st_mtime_ns
    time.sleep(1)
    assert checkpoint.stat().st_mtime_ns == left, "the worker must end with its parent"
    torch.set_num_threads(1)
    reproduce(name, out=tmp_path / "out", workers=1)
    assert not checkpoint.exists()
    resumed = experiment.store.read(run)
    assert resumed is not None
    whole = execute(run)
    np.testing.assert_array_equal(resumed.values[3], whole.evaluation.values["nDCG@10"])


def test_a_stored_run_is_not_written_twice(done: tuple[str, Path]) -> None:
    name, out = done
    experiment = Experiment.of(read_spec(name), None, out / "runs")
    outcome = experiment.outcomes(experiment.contenders()[0], "trust", "labels")[0]
    before = outcome.model.parent.stat().st_mtime_ns
    other = Found(Evaluation({}), 0.0, None)
    experiment.store.write(outcome.run, other)
    assert outcome.model.parent.stat().st_mtime_ns == before


@pytest.mark.usefixtures("_here")
def test_folds_libraries_and_bounds_are_run(tmp_path: Path) -> None:
    methods = """
[training]
sessions = 200
rounds = 3
[[methods]]
label = "knows"
method = "click-model"
readout = "log-rate"
[[methods]]
label = "Labeled, shown"
method = "label"
shown_only = true
[[methods]]
label = "Labeled"
method = "label"
[[methods]]
label = "LightGBM"
method = "lightgbm"
options = { debias = true }
"""
    name = _spec(tmp_path, 'analysis = "table"\nvalidation = ["clicks"]', methods)
    Path(name).write_text(Path(name).read_text().replace("queries = 100", "queries = 100\nfolds = [1, 3]"))
    findings, _ = reproduce(name, out=tmp_path / "out", workers=1)
    values = {ranker["label"]: ranker["measures"]["nDCG@10"]["mean"] for ranker in findings.numbers[0]["rankers"]}
    assert values["knows"] == pytest.approx(1.0)
    assert values["Labeled"] != values["Labeled, shown"]
    assert 0.3 < values["LightGBM"] < 0.9
    runs = Experiment.of(read_spec(name), None, tmp_path / "out" / "runs").runs()
    assert {(run.source.fold, run.validation) for run in runs if run.contender.label == "LightGBM"} == {
        (1, "clicks"),
        (3, "clicks"),
    }
    assert {run.validation for run in runs if run.contender.label == "Labeled"} == {"labels"}


def test_rankers_of_libraries_that_are_not_installed_are_left_out_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ultr.experiments.experiment.find_spec", lambda name: None)
    name = _spec(tmp_path, 'analysis = "table"', '[[methods]]\nlabel = "X"\nmethod = "xgboost"\n')
    said: list[str] = []
    with pytest.raises(OptionError, match="nothing is left to run"):
        reproduce(name, out=tmp_path / "out", say=said.append)
    assert said == [
        "X is left out, because its library is not installed: pip install '.[trees,xgboost]' in a checkout of ultr"
    ]


def test_the_code_and_the_data_are_in_the_name_of_a_run(
    done: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, out = done
    experiment = Experiment.of(read_spec(name), None, out / "runs")
    run = experiment.runs()[-1]
    key = experiment.store.key(run)
    assert experiment.store.key(replace(run, clicks="real")) != key
    simulation = run.simulation.model_copy(update={"impressions": 30_000})
    assert experiment.store.key(replace(run, simulation=simulation)) != key
    explicit = run.contender.model_copy(update={"options": {**run.contender.options, "combine": "product"}})
    assert experiment.store.key(replace(run, contender=explicit)) == key, "a default that is written out"
    monkeypatch.setattr("ultr.experiments.store.code_version", lambda: "other")
    assert experiment.store.key(run) != key


def test_comments_and_docstrings_are_no_other_code(tmp_path: Path) -> None:
    def statements(code: str) -> str:
        (tmp_path / "code.py").write_text(code)
        return _statements(tmp_path / "code.py")

    code = 'RATE = 0.1\n\ndef step(x):\n    if x:\n        return "a"\n    return RATE * x\n'
    documented = '"""A module."""\nRATE = 0.1  # small\n"""Of learning."""\n\n\ndef step(x):\n    """One."""\n'
    documented += '    if (\n        x\n    ):\n        return "a"\n    return RATE * x\n'
    assert statements(documented) == statements(code)
    assert statements(code.replace("0.1", "0.2")) != statements(code)
    assert statements(code.replace('"a"', '"b"')) != statements(code)


def test_the_code_of_a_click_model_from_outside_is_in_the_name_of_a_run(
    done: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, out = done
    install(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(CLICK_MODELS, "_members", dict(CLICK_MODELS._members))
    experiment = Experiment.of(read_spec(name), None, out / "runs")
    run = replace(experiment.runs()[-1], clicks="eager")
    key = experiment.store.key(run)
    assert experiment.store.key(run) == key
    (tmp_path / "eager_clicks" / "__init__.py").write_text(EAGER.replace("noise: float = 0.0", "noise: float = 0.1"))
    assert experiment.store.key(run) != key


def test_the_board_counts_what_is_done_running_and_left(done: tuple[str, Path]) -> None:
    name, out = done
    experiment = Experiment.of(read_spec(name), None, out / "runs")
    runs = experiment.runs()
    outcomes = [experiment.store.read(run) for run in runs[:3]]
    kept = [replace(outcome, seconds=10.0) for outcome in outcomes if outcome is not None]
    progress = ProgressTable(runs, kept, workers=2)
    assert progress.time_to_go() == f"{10 * (len(runs) - 3) / 2:.0f} s to go"
    progress.started(runs[3])
    console = Console(width=100, file=StringIO())
    console.print(progress.table())
    assert isinstance(console.file, StringIO)
    text = console.file.getvalue()
    assert f"3 of {len(runs)} runs done" in text
    rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.split()[:1] == ["SVM"]}
    assert rows["SVM"][0] == str(sum(run.contender.label == "SVM" for run in runs[:3]))
    assert ProgressTable(runs, [], workers=2).time_to_go() == "time to go not known yet"


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which several analyses share the runs of one ranker."""
    return tmp_path_factory.mktemp("vectors")


@pytest.mark.usefixtures("_here")
@pytest.mark.parametrize(("analysis", "figures"), [("embeddings", 1), ("projection", 1), ("dimension", 1)])
def test_the_figures_of_the_paper_are_drawn(vectors: Path, analysis: str, figures: int) -> None:
    name = _spec(vectors, f'analysis = "{analysis}"', VECTORS)
    findings, folder = reproduce(name, out=vectors / "out", workers=1)
    assert len(findings.figures) == figures == len(list(folder.glob("*.png"))) == len(list(folder.glob("*.svg")))
    assert findings.tables[0].rows


@pytest.mark.usefixtures("_here")
def test_the_base_vector_projects_as_the_ranker_does(vectors: Path) -> None:
    from ultr.methods.vector_objective import Embeddings

    name = _spec(vectors, 'analysis = "projection"', VECTORS)
    findings, folder = reproduce(name, out=vectors / "out", workers=1)
    experiment = Experiment.of(read_spec(name), None, folder.parent / "runs")
    outcome = experiment.outcomes(experiment.contenders()[0], "trust", "labels")[0]
    found = dict(zip(findings.numbers[0]["on"], findings.numbers[0]["mean"], strict=True))
    assert found["base vector"] == pytest.approx(np.nanmean(outcome.values[3]))
    assert list(found) == [*map(str, range(1, 11)), BASE, MEAN, PROBABLE, PRINCIPAL]
    ranker, test = load(outcome.model), outcome.run.source.read().test
    embeddings = Embeddings.of(ranker)
    assert embeddings is not None
    base = np.repeat(embeddings.base_vectors(test.features, test.offsets), test.lengths, axis=0)
    scores = (embeddings.relevance(test.features) * base).sum(axis=1)
    np.testing.assert_allclose(scores, ranker.score(test.features, test.offsets), rtol=1e-4, atol=1e-5)


def test_the_most_probable_position_is_the_one_that_candidates_like_these_were_shown_at() -> None:
    random = np.random.default_rng(0)
    # Documents of kind k stand at position k, nearly always; the third query has candidates of kinds 0, 0 and 2.
    kinds = np.tile([0, 1, 2], 40)
    log = ClickLog.of(
        features=np.eye(3)[kinds] + random.normal(0, 0.1, (120, 3)),
        documents=np.arange(120),
        offsets=np.arange(0, 121, 3),
        positions=np.tile([1, 2, 3], 40),
        clicks=np.ones(120),
        queries=np.arange(40),
    )
    judged = JudgedLists.of(features=np.eye(3)[[1, 2, 2, 0, 0, 2]], labels=np.ones(6), offsets=[0, 1, 3, 6])
    found = most_probable_positions(log, FeatureScaling.fit(log.features), judged)
    assert found.tolist() == [1, 2, 0]


def test_the_principal_axis_is_that_of_largest_variance_and_points_with_the_observations() -> None:
    points = np.array([[3.0, 0.1], [-3.0, -0.1], [0.0, 0.2], [0.0, -0.2]]) + 5
    axis = principal_axis(points, towards=np.array([-1.0, 0.5]))
    assert abs(axis[0]) > 0.99
    assert axis[0] < 0


def test_the_size_of_a_data_set_stands_beside_those_of_the_paper(tmp_path: Path) -> None:
    findings, _ = reproduce("data-set", out=tmp_path, data="letor-like=30")
    train = Source.parse("letor-like=30").read().train
    assert findings.numbers["training"] == (30, train.documents, len(train.feature_names), 5)
    rows = {row["part"]: row for row in findings.tables[0].rows}
    assert rows["paper, Yahoo!"]["documents per query"] == "24.38"
    assert rows["paper, Istella-S"]["documents per query"] == "103.32"
    assert rows["paper, TianGong-ST"]["documents per query"] == "96.79"
    assert findings.numbers["all, with a relevant document"][0] <= findings.numbers["all"][0]


def test_the_click_matrix_has_the_singular_values_of_the_paper(tmp_path: Path) -> None:
    findings = click_matrix(Experiment.of(read_spec("click-matrix"), None, tmp_path))
    values = {each["clicks"]: each["singular_values"] for each in findings.numbers}
    np.testing.assert_allclose(values["real"], [1.40, 0.15, 0.07, 0.06, 0.03], atol=0.005)
    assert np.count_nonzero(np.array(values["trust"]) > 1e-9) == 2
    assert np.count_nonzero(np.array(values["position-based"]) > 1e-9) == 1


def test_ranking_times_are_compared_with_the_first(tmp_path: Path) -> None:
    path = tmp_path / "time.toml"
    path.write_text(
        'title = "time"\nanalysis = "inference-time"\nrepetitions = 2\n[data.letor-like]\nqueries = 20\n'
        '[[methods]]\nlabel = "Scalar"\nmethod = "click"\noptions = { hidden = [8] }\n'
        '[[methods]]\nlabel = "V"\nmethod = "vectorization"\noptions = { hidden = [8] }\n'
    )
    findings, _ = reproduce(str(path), out=tmp_path / "out")
    assert [row["ranker"] for row in findings.tables[0].rows] == ["Scalar", "V"]
    assert findings.tables[0].rows[0]["to the first"] == "+0.0%"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mq20007=x", "did you mean 'mq2007'"),
        ("mq2007", "needs its folder"),
        ("letor-like=many", "takes a number of queries"),
    ],
)
def test_a_data_set_that_cannot_be_is_refused(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Source.parse(text)


def test_an_error_of_a_run_names_the_run(tmp_path: Path) -> None:
    methods = '[[methods]]\nlabel = "IPW"\nmethod = "inverse-propensity"\n'
    name = _spec(tmp_path, 'analysis = "table"', methods)
    with pytest.raises(DataError, match="IPW · trust clicks · by labels · seed 0: "):
        reproduce(name, out=tmp_path / "out", workers=1)
    assert not (tmp_path / "out" / "small").exists()

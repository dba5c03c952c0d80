from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.experiments.in_this_process import in_this_process

from ultr.bias import estimate_propensities
from ultr.evaluation import Candidates, click_fit, counterfactual_value
from ultr.experiments.experiment import Experiment
from ultr.experiments.model_selection import PAGES, QUERIES, RANDOM, ModelSelection, model_selection
from ultr.experiments.reproduce import reproduce
from ultr.experiments.run import data_of
from ultr.experiments.spec import read_spec
from ultr.methods import load
from ultr.methods.dimension import choose_dimension

SPEC = """
title = "small"
analysis = "selection"
clicks = ["position-based"]
validation = ["clicks"]
seeds = [0, 1]
[simulation]
impressions = 20_000
svm_share = 0.1
rankings = {}
noise = 0.5
[data.letor-like]
queries = 250
training = {{ hidden = [8], steps = 10, evaluate_every = 5, batch_size = 32 }}
[[methods]]
label = "Click"
method = "click"
[[methods]]
label = "EM"
method = "regression-em"
[[methods]]
label = "V"
method = "vectorization"
grid = {{ dimension = [1, 2, 3] }}
[[methods]]
label = "Auto"
method = "auto"
"""


def _write(folder: Path, rankings: int = 4) -> str:
    path = folder / "small.toml"
    path.write_text(SPEC.format(rankings))
    return str(path)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Experiment, Path]:
    folder = tmp_path_factory.mktemp("selection")
    name = _write(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ultr.experiments.model_selection.RESAMPLES", 20)
        in_this_process(patch)
        reproduce(name, out=folder / "out", workers=1)
    return Experiment.of(read_spec(name), None, folder / "out" / "runs"), folder / "out" / "small"


@pytest.fixture(scope="module")
def selected(done: tuple[Experiment, Path]) -> ModelSelection:
    return model_selection([done[0].outcomes(each, "position-based", "clicks")[0] for each in done[0].contenders()])


SELECTION = ModelSelection(
    quality={"a": 0.5, "b": 0.7, "c": 0.6},
    criteria={"likelihood": {"a": 3.0, "b": 1.0, "c": 2.0}},
    chosen={"rule": "c"},
    verdicts={},
    rank_p_value=None,
    blended={"Auto": 0.75},
)


def test_regret_is_what_the_best_candidate_has_over_the_chosen_one() -> None:
    regrets = SELECTION.regrets(["a", "b", "c"])
    expected = {"likelihood": 0.2, "rule": 0.1, "always a": 0.2, "always b": 0, "always c": 0.1, RANDOM: 0.1}
    expected["Auto"] = -0.05  # It is no candidate, and better than all of them.
    assert regrets == pytest.approx(expected)
    # Among fewer candidates the best is another one, and a rule that chose none of them is silent.
    assert SELECTION.regrets(["b", "c"]) == pytest.approx(
        {"likelihood": 0.1, "rule": 0.1, "always b": 0, "always c": 0.1, RANDOM: 0.05, "Auto": -0.05}
    )
    assert "rule" not in SELECTION.regrets(["a", "b"])


def test_every_criterion_is_that_of_the_kept_models_on_what_they_did_not_learn_from(
    done: tuple[Experiment, Path], selected: ModelSelection
) -> None:
    experiment = done[0]
    outcomes = [experiment.outcomes(each, "position-based", "clicks")[0] for each in experiment.contenders()]
    shared = data_of(outcomes[0].run)
    trained, queries = shared.split()
    assert selected.blended.keys() == {"Auto"}
    outcomes = [each for each in outcomes if each.run.contender.label != "Auto"]
    rankers = {outcome.run.contender.label: load(outcome.model) for outcome in outcomes}
    assert selected.quality.keys() == rankers.keys()
    assert {ranker.data_fingerprint for ranker in rankers.values()} == {trained.fingerprint()}
    for label, ranker in rankers.items():
        fit = click_fit(ranker, queries)
        assert selected.criteria[f"likelihood in lists, {QUERIES}"][label] == pytest.approx(fit.list_log_likelihood)
        assert selected.criteria[f"likelihood of clicks and skips, {QUERIES}"][label] == pytest.approx(
            fit.log_likelihood
        )
        theta, pool = estimate_propensities(shared.log), Candidates.shown(queries)
        value = counterfactual_value(ranker, queries, propensities=theta, candidates=pool)
        assert selected.criteria[f"value (ips), {QUERIES}"][label] == pytest.approx(value.value)
    shares = {length: rankers[f"V d={length}"].click_shares for length in (1, 2, 3)}
    assert selected.chosen[f'dimension="auto", {QUERIES}'] == f"V d={choose_dimension(shares, queries)[0]}"
    assert selected.rank_p_value is not None
    assert {name.rpartition(", ")[2] for name in selected.criteria} == {QUERIES, PAGES}


def test_the_better_of_two_by_labels_is_what_verdicts_are_held_against(selected: ModelSelection) -> None:
    pairs = {name: len(found) for name, found in selected.verdicts.items()}
    assert set(pairs) == {"likelihood of clicks and skips", "likelihood in lists", "value (ips)"}
    # Click, EM and the Vectorization of the default dimension: at most three pairs.
    assert len(set(pairs.values())) == 1
    assert max(pairs.values()) <= 3


def test_the_tables_have_methods_and_dimensions(done: tuple[Experiment, Path]) -> None:
    text = (done[1] / "tables.md").read_text()
    for part in ("which method", "which dimension", "| always V d=3 |", "| random choice |", "which of two methods"):
        assert part in text
    content = json.loads((done[1] / "results.json").read_text())
    methods, dimensions = content["contests"]
    assert methods["candidates"] == ["Click", "EM", "V d=3"]
    assert dimensions["candidates"] == ["V d=1", "V d=2", "V d=3"]
    regrets = methods["regrets"]["position-based"]
    assert len(regrets) == 2
    for quality, found in zip(content["qualities"]["position-based"], regrets, strict=True):
        best = max(quality[label] for label in methods["candidates"])
        assert found["always Click"] == pytest.approx(best - quality["Click"])
        assert min(regret for way, regret in found.items() if way != "Auto") == 0
        assert found["Auto"] == pytest.approx(best - quality["Auto"])


def test_without_swaps_there_are_likelihoods_but_no_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_this_process(monkeypatch)
    _, folder = reproduce(_write(tmp_path, rankings=1), out=tmp_path / "out", seeds=[0], workers=1)
    text = (folder / "tables.md").read_text()
    assert "likelihood in lists, pages" in text
    assert "value (ips)" not in text
    assert "0 of 0" in text

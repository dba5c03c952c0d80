from __future__ import annotations

from pathlib import Path

import pytest

from ultr.errors import DataError, OptionError
from ultr.experiments.experiment import Experiment
from ultr.experiments.spec import read_spec, shipped
from ultr.methods import METHODS, Vectorization
from ultr.methods.flat_options import estimator
from ultr.relevance.mlp import MLP

WHOLE = """
title = "mine"
analysis = "table"
clicks = ["trust"]

[simulation]
impressions = 1_000

[training]
hidden = [8]

[data.letor-like]
queries = 50

[[methods]]
label = "Click"
method = "click"

[[methods]]
label = "V"
method = "vectorization"
grid = { dimension = [1, 2], schedule = ["sequential", "joint"] }

[quick]
seeds = [7]
data.letor-like.queries = 20
simulation = { noise = 0.5 }
"""


def _write(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", list(shipped()))
def test_every_shipped_experiment_is_valid(name: str) -> None:
    spec = read_spec(name)
    assert spec.title
    assert spec.contenders() or spec.analysis in ("click-matrix", "data-set")


def test_the_experiments_of_the_paper_are_shipped() -> None:
    wanted = {"real-clicks", "trust-bias", "dimension", "embeddings", "projection", "inference-time", "click-matrix"}
    assert wanted <= set(shipped())


def test_a_dimension_may_be_chosen_but_not_drawn_as_a_curve(tmp_path: Path) -> None:
    path = _write(tmp_path, WHOLE.replace("dimension = [1, 2]", 'dimension = [1, "auto"]'))
    assert "V d=auto schedule=joint" in [contender.label for contender in read_spec(path).contenders()]
    with pytest.raises(DataError, match="draws a curve over numbers"):
        read_spec(path, changes=['analysis = "dimension"'])


def test_a_grid_is_one_ranker_for_each_combination(tmp_path: Path) -> None:
    labels = [contender.label for contender in read_spec(_write(tmp_path, WHOLE)).contenders()]
    assert labels == [
        "Click",
        *(f"V d={dimension} schedule={schedule}" for dimension in (1, 2) for schedule in ("sequential", "joint")),
    ]


def test_quick_changes_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    path = _write(tmp_path, WHOLE)
    whole, quick = read_spec(path), read_spec(path, quick=True)
    assert (quick.seeds, quick.data["letor-like"].queries, quick.simulation.noise) == ((7,), 20, 0.5)
    assert quick.simulation.impressions == whole.simulation.impressions == 1_000
    assert quick.methods == whole.methods


PAPER = ["real-clicks", "trust-bias", "dimension", "embeddings", "projection"]


@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize(("data", "steps"), [("letor-like", 15_000), ("mq2007", 15_000), ("istella-s", 30_000)])
def test_as_published_every_network_learns_by_the_recipe_of_the_paper(
    name: str, data: str, steps: int, tmp_path: Path
) -> None:
    spec = read_spec(name, as_published=True)
    assert (spec.seeds, spec.validation) == (tuple(range(8)), ("labels",))
    experiment = Experiment.of(spec, "letor-like" if data == "letor-like" else f"{data}={tmp_path}", tmp_path)
    for contender in experiment.contenders():
        fitted = estimator(METHODS[contender.method], contender.options)
        training, relevance = fitted.relevance.training(), fitted.relevance
        assert isinstance(relevance, MLP)
        assert (relevance.hidden, training.steps, training.batch_size) == ((512, 256, 128), steps, 256)
        assert (training.optimizer, training.learning_rate) == ("adagrad", 0.05)
        assert training.sessions == (contender.method != "label")
        if isinstance(fitted, Vectorization):
            assert (fitted.base_hidden, fitted.base_penalty, fitted.schedule) == ((256, 64), 0.001, "sequential")


def test_as_published_the_rankers_are_those_of_the_paper() -> None:
    for name in ("real-clicks", "trust-bias"):
        spec = read_spec(name, as_published=True)
        assert [label for method in spec.taking_part() for label in method.shown()] == list(spec.paper["yahoo"])
        assert [each.options["dimension"] for each in spec.contenders()[-5:]] == [1, 2, 3, 4, 5]


def test_as_published_can_be_shortened_but_not_by_quick() -> None:
    spec = read_spec("real-clicks", as_published=True, changes=["training.steps=3", 'only=["Click"]'])
    assert [each.with_shared(spec.training).options["steps"] for each in spec.contenders()] == [3]
    with pytest.raises(OptionError, match="shorten it with --set"):
        read_spec("real-clicks", as_published=True, quick=True)


def test_a_method_is_changed_by_its_label(tmp_path: Path) -> None:
    path = _write(tmp_path, WHOLE)
    changed = read_spec(path, changes=["methods.V = { grid.dimension = [3], select = true }"])
    assert [each.options["dimension"] for each in changed.contenders()[1:]] == [3, 3]
    assert changed.methods[1].shown() == ["V"]
    with pytest.raises(OptionError, match=r"a label of methods must be one of .*did you mean 'V'"):
        read_spec(path, changes=["methods.v.options.dimension = 3"])


def test_any_key_can_be_changed(tmp_path: Path) -> None:
    path = _write(tmp_path, WHOLE)
    changed = read_spec(
        path, quick=True, changes=["simulation.impressions = 5_000", "training.hidden=[4]", "seeds=[1]"]
    )
    assert (changed.simulation.impressions, changed.simulation.noise, changed.seeds) == (5_000, 0.5, (1,))
    assert changed.training == {"hidden": [4]}
    with pytest.raises(DataError, match="did you mean 'impressions'"):
        read_spec(path, changes=["simulation.impresions=3"])
    with pytest.raises(OptionError, match="is no line of TOML"):
        read_spec(path, changes=["analysis=chair"])


def test_an_experiment_without_a_quick_form_says_so(tmp_path: Path) -> None:
    path = _write(tmp_path, WHOLE[: WHOLE.index("[quick]")])
    with pytest.raises(OptionError, match=r"no table \[quick\]"):
        read_spec(path, quick=True)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("impressions =", "impresions =", r"at simulation: a key must be one of .*did you mean 'impressions'"),
        ("analysis =", "analyses =", "did you mean 'analysis'"),
        ("queries = 50", "querys = 50", "did you mean 'queries'"),
        ("label = ", "lable = ", "did you mean 'label'"),
        ('method = "click"', 'method = "clik"', "did you mean 'click'"),
        ('clicks = ["trust"]', 'clicks = ["thrust"]', "did you mean 'trust'"),
        ("data.letor-like.queries = 20", "data.leter-like.queries = 20", "did you mean 'letor-like'"),
        ("hidden = [8]", "hiden = [8]", "did you mean 'hidden'"),
        ("hidden = [8]", "hidden = []", "hidden must be a tuple of layer sizes"),
        ("dimension = [1, 2]", "dimention = [1, 2]", "did you mean 'dimension'"),
        ("dimension = [1, 2]", "dimension = [0]", "dimension must be an integer of at least 1"),
        ("impressions = 1_000", "impressions = 0", "greater than or equal to 1"),
        (
            '[[methods]]\nlabel = "V"',
            '[[methods]]\nlabel = "Click"\nmethod = "dla"\n[[methods]]\nlabel = "V"',
            "labels of methods has 'Click' more than once",
        ),
        ('clicks = ["trust"]', 'clicks = ["trust"]\nseeds = [1, 1]', "seeds has 1 more than once"),
        ("queries = 50", "queries = 50\nfolds = [2, 2]", "folds of letor-like has 2 more than once"),
        ('clicks = ["trust"]', 'clicks = ["trust"]\nseeds = []', "at least 1 item"),
        ('clicks = ["trust"]', 'clicks = ["trust"]\nmeasures = ["nDGC@10"]', "did you mean 'nDCG'"),
        ("hidden = [8]", "seed = 3", "the seeds of all methods stand in seeds"),
        ("dimension = [1, 2]", "dimension = []", "grid needs values for dimension"),
        ("noise = 0.5", "noise = inf", "finite number"),
        ('analysis = "table"', 'analysis = "embeddings"', "does not go with the method click"),
        ('analysis = "table"', 'analysis = "selection"', "needs validation = "),
        (
            'analysis = "table"\nclicks = ["trust"]',
            'analysis = "selection"\nvalidation = ["clicks"]\n[[methods]]\nlabel = "L"\nmethod = "label"',
            "which label does not predict",
        ),
        ('analysis = "table"', 'analysis = "projection"', "does not go with the method click"),
        ('method = "click"', 'method = "xgboost"\noptions = { rounds = "many" }', "rounds must be an integer"),
        (
            'method = "click"',
            'method = "xgboost"\noptions = { hidden = [8] }',
            "option of XGBoostRanker must be one of",
        ),
        ('method = "click"', 'method = "xgboost-unbiased"', "method must be one of .*did you mean 'xgboost'"),
        (
            'analysis = "table"\nclicks = ["trust"]',
            'analysis = "inference-time"\n[[methods]]\nlabel = "X"\nmethod = "xgboost"',
            "does not go with the method xgboost",
        ),
        ("hidden = [8]", 'learning_rate = 0.1\n[[methods]]\nlabel = "X"\nmethod = "xgboost"', "same to mlp and trees"),
        ("hidden = [8]", 'sessions = 0\n[[methods]]\nlabel = "X"\nmethod = "xgboost"', "sessions must be an integer"),
        ('method = "click"', 'method = "ranking-svm"\noptions = { steps = 3 }', "takes no options"),
        ('method = "click"', 'method = "click"\nshown_only = true', "shown_only goes with the method label"),
        ('method = "click"', 'method = "click"\nrandomised = true', "randomised goes with"),
        ('clicks = ["trust"]', 'clicks = ["trust"]\nonly = ["Clik"]', "did you mean 'Click'"),
        ('method = "click"', 'method = "click"\nreadout = "log-rate"', "readout goes with"),
        ("[training]", "[paper.yaho]\n[training]", "did you mean 'yahoo'"),
        ("[training]", "[paper.yahoo]\nClik = [[0.1, 0.1]]\n[training]", "did you mean 'Click'"),
        ("[data.letor-like]", "[data.mq2007]\nqueries = 20\n[data.letor-like]", "generated for letor-like alone"),
        ('analysis = "table"', 'analysis = "chair"', "'table', 'dimension'"),
        ('title = "mine"', 'title = "mine', "not valid TOML"),
        ("[training]", "[paper.yahoo]\nClick = [[0.1, 0.1]]\n[training]", "but there are 4 measures"),
    ],
)
def test_a_mistake_is_named_with_the_nearest_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in WHOLE
    path = _write(tmp_path, WHOLE.replace(old, new, 1))
    with pytest.raises(DataError, match=message):
        read_spec(path, quick=True)


def test_the_specs_behind_the_documents_are_valid() -> None:
    specs = list((Path(__file__).parents[2] / "docs" / "specs").glob("*.toml"))
    assert specs
    for path in specs:
        assert read_spec(str(path)).contenders()


def test_the_example_in_the_documents_is_valid(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reproduce.md").read_text()
    example = page.split('```toml title="mine.toml"\n')[1].split("```")[0]
    quick = read_spec(_write(tmp_path, example), quick=True)
    assert [contender.label for contender in quick.contenders()][-1] == "Vectorization d=3"
    assert quick.data["letor-like"].queries == 2_000


def test_pairs_cannot_be_left_uncounted_where_they_are_needed(tmp_path: Path) -> None:
    text = WHOLE.replace('method = "click"', 'method = "pair-debias"')
    assert read_spec(_write(tmp_path, text)).simulation.pairs
    with pytest.raises(DataError, match="pair-debias needs pairs = true"):
        read_spec(_write(tmp_path, text.replace("impressions =", "pairs = false\nimpressions =")))
    sessions = text.replace("impressions =", "pairs = false\nimpressions =").replace(
        "[training]", '[training]\nrecipe="paper"'
    )
    assert not read_spec(_write(tmp_path, sessions)).simulation.pairs


def test_measures_are_named_as_they_are_printed(tmp_path: Path) -> None:
    text = WHOLE.replace('clicks = ["trust"]', 'clicks = ["trust"]\nmeasures = ["ndcg@10"]')
    assert read_spec(_write(tmp_path, text)).measures == ("nDCG@10",)


def test_other_seeds_must_be_different(tmp_path: Path) -> None:
    spec = read_spec(_write(tmp_path, WHOLE))
    assert spec.with_seeds([4, 5]).seeds == (4, 5)
    with pytest.raises(OptionError, match="more than once"):
        spec.with_seeds([4, 4])
    with pytest.raises(OptionError, match="at least one seed"):
        spec.with_seeds([])


def test_a_missing_file_and_an_unknown_name_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read"):
        read_spec(str(tmp_path / "nowhere.toml"))
    with pytest.raises(OptionError, match="did you mean 'real-clicks'"):
        read_spec("real-click")

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
import torch

from ultr.arrays import Floats, Integers
from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.datasets.splits import Splits
from ultr.errors import DataError, ExportError, OptionError
from ultr.exporting import Export, Parity, export, export_forest
from ultr.exporting.parity import parity
from ultr.methods import METHODS, ClickBaseline, Vectorization
from ultr.methods.estimator import Estimator
from ultr.relevance import MLP, Preprocessing, Trees
from ultr.scoring import Scorer
from ultr.testing.methods import REGIONS, mixed

pytestmark = pytest.mark.usefixtures("_operators_read_once")
RELEVANCE = MLP(hidden=(16, 8), steps=40, batch_size=32)
SMALL: dict[str, Any] = {"relevance": RELEVANCE, "evaluate_every": 10}
Doubles = npt.NDArray[np.float64]
WAYS: dict[str, dict[str, Any]] = {
    "lists": {"form": "lists"},
    "flat": {"form": "flat"},
    "pointwise": {"pointwise": True},
}


@pytest.fixture(scope="module")
def ranker(small_log: ClickLog) -> Vectorization:
    return Vectorization(dimension=3, base_hidden=(8,), **SMALL).fit(small_log)


@pytest.fixture(scope="module")
def clicked(small_log: ClickLog) -> ClickBaseline:
    """A ranker with one score for each document, whatever its list."""
    return ClickBaseline(**SMALL).fit(small_log)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exported")


@pytest.fixture(scope="module")
def exports(ranker: Vectorization, small: Splits, folder: Path) -> dict[str, Export]:
    return {name: export(ranker, folder / f"{name}.onnx", lists=small.test, **way) for name, way in WAYS.items()}


@pytest.fixture(scope="module")
def files(exports: dict[str, Export], folder: Path) -> dict[str, Path]:
    return {name: folder / f"{name}.onnx" for name in exports}


def _network(weights: dict[str, torch.Tensor], name: str, inputs: Doubles, *, normalise: bool) -> Doubles:
    """A multi-layer perceptron by its definition, in double precision."""
    place = f"models.{name}.layers.linear"
    layers = sorted({key.split(".")[4] for key in weights if key.startswith(place)}, key=int)
    values = inputs
    for number in layers:
        if number != "0":
            values = np.where(values > 0, values, np.expm1(np.minimum(values, 0)))
            values = _normalised(values) if normalise else values
        weight, bias = (weights[f"{place}.{number}.{part}"].double().numpy() for part in ("weight", "bias"))
        values = values @ weight.T + bias
    return values


def _normalised(values: Doubles) -> Doubles:
    centred = values - values.mean(axis=1, keepdims=True)
    scaled: Doubles = centred / np.sqrt(centred.var(axis=1, keepdims=True) + 1e-5)
    return scaled


def _relevance_and_base(ranker: Vectorization, features: npt.NDArray[Any], offsets: Any) -> tuple[Doubles, Doubles]:
    """r(x) of each candidate and the base vector of each query, from the formulas of the paper."""
    scaling = ranker.ranker_.scaling
    low, high = (values.astype(np.float64) for values in (scaling.minimum, scaling.maximum))
    spread = np.where(high > low, high - low, np.inf)
    inputs = _normalised((features - (low + high) / 2) * 2 / spread)
    weights = ranker.ranker_.model.state_dict()
    relevance = _network(weights, "relevance", inputs, normalise=True)
    mean, log_variance = np.split(_network(weights, "base", inputs, normalise=False), 2, axis=1)
    centre, unit = (weights[f"objective.{name}"].double().numpy() for name in ("centre", "spread"))
    mean, precision = centre + unit * mean, np.exp(-log_variance) / unit**2
    bases = [(mean[a:b] * precision[a:b]).sum(axis=0) / precision[a:b].sum(axis=0) for a, b in pairwise(offsets)]
    return relevance, np.array(bases)


@pytest.mark.parametrize("name", ["lists", "flat"])
def test_a_graph_projects_on_the_base_vector_of_the_paper(
    name: str, files: dict[str, Path], ranker: Vectorization, small: Splits
) -> None:
    relevance, bases = _relevance_and_base(ranker, small.test.features, small.test.offsets)
    wanted = (relevance * bases[ragged.list_numbers(small.test.offsets)]).sum(axis=1)
    assert Scorer.load(files[name]).score(small.test.features, small.test.offsets) == pytest.approx(wanted, abs=1e-4)


def test_pointwise_projects_on_the_mean_base_vector_of_training_lists(
    files: dict[str, Path], ranker: Vectorization, small: Splits
) -> None:
    sample = ranker.ranker_.sample
    assert sample is not None
    _, bases = _relevance_and_base(ranker, sample.features, sample.offsets)
    relevance, _ = _relevance_and_base(ranker, small.test.features, small.test.offsets)
    wanted = relevance @ bases.mean(axis=0)
    scorer = Scorer.load(files["pointwise"])
    assert scorer.score(small.test.features, small.test.offsets) == pytest.approx(wanted, abs=1e-4)
    assert scorer.score(small.test.features[:1]) == pytest.approx(wanted[:1], abs=1e-4)


@pytest.mark.parametrize("name", WAYS)
def test_what_is_missing_counts_as_the_median(name: str, files: dict[str, Path], small: Splits) -> None:
    scorer = Scorer.load(files[name])
    features, offsets = small.test.features[:40].copy(), np.array([0, 15, 40])
    filled = features.copy()
    for row, column, blank in ((0, 0, np.nan), (3, 5, np.inf), (20, 63, -np.inf)):
        features[row, column] = blank
        filled[row, column] = scorer.card.typical[column]
    assert np.array_equal(scorer.score(features, offsets), scorer.score(filled, offsets))


def test_the_typical_value_is_the_median_of_the_training_documents(files: dict[str, Path], small_log: ClickLog) -> None:
    typical = Scorer.load(files["flat"]).card.typical
    assert typical == pytest.approx(np.median(small_log.features, axis=0).tolist())


@pytest.mark.parametrize("lengths", [[1], [1, 1, 1], [0, 3, 0, 2, 0], [200], [2, 90, 1]])
def test_lists_of_all_sizes_are_scored(lengths: list[int], files: dict[str, Path], ranker: Vectorization) -> None:
    features = np.random.default_rng(0).normal(size=(sum(lengths), 64)).astype(np.float32)
    offsets = ragged.from_lengths(np.array(lengths))
    wanted = ranker.score(features, offsets)
    for name in ("lists", "flat"):
        assert Scorer.load(files[name]).score(features, offsets) == pytest.approx(wanted, abs=1e-4)


def test_nothing_to_score_is_nothing(files: dict[str, Path]) -> None:
    for path in files.values():
        assert len(Scorer.load(path).score(np.empty((0, 64), dtype=np.float32), np.array([0, 0]))) == 0


def test_padding_changes_nothing_and_sorts_last(files: dict[str, Path]) -> None:
    import onnxruntime

    random = np.random.default_rng(0)
    session = onnxruntime.InferenceSession(files["lists"])
    features = random.normal(size=(2, 5, 64)).astype(np.float32)
    mask = np.array([[True] * 5, [True, True, False, False, False]])
    (scores,) = session.run(None, {"features": features, "mask": mask})
    garbage = np.where(mask[..., None], features, random.choice([np.nan, np.inf, 1e30], size=features.shape))
    (others,) = session.run(None, {"features": garbage.astype(np.float32), "mask": mask})
    assert np.array_equal(scores, others)
    assert np.isneginf(scores[~mask]).all()
    assert np.isfinite(scores[mask]).all()
    (alone,) = session.run(None, {"features": features[1:, :2], "mask": mask[1:, :2]})
    assert scores[1, :2] == pytest.approx(alone[0], abs=1e-5)


@pytest.mark.filterwarnings("ignore::ultr.errors.UltrWarning")
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_method_can_be_exported(
    method: type[Estimator], small: Splits, pair_log: ClickLog, tmp_path: Path
) -> None:
    """With a categorical feature, one that is missing at times, and numbers."""
    relevance = replace(RELEVANCE, steps=5) if issubclass(MLP, method.takes) else Trees(rounds=5)
    data, test = mixed(small.train) if method.learns_from is JudgedLists else mixed(pair_log), mixed(small.test)
    fitted = method(relevance=relevance).fit(data)
    wanted = fitted.score(test.features, test.offsets)
    written = export(fitted, tmp_path / "model.onnx", form="flat", lists=test)
    assert written.parity.documents == test.documents
    assert written.parity.kendall_tau == pytest.approx(1, abs=1e-3)
    scorer = Scorer.load(tmp_path / "model.onnx")
    assert scorer.score(test.features, test.offsets) == pytest.approx(wanted, abs=1e-4)
    card = scorer.card
    assert (card.method, card.feature_names) == (method.name, list(test.feature_names))
    assert card.categories == ({} if isinstance(data, JudgedLists) else {test.feature_names[0]: REGIONS})
    assert card.missing == {test.feature_names[1]: np.isnan(data.features[:, 1]).mean()}


def test_an_engine_gets_the_codes_of_categories_in_a_file_beside_the_trees(pair_log: ClickLog, tmp_path: Path) -> None:
    log = mixed(pair_log)
    fitted = ClickBaseline(relevance=Trees(rounds=2)).fit(log)
    name, path = log.feature_names[0], tmp_path / "model.json"
    written = export_forest(fitted, path, to="lightgbm", feature_map={name: "region"})
    assert written.categories == f"{path}.categories.json"
    wanted = {"region": {"codes": {value: place for place, value in enumerate(REGIONS)}, "never seen": 4}}
    assert json.loads(Path(written.categories).read_text()) == wanted
    path.unlink()
    with pytest.raises(OptionError, match=r"categories\.json exists"):
        export_forest(fitted, path, to="lightgbm")
    assert not path.exists()
    without = ClickBaseline(relevance=Trees(rounds=2)).fit(pair_log)
    assert export_forest(without, path, to="lightgbm").categories is None


def test_a_scalar_ranker_costs_nothing_to_be_pointwise(clicked: ClickBaseline, tmp_path: Path) -> None:
    written = export(clicked, tmp_path / "model.onnx", pointwise=True)
    assert written.cost is not None
    assert written.cost.exported == pytest.approx(written.cost.model, abs=1e-6)


def test_the_cost_of_being_pointwise_is_measured_on_the_lists_given(exports: dict[str, Export], small: Splits) -> None:
    cost = exports["pointwise"].cost
    assert cost is not None
    assert cost.queries == small.test.with_relevant().queries
    assert cost.change.difference == pytest.approx(cost.exported - cost.model)
    assert exports["lists"].cost is None


def test_few_features_are_not_normalised_in_the_graph_either(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    lists = JudgedLists.of(
        features=random.normal(size=(60, 3)), labels=random.integers(3, size=60), offsets=range(0, 61, 6)
    )
    fitted = METHODS["label"](**SMALL).fit(lists)
    export(fitted, tmp_path / "model.onnx")
    found = Scorer.load(tmp_path / "model.onnx").score(lists.features, lists.offsets)
    assert found == pytest.approx(fitted.score(lists.features, lists.offsets), abs=1e-4)


def test_a_graph_that_disagrees_is_not_written(
    clicked: ClickBaseline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(self: Preprocessing, features: torch.Tensor) -> torch.Tensor:
        return features * self.factor

    monkeypatch.setattr(Preprocessing, "forward", wrong)
    with pytest.raises(ExportError, match="disagrees with the model"):
        export(clicked, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "change",
    [
        {"largest_difference": 0.01},
        {"kendall_tau": 0.9},
        {"missing_difference": 0.01},
        {"largest_difference": float("nan")},
        {"kendall_tau": float("nan")},
    ],
)
def test_what_is_too_far_apart_disagrees(change: dict[str, float]) -> None:
    alike = {"largest_difference": 1e-6, "spread": 1.0, "size": 1.0, "kendall_tau": 1.0, "missing_difference": 1e-6}
    Parity(queries=1, documents=2, **alike).check()
    with pytest.raises(ExportError):
        Parity(queries=1, documents=2, **(alike | change)).check()


@pytest.mark.parametrize(("shift", "agrees"), [(1e-6, True), (1e-2, False)])
def test_equal_candidates_may_change_places_by_rounding_alone(shift: float, *, agrees: bool) -> None:
    class Sum:
        def __init__(self, shift: float) -> None:
            self.shift = shift

        def score(self, features: Floats, offsets: Integers) -> Floats:
            odd = np.arange(len(features), dtype=np.float32) % 2
            scores: Floats = np.nan_to_num(features[:, 0]) + np.float32(self.shift) * odd
            return scores

    twins = np.repeat(np.arange(5.0, dtype=np.float32), 2)[:, None]
    lists = JudgedLists(
        features=twins,
        labels=np.zeros(10, np.int64),
        offsets=np.array([0, 10]),
        query_ids=np.array(["q"]),
        feature_names=("x",),
        max_label=1,
    )
    found = parity(Sum(shift), Sum(-shift), lists)
    assert (found.kendall_tau == 1) is agrees
    with nullcontext() if agrees else pytest.raises(ExportError):
        found.check()


@pytest.mark.parametrize("name", WAYS)
def test_the_file_is_valid_and_holds_nothing_of_this_machine(name: str, files: dict[str, Path]) -> None:
    model = onnx.load(files[name])
    onnx.checker.check_model(model, full_check=True)
    assert model.producer_name == "ultr"
    content = files[name].read_bytes()
    for trace in (b".py", b"site-packages", str(Path.home()).encode(), str(Path(__file__).parents[2]).encode()):
        assert trace not in content
    assert [each.name for each in model.graph.output] == ["scores"]
    assert model.graph.output[0].type.tensor_type.shape.dim[-1].dim_param == "documents"


def test_the_card_names_the_model_folder_it_came_from(
    ranker: Vectorization, files: dict[str, Path], tmp_path: Path
) -> None:
    from ultr.methods.model_file import load_manifest

    ranker.save(tmp_path / "model")
    manifest = load_manifest(tmp_path / "model")
    card = Scorer.load(files["lists"]).card
    assert (card.model_digest, card.data_fingerprint) == (manifest.weights_digest, ranker.ranker_.data_fingerprint)


def test_a_ranker_exports_itself_and_the_same_model_gives_the_same_file(
    ranker: Vectorization, files: dict[str, Path], tmp_path: Path
) -> None:
    written = ranker.ranker_.export(tmp_path / "own.onnx", form="flat")
    assert written.card.method == "vectorization"
    assert (tmp_path / "own.onnx").read_bytes() == files["flat"].read_bytes()


def test_a_file_is_not_overwritten_unasked(ranker: Vectorization, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_text("mine")
    with pytest.raises(OptionError, match="exists"):
        export(ranker, path)
    assert path.read_text() == "mine"


def test_a_model_without_sample_asks_for_candidates(clicked: ClickBaseline, tmp_path: Path) -> None:
    ranker = replace(clicked.ranker_, sample=None)
    with pytest.raises(OptionError, match="give some"):
        export(ranker, tmp_path / "model.onnx")


def test_a_single_candidate_is_enough_to_check_on(clicked: ClickBaseline, small: Splits, tmp_path: Path) -> None:
    one = small.test.select(np.arange(1))
    lists = JudgedLists.of(features=one.features[:1], labels=[1], offsets=[0, 1], feature_names=one.feature_names)
    export(clicked, tmp_path / "model.onnx", lists=lists)


def test_candidates_of_other_data_are_refused(ranker: Vectorization, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="knows 64 features"):
        export(
            ranker, tmp_path / "m.onnx", lists=JudgedLists.of(features=np.ones((2, 3)), labels=[0, 1], offsets=[0, 2])
        )


def test_an_exported_ranker_scores_without_torch(files: dict[str, Path]) -> None:
    code = (
        "import sys\nfor name in ('torch', 'sklearn', 'matplotlib', 'pandas', 'onnx'): sys.modules[name] = None\n"
        "import numpy as np\nfrom ultr.scoring import Scorer\n"
        f"print(*Scorer.load({str(files['flat'])!r}).score(np.ones((3, 64), dtype=np.float32)))"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert len(set(printed.split())) == 1

"""Forests and networks that the scores of another ranker have taught."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.cli.console import ultr
from torch import Tensor

from ultr.cli.options import read_part
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.datasets.splits import Splits
from ultr.errors import DataError, OptionError
from ultr.evaluation.unseen_part import unseen_part
from ultr.exporting import Distillation, distil, export_forest
from ultr.methods import ClickBaseline, Vectorization, distilled, load
from ultr.metrics import kendall_tau
from ultr.relevance import MLP, Documents, Trees
from ultr.relevance.trees import BoostedTrees
from ultr.scoring.forest import Forest
from ultr.train.ranking_model import RankingModel

SMALL = Trees(rounds=20, leaves=7, fewest_documents=5)


@pytest.fixture(scope="module")
def network(small_log: ClickLog) -> Vectorization:
    """A ranker whose scores depend on the list."""
    return Vectorization(dimension=2, base_hidden=(4,), relevance=MLP(hidden=(8,), steps=40)).fit(small_log)


@pytest.fixture(scope="module")
def made(network: Vectorization, small_log: ClickLog) -> Distillation:
    return distil(network, small_log, relevance=SMALL)


def _forest(made: Distillation) -> Forest:
    model = made.ranker.model.by_name["relevance"]
    assert isinstance(model, BoostedTrees)
    return model.forest


def test_a_forest_orders_as_the_network_does(network: Vectorization, small: Splits, made: Distillation) -> None:
    lists = small.test
    scores, others = (each.score(lists.features, lists.offsets) for each in (network, made.ranker))
    tau = np.nanmean(kendall_tau(scores, others, lists.offsets))
    assert tau > 0.5
    more = distil(network, small.train, relevance=replace(SMALL, rounds=100))
    others = more.ranker.score(lists.features, lists.offsets)
    assert np.nanmean(kendall_tau(scores, others, lists.offsets)) > tau


@pytest.mark.filterwarnings("ignore::ultr.errors.UltrWarning")
def test_a_forest_learns_categories_and_what_is_missing_from_a_network_that_knows_them() -> None:
    random = np.random.default_rng(0)
    brand, price = random.integers(4, size=1800), random.normal(size=1800)
    gap = random.random(1800) < 0.3
    log = ClickLog.of(
        features=np.column_stack([brand, np.where(gap, np.nan, price)]),
        documents=np.arange(1800),
        offsets=np.arange(0, 1801, 6),
        clicks=random.random(1800) < np.array([0.2, 0.6, 0.1, 0.5])[brand] + 0.3 * gap,
        feature_names=["brand", "price"],
        categories={"brand": ("a", "b", "c", "d")},
    )
    network = ClickBaseline(relevance=MLP(hidden=(8,), steps=200)).fit(log).ranker_
    forest = distil(network, log, relevance=replace(SMALL, rounds=60)).ranker
    assert forest.categories == network.categories
    documents = np.array([[code, value] for code in (0, 1, 2, 3) for value in (0.0, np.nan)])
    taught, wanted = (each.score(documents) - each.score(documents).mean() for each in (forest, network))
    assert np.corrcoef(taught, wanted)[0, 1] > 0.99
    assert (taught.reshape(4, 2)[:, 1] > taught.reshape(4, 2)[:, 0]).all()
    # A log with other codes for the same brands teaches the same.
    order = np.array([2, 0, 3, 1])
    recoded = replace(
        log,
        features=np.column_stack([np.argsort(order)[brand], log.features[:, 1]]).astype(np.float32),
        categories={"brand": tuple("abcd"[code] for code in order)},
    )
    again = distil(network, recoded, relevance=replace(SMALL, rounds=60)).ranker
    np.testing.assert_array_equal(again.score(documents), forest.score(documents))


def test_what_all_documents_of_a_list_have_in_common_is_not_learned(
    network: Vectorization, small: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = _forest(distil(network, small.train, relevance=SMALL))
    score = RankingModel.score

    def shifted(model: RankingModel, documents: Documents, mask: Tensor) -> Tensor:
        of_list = torch.arange(len(mask)) % 7
        return score(model, documents, mask) + of_list[:, None].expand(mask.shape)[mask]

    monkeypatch.setattr(RankingModel, "score", shifted)
    moved = _forest(distil(network, small.train, relevance=SMALL))
    np.testing.assert_allclose(
        plain.predict(small.test.features, 1), moved.predict(small.test.features, 1), rtol=0, atol=0.05
    )


def test_copies_with_features_mixed_make_small_data_go_further(
    network: Vectorization, small: Splits, made: Distillation, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert made.mixed == made.taught_on * min(9, 50_000 // (10 * made.taught_on))
    few, lists = small.train.select(np.arange(20)), small.test
    scores = network.score(lists.features, lists.offsets)

    def tau() -> float:
        others = distil(network, few, relevance=replace(SMALL, rounds=100)).ranker.score(lists.features, lists.offsets)
        return float(np.nanmean(kendall_tau(scores, others, lists.offsets)))

    with_copies = tau()
    monkeypatch.setattr(distilled, "COPIES", 0)
    assert with_copies > tau() + 0.01


def test_figures_are_those_of_the_lists_that_were_held_out(
    network: Vectorization, small: Splits, made: Distillation
) -> None:
    ranker = network.ranker_
    by_labels = distil(network, small.train, lists=small.test, relevance=SMALL)
    scores, others = (each.score(small.test.features, small.test.offsets) for each in (ranker, by_labels.ranker))
    assert by_labels.kendall_tau == pytest.approx(np.nanmean(kendall_tau(scores, others, small.test.offsets)))
    tops = [
        scores[start:end].argmax() == others[start:end].argmax()
        for start, end in zip(small.test.offsets[:-1], small.test.offsets[1:], strict=True)
    ]
    assert by_labels.same_top == pytest.approx(np.mean(tops), abs=0.05)
    assert by_labels.measured_on == small.test.queries
    assert by_labels.taught_on == round(0.9 * small.train.queries)
    assert made.cost is not None
    assert made.cost.exported - made.cost.model == pytest.approx(made.cost.change.difference)


def test_a_missing_value_counts_as_the_typical_one(network: Vectorization, small: Splits, made: Distillation) -> None:
    rows = small.test.features[:200]
    blank = np.random.default_rng(0).random(rows.shape) < 0.3
    typical = network.ranker_.scaling.typical
    filled = np.where(blank, typical, rows)
    blanked = np.where(blank, np.float32("nan"), rows)
    np.testing.assert_array_equal(made.ranker.score(blanked), made.ranker.score(filled))
    holes = JudgedLists.of(
        features=np.where(
            np.random.default_rng(1).random(small.train.features.shape) < 0.2, np.nan, small.train.features
        ),
        labels=small.train.labels,
        offsets=small.train.offsets,
        feature_names=small.train.feature_names,
    )
    taught = distil(network, holes, relevance=SMALL).ranker
    np.testing.assert_array_equal(taught.score(blanked), taught.score(filled))


def test_lists_of_one_query_are_held_out_together(network: Vectorization) -> None:
    """Every list occurs twice; a tenth of 14 queries is one of them, with both of its lists."""
    sample = network.ranker_.sample
    assert sample is not None
    twice = sample.select(np.repeat(np.arange(14), 2))
    found = distil(network, twice, relevance=SMALL)
    assert (found.taught_on, found.measured_on) == (26, 2)


def test_it_is_recorded_what_a_forest_was_taught_on(
    network: Vectorization, small_log: ClickLog, made: Distillation
) -> None:
    assert any("forest" in each for each in unseen_part({"forest": made.ranker}, small_log).warnings)
    teacher = network.ranker_.provenance
    assert teacher is not None
    assert distil(network, relevance=SMALL).ranker.provenance == teacher


def test_a_forest_is_saved_loaded_and_exported(made: Distillation, small: Splits, tmp_path: Path) -> None:
    made.ranker.save(tmp_path / "forest")
    again = load(tmp_path / "forest")
    features = small.test.features[:100]
    np.testing.assert_array_equal(again.score(features), made.ranker.score(features))
    assert again.choices["teacher"]["method"] == "vectorization"
    assert export_forest(again, tmp_path / "model.json", to="solr").trees == len(_forest(made))
    again.export(tmp_path / "forest.onnx")


def test_one_network_takes_the_place_of_several_seeds(small_log: ClickLog, small: Splits, tmp_path: Path) -> None:
    networks = ClickBaseline(relevance=MLP(hidden=(16,), steps=200), seeds=3).fit(small_log)
    found = distil(networks, small_log, lists=small.test, relevance=MLP(hidden=(16,), steps=300))
    assert found.kendall_tau > 0.8
    assert list(found.ranker.model.by_name) == ["relevance"]
    files = [tmp_path / name for name in ("several.onnx", "one.onnx")]
    for each, file in zip((networks.ranker_, found.ranker), files, strict=True):
        each.export(file)
    assert files[1].stat().st_size < 0.6 * files[0].stat().st_size
    found.ranker.save(tmp_path / "one")
    lists = small.test
    np.testing.assert_array_equal(
        load(tmp_path / "one").score(lists.features, lists.offsets), found.ranker.score(lists.features, lists.offsets)
    )


def test_a_network_learns_the_order_and_the_missing_values_of_a_forest() -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=(2000, 2))
    gap = random.random(2000) < 0.3
    clicks = random.random(2000) < 1 / (1 + np.exp(-2 * values[:, 0] - gap))
    features = np.column_stack([values[:, 0], np.where(gap, np.nan, values[:, 1])])
    log = ClickLog.of(features=features, documents=np.arange(2000), offsets=np.arange(0, 2001, 10), clicks=clicks)
    forest = ClickBaseline(relevance=Trees(rounds=50, leaves=7)).fit(log).ranker_
    found = distil(forest, log, relevance=MLP(hidden=(16,), steps=500))
    assert found.kendall_tau > 0.8
    known, missing = found.ranker.score(np.array([[0.0, 0.0], [0.0, np.nan]]))
    assert missing > known + 0.3 * (found.ranker.score(np.array([[1.0, 0.0]]))[0] - known)


def test_what_cannot_be_distilled_is_refused(network: Vectorization, small_log: ClickLog, small: Splits) -> None:
    with pytest.raises(OptionError, match="a forest already"):
        distil(ClickBaseline(relevance=SMALL).fit(small_log))
    with pytest.raises(OptionError, match="saved without training lists"):
        distil(replace(network.ranker_, sample=None))
    with pytest.raises(DataError, match="nothing can be taught on 1 queries"):
        distil(network, small.train.select(np.arange(1)))
    with pytest.raises(DataError, match="knows 64 features, the lists to teach on have 1"):
        distil(network, JudgedLists.of(features=np.eye(3)[:, :1], labels=[0, 1, 2], offsets=[0, 3]))
    constant = replace(small.train, features=np.zeros_like(small.train.features))
    with pytest.raises(DataError, match="the same score"):
        distil(network, constant)


def test_the_command_distils_and_tells_the_cost(network: Vectorization, small_log: ClickLog, tmp_path: Path) -> None:
    network.save(tmp_path / "net")
    small_log.save(tmp_path / "log")
    few = ("--set", "rounds=5", "--set", "leaves=4")
    refused = ultr("export", tmp_path / "net", "--to", "solr", expect=2).stderr
    assert "solr takes trees, and the model is a network; let it teach a forest (--distil)" in refused
    text = ultr("export", tmp_path / "net", "--to", "solr", "--distil", *few).stdout
    assert "vectorization, distilled into 5 trees for solr" in text
    assert "the same as the forest on" in text
    assert "Kendall's tau" in text
    assert "by clicks of the shown order, give --data for labels" in text
    content = json.loads((tmp_path / "net.solr.json").read_text())
    assert len(content["params"]["trees"]) in (5, 6)

    options = ("--to", "vespa", "--distil", *few, "--log", tmp_path / "log", "--data", "letor-like=40")
    keep = ("--keep", tmp_path / "forest", "--json")
    found = json.loads(ultr("export", tmp_path / "net", *options, *keep).stdout)["distillation"]
    assert found["measured_on"] == read_part("letor-like=40", "test").queries
    assert found["taught_with"] == str(tmp_path / "log")
    ultr("report", tmp_path / "forest", "--out", tmp_path / "page.html")
    assert "A forest or a network f that orders each list" in (tmp_path / "page.html").read_text()
    assert "distilled, 5 trees" in ultr("export", tmp_path / "forest", "--to", "lightgbm").stdout
    for wrong, message in (
        (["--to", "solr", "--overwrite", "--set", "rounds=5"], "are for --distil"),
        (["--to", "onnx", "--distil", "--set", "rounds=5"], "option of a network must be one of"),
        (["--to", "onnx", "--distil", "--set", "hidden=0"], "hidden"),
        (["--to", "solr", "--distil"], "exists"),
        (["--to", "solr", "--overwrite", "--distil", "--set", "hidden=5"], "option of trees must be one of"),
        (["--to", "solr", "--overwrite", "--distil", "--set", "rounds=0"], "rounds"),
        (["--to", "xgboost", "--distil", "--keep", tmp_path / "log"], "not empty"),
    ):
        result = ultr("export", tmp_path / "net", *wrong, expect=2)
        assert message in result.stderr


def test_the_command_puts_one_network_in_the_place_of_several_seeds(small_log: ClickLog, tmp_path: Path) -> None:
    ClickBaseline(relevance=MLP(hidden=(16,), steps=40), seeds=2).fit(small_log).save(tmp_path / "two")
    options = ("--to", "onnx", "--distil", "--data", "letor-like=40")
    text = ultr("export", tmp_path / "two", *options, "--set", "steps=50", "--keep", tmp_path / "one").stdout
    assert "taught by the model's scores" in text
    assert "by the network: nDCG@10" in text
    assert load(tmp_path / "one").options["relevance"]["hidden"] == [16]
    keep = ("--set", "hidden=4", "--set", "steps=50", "--keep", tmp_path / "smaller")
    found = json.loads(ultr("export", tmp_path / "two", *options, *keep, "--overwrite", "--json").stdout)
    assert found["distillation"]["measured_on"] == read_part("letor-like=40", "test").queries
    assert load(tmp_path / "smaller").options["relevance"]["hidden"] == [4]

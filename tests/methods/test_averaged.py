from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ultr import DLA, MLP, Auto, ClickBaseline, ClickLog, RegressionEM, Trees, Vectorization, export, make_safe
from ultr.data import ragged
from ultr.data.signal import Signal
from ultr.datasets.splits import Splits
from ultr.errors import OptionError
from ultr.exporting.forest_file import export_forest, forest_of
from ultr.methods import load
from ultr.methods.averaged import AveragedObjective
from ultr.methods.estimator import Estimator
from ultr.scoring import Scorer

NETWORK = MLP(hidden=(8,), steps=20)
FOREST = Trees(rounds=5, fewest_documents=5)


def centred(scores: Any, offsets: Any) -> Any:
    lengths = np.diff(offsets)
    means = np.bincount(ragged.list_numbers(offsets), scores.astype(np.float64)) / lengths
    return scores - np.repeat(means, lengths)


def mean_in_units_of_spread(estimator: Estimator, log: ClickLog, features: Any, offsets: Any) -> Any:
    """The definition: each seed is trained by itself; the spread is that within the lists of the log."""
    total: Any = 0.0
    for seed in range(estimator.seeds):
        one = replace(estimator, seeds=1, seed=estimator.seed + seed).fit(log)
        shown = one.score(log.features[log.documents], log.offsets)
        spread = np.sqrt(np.mean(np.square(centred(shown, log.offsets))))
        total = total + one.score(features, offsets) / spread / estimator.seeds
    return total


@pytest.mark.parametrize(
    "estimator",
    [
        DLA(relevance=NETWORK, seeds=3),
        Vectorization(relevance=NETWORK, seeds=2, seed=4),
        Auto(relevance=NETWORK, seeds=2),
        ClickBaseline(relevance=FOREST, seeds=2),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_score_is_the_mean_over_seeds_in_units_of_their_spread(
    estimator: Estimator, small_log: ClickLog, small: Splits, tmp_path: Path
) -> None:
    test = small.test
    fitted = replace(estimator).fit(small_log)
    expected = mean_in_units_of_spread(estimator, small_log, test.features, test.offsets)
    np.testing.assert_allclose(fitted.score(test.features, test.offsets), expected, rtol=1e-4, atol=1e-4)
    fitted.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.score(test.features), fitted.score(test.features))
    assert again.options["seeds"] == estimator.seeds


def test_one_file_has_all_seeds(small_log: ClickLog, small: Splits, tmp_path: Path) -> None:
    fitted = Vectorization(relevance=NETWORK, seeds=2).fit(small_log)
    export(fitted, tmp_path / "lists.onnx")
    export(fitted, tmp_path / "documents.onnx", pointwise=True)
    scores = fitted.score(small.test.features, small.test.offsets)
    found = Scorer.load(tmp_path / "lists.onnx").score(small.test.features, small.test.offsets)
    np.testing.assert_allclose(found, scores, atol=1e-4)


def test_forests_of_all_seeds_become_one(small_log: ClickLog, small: Splits, tmp_path: Path) -> None:
    fitted = DLA(relevance=FOREST, seeds=3).fit(small_log)
    forest = forest_of(fitted.ranker_)
    assert forest is not None
    assert len(forest) == 3 * FOREST.rounds
    scores = fitted.score(small.test.features)
    np.testing.assert_allclose(forest.predict(small.test.features, 1)[:, 0], scores, rtol=1e-4, atol=1e-4)
    assert export_forest(fitted, tmp_path / "model.txt", to="lightgbm").trees == 3 * FOREST.rounds


def test_clicks_are_predicted_by_the_mean_of_the_logits(small_log: ClickLog) -> None:
    fitted = DLA(relevance=NETWORK, seeds=2).fit(small_log)
    logits = [np.log(DLA(relevance=NETWORK, seed=seed).fit(small_log).click_shares(small_log)) for seed in range(2)]
    product = np.exp(np.mean(logits, axis=0))
    numbers = ragged.list_numbers(small_log.offsets)
    expected = product / np.bincount(numbers, product)[numbers]
    np.testing.assert_allclose(fitted.click_shares(small_log), expected, rtol=1e-4)
    probable = RegressionEM(relevance=NETWORK, seeds=2).fit(small_log).click_probabilities(small_log)
    assert ((probable > 0) & (probable < 1)).all()


def test_a_run_that_was_stopped_goes_on_with_the_seed_it_was_at(
    small_log: ClickLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = DLA(relevance=NETWORK, seeds=2).fit(small_log)
    learn, seen = DLA.learn, []

    def interrupted(self: DLA, *data: Any, **options: Any) -> Any:
        seen.append(self.seed)
        if self.seed == 1:
            raise KeyboardInterrupt
        return learn(self, *data, **options)

    monkeypatch.setattr(DLA, "learn", interrupted)
    with pytest.raises(KeyboardInterrupt):
        DLA(relevance=NETWORK, seeds=2).fit(small_log, checkpoint=tmp_path / "run")
    monkeypatch.setattr(DLA, "learn", learn)
    assert [path.name for path in tmp_path.iterdir()] == ["run-seed-0"]
    resumed = DLA(relevance=NETWORK, seeds=2).fit(small_log, checkpoint=tmp_path / "run")
    np.testing.assert_array_equal(resumed.score(small_log.features), whole.score(small_log.features))
    assert not list(tmp_path.iterdir())
    assert seen == [0, 1]


def test_the_first_seed_chooses_the_dimension_for_all(small_log: ClickLog) -> None:
    train, held_out = small_log.split(0.3)
    options: dict[str, Any] = {"relevance": MLP(hidden=(4,), steps=3), "base_hidden": (4,)}
    fitted = Vectorization(dimension="auto", seeds=2, **options).fit(train, validation=held_out)
    alone = Vectorization(dimension="auto", **options).fit(train, validation=held_out)
    objective = fitted.ranker_.objective
    assert isinstance(objective, AveragedObjective)
    assert [fit.dimension for fit in objective.fits] == [alone.dimension_] * 2
    assert fitted.ranker_.choices["seeds"][0]["dimension"] == alone.dimension_


def test_what_any_seed_has_learned_from_is_on_record(small_log: ClickLog) -> None:
    """Where nothing is given to choose by, the first seed holds a part out for the dimension, and the others do not."""
    options: dict[str, Any] = {"relevance": MLP(hidden=(4,), steps=3), "base_hidden": (4,)}
    record = Vectorization(dimension="auto", seeds=2, **options).fit(small_log).ranker_.provenance
    assert record is not None
    assert small_log.fingerprint() in [each.fingerprint for each in record.data]
    assert len(record.data) == 2


def test_a_ranker_of_several_seeds_can_be_made_safe(small_log: ClickLog) -> None:
    train, held_out = small_log.split(0.3)
    fitted = DLA(relevance=NETWORK, seeds=2).fit(train, validation=held_out)
    safe = make_safe(fitted.ranker_, train, held_out, largest=2.0)
    assert set(np.unique(safe.score(train.features[:10]))) <= set(range(-10, 0))


def test_no_seed_at_all_is_one_sentence(small_log: ClickLog) -> None:
    with pytest.raises(OptionError, match="seeds must be an integer of at least 1"):
        DLA(seeds=0).fit(small_log)


@pytest.mark.parametrize("method", [DLA, Auto, RegressionEM])
def test_scores_by_value_are_averaged_and_clicks_are_those_of_clicks(
    method: type[Estimator], small_log: ClickLog, small: Splits, tmp_path: Path
) -> None:
    log, test = replace(small_log, signals=(Signal("purchase", small_log.clicks // 2),)), small.test
    usual, valued = (method(relevance=NETWORK, seeds=2, value=value) for value in (None, {"purchase": 1.0}))
    fitted = replace(valued).fit(log)
    expected = mean_in_units_of_spread(valued, log, test.features, test.offsets)
    np.testing.assert_allclose(fitted.score(test.features, test.offsets), expected, rtol=1e-4, atol=1e-4)
    usual = usual.fit(log)
    np.testing.assert_array_equal(fitted.click_shares(log), usual.click_shares(log))
    np.testing.assert_array_equal(fitted.click_probabilities(log), usual.click_probabilities(log))
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").score(test.features), fitted.score(test.features))


def test_what_each_seed_has_learned_for_itself_is_refused_in_a_sentence(small_log: ClickLog) -> None:
    fitted = DLA(relevance=NETWORK, seeds=2).fit(small_log)
    with pytest.raises(AttributeError, match="propensities is learned with each seed apart; train with seeds=1"):
        fitted.propensities()
    vectors = Vectorization(relevance=NETWORK, seeds=2).fit(small_log)
    with pytest.raises(AttributeError, match="observation is learned with each seed apart"):
        vectors.observation_embeddings()

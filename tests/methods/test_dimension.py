from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ultr.arrays import Doubles, Integers
from ultr.clicks.registry import click_model
from ultr.data.click_log import ClickLog
from ultr.datasets.splits import Splits
from ultr.errors import DataError, ModelFileError, OptionError
from ultr.evaluation import QueryLikelihoods
from ultr.files import read_json, write_json
from ultr.methods import Vectorization, load
from ultr.methods.dimension import choose_dimension, hold_out
from ultr.methods.vector_objective import Embeddings
from ultr.relevance import MLP
from ultr.train.checkpoint import Checkpoint

TINY: dict[str, Any] = {"relevance": MLP(hidden=(8,), steps=20), "base_hidden": (8,), "evaluate_every": 10}
DOCUMENTS, SHOWN, LISTS, IMPRESSIONS = 20, 10, 260, 2_000


def _rank_one(grades: Integers) -> Doubles:
    """Clicks by the model of one dimension itself: the position multiplies the score."""
    logits = (grades - 2) * np.linspace(1.5, 0.3, SHOWN)
    rates: Doubles = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return rates


def _exact(clicks: str) -> ClickLog:
    """The expected clicks on lists of documents that the network can know one by one, so that only bias is left."""
    random = np.random.default_rng(0)
    shown = np.stack([random.permutation(DOCUMENTS)[:SHOWN] for _ in range(LISTS)])
    grades = shown % 5
    rates = _rank_one(grades) if clicks == "rank one" else click_model(clicks).probabilities(grades, max_label=4)
    return ClickLog.of(
        features=np.eye(DOCUMENTS),
        documents=shown.ravel(),
        offsets=np.arange(LISTS + 1) * SHOWN,
        clicks=np.rint(IMPRESSIONS * rates).astype(np.int64).ravel(),
        impressions=np.full(LISTS, IMPRESSIONS),
    )


@pytest.mark.parametrize(("clicks", "expected"), [("rank one", {1}), ("position-based", {2}), ("trust", {2, 3})])
def test_auto_finds_the_dimension_of_the_clicks(clicks: str, expected: set[int]) -> None:
    # log(theta g) = (log g, 1) . (1, log theta) has two dimensions; trust bias has no small one, but 2 come close.
    options = TINY | {"relevance": MLP(hidden=(16,), steps=400, batch_size=64), "base_steps": 5}
    assert Vectorization(dimension="auto", **options).fit(_exact(clicks)).dimension_ in expected


def test_the_chosen_ranker_is_the_one_of_that_dimension(small: Splits, small_log: ClickLog) -> None:
    train, held_out = small_log.split(0.3)
    ranker = Vectorization(dimension="auto", **TINY).fit(train, validation=held_out)
    alone = Vectorization(dimension=ranker.dimension_, **TINY).fit(train, validation=held_out)
    assert ranker.dimension == "auto"
    assert ranker.history_ == alone.history_
    np.testing.assert_array_equal(
        ranker.score(small.test.features, small.test.offsets), alone.score(small.test.features, small.test.offsets)
    )


def test_the_table_has_every_candidate_against_the_chosen_one(small_log: ClickLog) -> None:
    train, held_out = small_log.split(0.3)
    ranker = Vectorization(dimension="auto", **TINY).fit(train, validation=held_out)
    assert [each.dimension for each in ranker.candidates_] == [1, 2, 3, 4, 5]
    fits = {
        d: QueryLikelihoods.of(Vectorization(dimension=d, **TINY).fit(train, validation=held_out), held_out)
        for d in (2, ranker.dimension_)
    }
    second, chosen = ranker.candidates_[1], ranker.candidates_[ranker.dimension_ - 1]
    assert (chosen.lead, chosen.error) == (0, 0)
    assert second.log_likelihood == pytest.approx(fits[2].list_totals.sum() / fits[2].clicks.sum())
    assert second.lead == pytest.approx(second.log_likelihood - chosen.log_likelihood)
    interval = fits[2].against_in_lists(fits[ranker.dimension_], level=0.9545)
    assert 4 * second.error == pytest.approx(interval.high - interval.low, rel=0.2)


def test_labels_choose_weights_but_never_the_dimension(small: Splits, small_log: ClickLog) -> None:
    ranker = Vectorization(dimension="auto", **TINY).fit(small_log, validation=small.validation)
    part, _ = hold_out(small_log, seed=0)
    assert ranker.ranker_.data_fingerprint == part.fingerprint()
    assert ranker.candidates_


def test_pages_are_held_out_where_queries_are_few(small_log: ClickLog, pair_log: ClickLog) -> None:
    many = replace(small_log, queries=np.arange(small_log.lists), query_ids=np.arange(small_log.lists).astype(np.str_))
    part, held_out = hold_out(many, seed=0)
    assert not set(part.queries) & set(held_out.queries)
    for log in (small_log, pair_log):
        part, held_out = hold_out(log, seed=0)
        assert set(held_out.queries) <= set(part.queries)
        assert part.impressions.sum() + held_out.impressions.sum() == log.impressions.sum()


def test_lists_are_compared_where_held_out_queries_are_few(small_log: ClickLog) -> None:
    one = replace(small_log, queries=np.zeros(small_log.lists, dtype=np.int64))
    random = np.random.default_rng(0)
    guesses = {1: random.dirichlet(np.ones(len(one.clicks))), 2: random.dirichlet(np.ones(len(one.clicks)))}
    _, table = choose_dimension({d: lambda _, d=d: guesses[d] for d in guesses}, one)  # type: ignore[misc]
    assert max(each.error for each in table) > 0


def test_a_saved_ranker_remembers_its_choice(small: Splits, small_log: ClickLog, tmp_path: Path) -> None:
    ranker = Vectorization(dimension="auto", **TINY).fit(small_log)
    ranker.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    embeddings = Embeddings.of(loaded)
    assert embeddings is not None
    assert embeddings.observation()["position"].shape == (10, ranker.dimension_)
    assert loaded.options["dimension"] == loaded.choices["dimension"] == ranker.dimension_
    assert loaded.choices["candidates"] == [vars(candidate) for candidate in ranker.candidates_]
    np.testing.assert_array_equal(loaded.score(small.test.features[:9]), ranker.score(small.test.features[:9]))


def test_a_given_dimension_is_no_choice(small_log: ClickLog, tmp_path: Path) -> None:
    ranker = Vectorization(dimension=2, **TINY).fit(small_log)
    ranker.save(tmp_path / "model")
    assert (ranker.dimension_, ranker.candidates_, dict(load(tmp_path / "model").choices)) == (2, (), {})


@pytest.mark.parametrize("dimension", ["two", "auto", 9, 0, None])
def test_a_damaged_dimension_is_refused(dimension: object, small_log: ClickLog, tmp_path: Path) -> None:
    Vectorization(dimension=2, **TINY).fit(small_log).save(tmp_path / "model")
    path = tmp_path / "model" / "manifest.json"
    content = read_json(path)
    content["options"]["dimension"] = dimension
    write_json(path, content, sealed=True)
    with pytest.raises(ModelFileError):
        load(tmp_path / "model")


def test_a_stopped_search_goes_on_where_it_was(
    small_log: ClickLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, held_out = small_log.split(0.3)
    whole = Vectorization(dimension="auto", **TINY).fit(train, validation=held_out)
    saved, save = [], Checkpoint.save

    def stop(self: Checkpoint, *state: Any) -> None:
        save(self, *state)
        saved.append(self.path.name)
        if len(saved) == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", stop)
    with pytest.raises(KeyboardInterrupt):
        Vectorization(dimension="auto", **TINY).fit(train, validation=held_out, checkpoint=tmp_path / "run")
    assert set(saved) == {"run-1", "run-2"}
    resumed = Vectorization(dimension="auto", **TINY).fit(train, validation=held_out, checkpoint=tmp_path / "run")
    assert "run-1" not in saved[6:]
    assert (resumed.candidates_, resumed.history_) == (whole.candidates_, whole.history_)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_chosen_is_refused(small_log: ClickLog) -> None:
    with pytest.raises(OptionError, match="dimension must be an integer of at least 1 or 'auto', got 'automatic'"):
        Vectorization(dimension="automatic").fit(small_log)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="at least two queries or lists"):
        Vectorization(dimension="auto", **TINY).fit(small_log.select(np.array([0])))

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tests.relevance.documents import blank_documents, inputs_of
from torch import nn

from ultr.arrays import Floats
from ultr.data.click_log import ClickLog
from ultr.datasets.splits import Splits
from ultr.errors import ModelFileError, TrainingError
from ultr.methods import ClickBaseline, TwoTower, Vectorization
from ultr.methods.estimator import Estimator
from ultr.methods.factors import factors_of
from ultr.methods.flat_options import estimator
from ultr.relevance import MLP, Documents, RelevanceModel
from ultr.relevance.recipe import RECIPES
from ultr.train import allocator, sampled_steps
from ultr.train.checkpoint import Checkpoint
from ultr.train.lists import Batch, TrainingLists
from ultr.train.loop import train
from ultr.train.objective import ScalarObjective
from ultr.train.ranking_model import RankingModel
from ultr.train.sampled_steps import train_step
from ultr.train.sampler import ListSampler
from ultr.train.stage import Stage


def _vectorization(**options: object) -> Estimator:
    settings: dict[str, object] = {"hidden": (16,), "base_hidden": (8,), "steps": 60, "evaluate_every": 10}
    return estimator(Vectorization, settings | options)


def _two_tower(**options: object) -> Estimator:
    settings: dict[str, object] = {"hidden": (16,), "steps": 60, "evaluate_every": 10, "dropout": 0.3}
    return estimator(TwoTower, settings | options)


def _weights(fitted: Estimator) -> dict[str, bytes]:
    return {name: value.numpy().tobytes() for name, value in fitted.ranker_.model.state_dict().items()}


class InterruptedRunError(Exception):
    pass


def _interrupt_after(saves: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, done = Checkpoint.save, []

    def save(self: Checkpoint, *state: object) -> None:
        whole(self, *state)  # type: ignore[arg-type]
        done.append(1)
        if len(done) == saves:
            raise InterruptedRunError

    monkeypatch.setattr(Checkpoint, "save", save)


@pytest.mark.parametrize("saves", [1, 6, 7], ids=["within stage 1", "at the end of stage 1 or later", "within stage 2"])
@pytest.mark.parametrize("options", [{}, {"recipe": "paper"}, {"schedule": "joint", "steps": 80}], ids=str)
def test_a_stopped_run_goes_on_to_the_weights_of_one_that_ran_through(
    saves: int,
    options: dict[str, object],
    small: Splits,
    small_log: ClickLog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = _vectorization(**options).fit(small_log, validation=small.validation)
    _interrupt_after(saves, monkeypatch)
    with pytest.raises(InterruptedRunError):
        _vectorization(**options).fit(small_log, validation=small.validation, checkpoint=tmp_path / "run.checkpoint")
    monkeypatch.undo()
    resumed = _vectorization(**options).fit(
        small_log, validation=small.validation, checkpoint=tmp_path / "run.checkpoint"
    )
    assert _weights(resumed) == _weights(whole)
    assert resumed.history_ == whole.history_


@pytest.mark.parametrize("options", [{}, {"recipe": "paper"}, {"link": "softmax"}], ids=str)
def test_a_stopped_run_with_noise_goes_on_to_the_weights_of_one_that_ran_through(
    options: dict[str, object], small: Splits, small_log: ClickLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _two_tower(**options).fit(small_log, validation=small.validation)
    _interrupt_after(3, monkeypatch)
    with pytest.raises(InterruptedRunError):
        _two_tower(**options).fit(small_log, validation=small.validation, checkpoint=tmp_path / "run.checkpoint")
    monkeypatch.undo()
    resumed = _two_tower(**options).fit(small_log, validation=small.validation, checkpoint=tmp_path / "run.checkpoint")
    assert _weights(resumed) == _weights(whole)
    assert resumed.history_ == whole.history_


def _noises(log: ClickLog, monkeypatch: pytest.MonkeyPatch, *, seed: int = 0) -> list[Floats]:
    """The noise of four steps of two stages that are alike, over all lists in their order."""
    method = TwoTower(dropout=0.3)
    lists = method.training_lists(log, inputs_of(log.features))
    model = method.build(len(log.feature_names), factors_of(log), seed=0)
    (stage,) = method.stages(model.objective, lists, 4)
    found: list[Floats] = []

    def watched(model: RankingModel, stage: Stage, batch: Batch, *arguments: Any, **options: Any) -> float:
        assert batch.noise is not None
        found.append(batch.noise.numpy().copy())
        return 0.0

    with monkeypatch.context() as patch:
        patch.setattr(sampled_steps, "train_step", watched)
        patch.setattr(ListSampler, "__call__", lambda *_: np.arange(lists.lists))
        train(model, [stage, stage], lists, training=RECIPES["fast"], evaluate_every=100, seed=seed)
    return found


def test_noise_depends_on_seed_stage_and_step_alone(small_log: ClickLog, monkeypatch: pytest.MonkeyPatch) -> None:
    first, again, other = (_noises(small_log, monkeypatch, seed=seed) for seed in (0, 0, 1))
    assert len(first) == 2 * 4
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    # Two steps, two stages or two seeds have nothing in common.
    assert len({noise.tobytes() for noise in (*first, *other)}) == 2 * 2 * 4


def test_training_with_noise_repeats_and_validation_has_none(small_log: ClickLog) -> None:
    training, held_out = small_log.split(0.2)
    first, second = (_two_tower().fit(training, validation=held_out) for _ in range(2))
    assert _weights(first) == _weights(second)
    assert first.history_ == second.history_
    assert _weights(first) != _weights(_two_tower(dropout=0.0).fit(training, validation=held_out))
    # Validation of the same weights gives what the ranker itself predicts, in which nothing is dropped.
    one = _two_tower(steps=10).fit(training, validation=held_out)
    chances, clicks = one.click_probabilities(held_out), held_out.clicks
    shown = np.repeat(held_out.impressions, held_out.lengths)
    likelihood = (clicks * np.log(chances) + (shown - clicks) * np.log(1 - chances)).sum()
    assert one.history_[0].value == pytest.approx(likelihood / held_out.impressions.sum(), rel=1e-5)


def test_a_checkpoint_of_other_options_is_refused(small_log: ClickLog, tmp_path: Path) -> None:
    _vectorization().fit(small_log, checkpoint=tmp_path / "run.checkpoint")
    with pytest.raises(ModelFileError, match="other options or data; remove it"):
        _vectorization(seed=1).fit(small_log, checkpoint=tmp_path / "run.checkpoint")


def test_a_checkpoint_of_other_validation_data_is_refused(small: Splits, small_log: ClickLog, tmp_path: Path) -> None:
    train, held_out = small_log.split(0.2)
    _vectorization().fit(train, validation=held_out, checkpoint=tmp_path / "run.checkpoint")
    with pytest.raises(ModelFileError, match="other options or data"):
        _vectorization().fit(train, validation=small.validation, checkpoint=tmp_path / "run.checkpoint")


class Slope(RelevanceModel):
    """One parameter, the same for all documents."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(3.0))

    def forward(self, documents: Documents) -> torch.Tensor:
        return self.weight.expand(len(documents.rows), 1)

    def project(self, vector: torch.Tensor) -> RelevanceModel:
        raise NotImplementedError

    def graph(self) -> nn.Module:
        raise NotImplementedError


def test_a_step_follows_the_gradient_of_loss_and_penalty_clipped_at_the_norm() -> None:
    batch = Batch(blank_documents(2), torch.zeros(2, 0), torch.zeros(2, 1), torch.ones(2, 1, dtype=torch.bool))

    def moved(slope: float, penalty: float, clip_norm: float) -> float:
        relevance = Slope()
        model = RankingModel({"relevance": relevance}, ScalarObjective())
        stage = Stage(
            "test",
            1,
            loss=lambda r, _: slope * r.squeeze(-1),
            score=lambda r, mask: r,
            penalty=lambda models: penalty * next(models["relevance"].parameters()).square().sum(),
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        assert train_step(model, stage, batch, optimizer, clip_norm=clip_norm) == slope * 3
        return 3.0 - relevance.weight.item()

    assert moved(slope=0.5, penalty=0.0, clip_norm=5.0) == pytest.approx(0.5)
    assert moved(slope=0.5, penalty=0.25, clip_norm=5.0) == pytest.approx(0.5 + 0.25 * 2 * 3)
    assert moved(slope=100.0, penalty=0.0, clip_norm=5.0) == pytest.approx(5.0)


def test_a_batch_without_its_lists_that_have_no_click_makes_the_same_step(small_log: ClickLog) -> None:
    lists = TrainingLists.of_log(small_log, inputs_of(small_log.features))
    batch = lists.batch(np.arange(12))
    batch = replace(batch, clicks=batch.clicks * (torch.arange(12) % 3 == 0)[:, None])

    def moved(part: Batch) -> torch.Tensor:
        method = ClickBaseline(relevance=MLP(hidden=(4,)))
        model = method.build(len(small_log.feature_names), [], seed=0)
        (stage,) = method.stages(model.objective, lists, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        loss = train_step(model, stage, part, optimizer, clip_norm=5.0, drawn=12)
        return torch.cat([torch.tensor([loss]), *(weights.detach().flatten() for weights in model.parameters())])

    few = batch.clicked()
    assert few.clicks.shape == (4, batch.clicks.shape[1])
    torch.testing.assert_close(moved(few), moved(batch))
    nothing = replace(batch, clicks=torch.zeros_like(batch.clicks))
    torch.testing.assert_close(moved(nothing.clicked()), moved(nothing))


def test_how_soon_layers_fade_is_counted_in_the_batches_that_are_asked_for(
    small_log: ClickLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    fading: list[list[float]] = []

    def watched(
        model: RankingModel, stage: Stage, batch: Batch, optimizer: torch.optim.Optimizer, **options: Any
    ) -> float:
        fading.append([group["weight_decay"] for group in optimizer.param_groups])
        return train_step(model, stage, batch, optimizer, **options)

    monkeypatch.setattr(sampled_steps, "train_step", watched)
    ClickBaseline(relevance=MLP(hidden=(4,), steps=1, batch_size=1, learning_rate=0.02)).fit(small_log)
    steps = 6 * len(np.unique(small_log.documents)) / (len(small_log.documents) / small_log.lists)
    assert steps > 100
    assert fading == [[pytest.approx(1 / (0.02 * steps)), 0.0]]


def test_the_default_recipe_lets_the_learning_rate_fall_along_half_a_cosine_in_every_stage(
    small_log: ClickLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: dict[str, list[float]] = {}

    def watched(
        model: RankingModel, stage: Stage, batch: Batch, optimizer: torch.optim.Optimizer, **options: Any
    ) -> float:
        rates.setdefault(stage.name, []).append(optimizer.param_groups[0]["lr"])
        return train_step(model, stage, batch, optimizer, **options)

    monkeypatch.setattr(sampled_steps, "train_step", watched)
    Vectorization(relevance=MLP(hidden=(8,), steps=8), base_steps=4).fit(small_log)
    cosine = {count: 0.005 * (1 + np.cos(np.pi * np.arange(count) / count)) for count in (8, 4)}
    np.testing.assert_allclose(rates["clicks"], cosine[8])
    np.testing.assert_allclose(rates["base"], cosine[4])


def test_recipes_bring_their_own_batches_unless_a_size_is_given(
    small_log: ClickLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    cases: list[dict[str, Any]] = [{}, {"recipe": "paper"}, {"recipe": "paper", "batch_size": 7}]

    def watched(model: RankingModel, stage: Stage, batch: Batch, *arguments: Any, **options: Any) -> float:
        sizes.append(options["drawn"])
        return train_step(model, stage, batch, *arguments, **options)

    monkeypatch.setattr(sampled_steps, "train_step", watched)
    for options in cases:
        ClickBaseline(relevance=MLP(hidden=(8,), steps=1, **options)).fit(small_log)
    assert sizes == [64, 256, 7]


def test_bfloat16_rounds_products_and_keeps_weights_and_losses_whole(small_log: ClickLog) -> None:
    options: dict[str, Any] = {"hidden": (32, 16), "steps": 30, "base_steps": 1, "learning_rate": 1e-3}
    whole, rounded = (
        estimator(Vectorization, options | {"precision": name}).fit(small_log) for name in ("float32", "bfloat16")
    )
    assert {parameter.dtype for parameter in rounded.ranker_.model.parameters()} == {torch.float32}
    assert rounded.history_[0].loss != whole.history_[0].loss
    assert rounded.history_[0].loss == pytest.approx(whole.history_[0].loss, rel=0.01)
    scores = [ranker.score(small_log.features) for ranker in (whole, rounded)]
    assert scores[0] @ scores[1] > 0.99 * np.linalg.norm(scores[0]) * np.linalg.norm(scores[1])


def test_freed_memory_is_kept_where_the_c_library_can(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[int, int] = {}
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=told.__setitem__))
    allocator.keep_freed_memory()
    # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of malloc.h.
    assert told == {-3: 2**25, -1: 2**29}
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    allocator.keep_freed_memory()


def test_a_damaged_checkpoint_is_refused(small_log: ClickLog, tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    _vectorization().fit(small_log, checkpoint=path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ModelFileError, match=r"run\.checkpoint is damaged"):
        _vectorization().fit(small_log, checkpoint=path)


def test_the_best_weights_that_validation_saw_are_kept(
    small: Splits, small_log: ClickLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = iter([0.1, 0.9, 0.5, 0.2])

    class Scripted:
        name = "scripted"

        def __call__(self, model: object, stage: object) -> float:
            return next(values)

    monkeypatch.setattr("ultr.methods.estimator.LabelValidation", lambda *_: Scripted())
    relevance = MLP(hidden=(16,), recipe="collapsed", steps=40)
    chosen = ClickBaseline(relevance=relevance, evaluate_every=10).fit(small_log, validation=small.validation)
    second_best = ClickBaseline(relevance=replace(relevance, steps=20), evaluate_every=20).fit(small_log)
    assert _weights(second_best) == _weights(chosen)


def test_a_stage_stops_when_its_patience_is_over(
    small: Splits, small_log: ClickLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = iter([0.1, 0.9, 0.5, 0.2, 0.95])

    class Scripted:
        name = "scripted"

        def __call__(self, model: object, stage: object) -> float:
            return next(values)

    monkeypatch.setattr("ultr.methods.estimator.LabelValidation", lambda *_: Scripted())
    ranker = ClickBaseline(relevance=MLP(hidden=(16,), steps=400), evaluate_every=10, patience=2)
    ranker.fit(small_log, validation=small.validation)
    assert [record.step for record in ranker.history_] == [10, 20, 30, 40]


def test_validation_by_held_out_clicks_needs_no_labels(small_log: ClickLog) -> None:
    train, held_out = small_log.split(0.2)
    ranker = _vectorization().fit(train, validation=held_out)
    values = [record.value for record in ranker.history_]
    assert None not in values
    assert {record.stage for record in ranker.history_} == {"clicks", "base"}


def test_a_loss_that_is_not_finite_stops_with_the_step_and_the_last_good_checkpoint(
    small_log: ClickLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, whole, calls = tmp_path / "run.checkpoint", ListSampler.__call__, []

    def break_weights_at_step_25(self: ListSampler, step: int) -> object:
        calls.append(step)
        if len(calls) == 25:
            with torch.no_grad():
                next(iter(networks[0].parameters())).fill_(float("nan"))
        return whole(self, step)

    networks: list[RankingModel] = []
    build = Vectorization.build

    def remember(*arguments: Any, **options: Any) -> RankingModel:
        networks.append(build(*arguments, **options))
        return networks[0]

    monkeypatch.setattr(Vectorization, "build", remember)
    monkeypatch.setattr(ListSampler, "__call__", break_weights_at_step_25)
    message = (
        r"stage clicks at step 25 because the loss is nan; the last good checkpoint is .*run\.checkpoint .*step 20"
    )
    with pytest.raises(TrainingError, match=message):
        _vectorization().fit(small_log, checkpoint=path)
    monkeypatch.undo()
    resumed = _vectorization().fit(small_log, checkpoint=path)
    assert np.isfinite([record.loss for record in resumed.history_]).all()

from __future__ import annotations

import ctypes
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ultr.data.click_log import ClickLog
from ultr.datasets.splits import Splits
from ultr.errors import ModelFileError, TrainingError
from ultr.methods import ClickBaseline, Vectorization
from ultr.train import loop, memory
from ultr.train.checkpoint import Checkpoint
from ultr.train.lists import Batch
from ultr.train.loop import train_step
from ultr.train.recipe import RECIPES, Recipe
from ultr.train.sampler import ListSampler
from ultr.train.stage import Stage


def _vectorization(**options: object) -> Vectorization:
    settings: dict[str, object] = {"hidden": (16,), "base_hidden": (8,), "steps": 60, "evaluate_every": 10}
    return Vectorization(**settings | options)  # type: ignore[arg-type]


def _weights(ranker: Vectorization) -> dict[str, bytes]:
    return {name: value.numpy().tobytes() for name, value in ranker.network_.state_dict().items()}


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


def test_a_checkpoint_of_other_options_is_refused(small_log: ClickLog, tmp_path: Path) -> None:
    _vectorization().fit(small_log, checkpoint=tmp_path / "run.checkpoint")
    with pytest.raises(ModelFileError, match="other options or data; remove it"):
        _vectorization(seed=1).fit(small_log, checkpoint=tmp_path / "run.checkpoint")


def test_a_checkpoint_of_other_validation_data_is_refused(small: Splits, small_log: ClickLog, tmp_path: Path) -> None:
    train, held_out = small_log.split(0.2)
    _vectorization().fit(train, validation=held_out, checkpoint=tmp_path / "run.checkpoint")
    with pytest.raises(ModelFileError, match="other options or data"):
        _vectorization().fit(train, validation=small.validation, checkpoint=tmp_path / "run.checkpoint")


def test_a_step_follows_the_gradient_of_loss_and_penalty_clipped_at_the_norm() -> None:
    module = torch.nn.Linear(1, 1, bias=False)
    batch = Batch(torch.zeros(2, 1), torch.zeros(2, 0), torch.zeros(2, 1), torch.ones(2, 1, dtype=torch.bool))

    def moved(slope: float, penalty: float, clip_norm: float) -> float:
        torch.nn.init.constant_(module.weight, 3.0)
        stage = Stage(
            "test",
            1,
            loss=lambda _: slope * module.weight.view(-1).expand(2),
            modules=(module,),
            score=lambda inputs, mask: inputs,
            penalty=lambda: penalty * module.weight.square().sum(),
        )
        assert train_step(stage, batch, torch.optim.SGD(module.parameters(), lr=1.0), clip_norm=clip_norm) == slope * 3
        return 3.0 - module.weight.item()

    assert moved(slope=0.5, penalty=0.0, clip_norm=5.0) == pytest.approx(0.5)
    assert moved(slope=0.5, penalty=0.25, clip_norm=5.0) == pytest.approx(0.5 + 0.25 * 2 * 3)
    assert moved(slope=100.0, penalty=0.0, clip_norm=5.0) == pytest.approx(5.0)


def test_the_recipe_of_the_paper_is_adagrad_with_its_settings() -> None:
    paper, module = RECIPES["paper"], nn.Linear(1, 1, bias=False)
    nn.init.ones_(module.weight)
    optimizer = paper.build_optimizer(module, paper.learning_rate, steps_a_pass=1.0)
    module.weight.grad = torch.tensor([[2.0]])
    optimizer.step()
    assert module.weight.item() == pytest.approx(1 - 0.05 * 2 / (0.1 + 2**2) ** 0.5)
    assert (paper.clip_norm, paper.steps, paper.sessions) == (5.0, 15_000, True)


def test_layers_fade_to_one_over_e_in_the_passes_of_the_recipe_and_nothing_else_does() -> None:
    def faded(recipe: Recipe, steps: int, steps_a_pass: float) -> tuple[float, float, float]:
        module = nn.ModuleDict({"layer": nn.Linear(2, 2), "table": nn.Embedding(3, 2)})
        for weights in module.parameters():
            nn.init.ones_(weights)
        optimizer = recipe.build_optimizer(module, 0.003, steps_a_pass=steps_a_pass)
        for _ in range(steps):
            for weights in module.parameters():
                weights.grad = torch.zeros_like(weights)
            optimizer.step()
        layer, bias, table = (weights.mean().item() for weights in module.parameters())
        return layer, bias, table

    fast = RECIPES["fast"]
    assert faded(fast, 6 * 50, 50.0) == pytest.approx((math.exp(-1), 1.0, 1.0), rel=3e-3)
    # However few documents there are, not in fewer than a hundred steps.
    assert faded(fast, 100, 1.0) == pytest.approx((math.exp(-1), 1.0, 1.0), rel=1e-2)
    assert faded(RECIPES["collapsed"], 100, 1.0) == (1.0, 1.0, 1.0)


def test_how_soon_layers_fade_is_counted_in_the_batches_that_are_asked_for(
    small_log: ClickLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    fading: list[list[float]] = []

    def watched(stage: Stage, batch: Batch, optimizer: torch.optim.Optimizer, **options: Any) -> float:
        fading.append([group["weight_decay"] for group in optimizer.param_groups])
        return train_step(stage, batch, optimizer, **options)

    monkeypatch.setattr(loop, "train_step", watched)
    ClickBaseline(hidden=(4,), steps=1, batch_size=1, learning_rate=0.02).fit(small_log)
    steps = 6 * len(np.unique(small_log.documents)) / (len(small_log.documents) / small_log.lists)
    assert steps > 100
    assert fading == [[pytest.approx(1 / (0.02 * steps)), 0.0]]


def test_the_default_recipe_lets_the_learning_rate_fall_along_half_a_cosine_in_every_stage(
    small_log: ClickLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: dict[str, list[float]] = {}

    def watched(stage: Stage, batch: Batch, optimizer: torch.optim.Optimizer, **options: Any) -> float:
        rates.setdefault(stage.name, []).append(optimizer.param_groups[0]["lr"])
        return train_step(stage, batch, optimizer, **options)

    monkeypatch.setattr(loop, "train_step", watched)
    Vectorization(hidden=(8,), steps=8, base_steps=4).fit(small_log)
    cosine = {count: 0.005 * (1 + np.cos(np.pi * np.arange(count) / count)) for count in (8, 4)}
    np.testing.assert_allclose(rates["clicks"], cosine[8])
    np.testing.assert_allclose(rates["base"], cosine[4])


def test_recipes_bring_their_own_batches_unless_a_size_is_given(
    small_log: ClickLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    cases: list[dict[str, Any]] = [{}, {"recipe": "paper"}, {"recipe": "paper", "batch_size": 7}]

    def watched(stage: Stage, batch: Batch, *arguments: Any, **options: Any) -> float:
        sizes.append(len(batch.mask))
        return train_step(stage, batch, *arguments, **options)

    monkeypatch.setattr(loop, "train_step", watched)
    for options in cases:
        ClickBaseline(hidden=(8,), steps=1, **options).fit(small_log)
    assert sizes == [64, 256, 7]


def test_bfloat16_rounds_products_and_keeps_weights_and_losses_whole(small_log: ClickLog) -> None:
    options: dict[str, Any] = {"hidden": (32, 16), "steps": 30, "base_steps": 1, "learning_rate": 1e-3}
    whole, rounded = (Vectorization(**options, precision=name).fit(small_log) for name in ("float32", "bfloat16"))
    assert {parameter.dtype for parameter in rounded.network_.parameters()} == {torch.float32}
    assert rounded.history_[0].loss != whole.history_[0].loss
    assert rounded.history_[0].loss == pytest.approx(whole.history_[0].loss, rel=0.01)
    scores = [ranker.score(small_log.features) for ranker in (whole, rounded)]
    assert scores[0] @ scores[1] > 0.99 * np.linalg.norm(scores[0]) * np.linalg.norm(scores[1])


def test_freed_memory_is_kept_where_the_c_library_can(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[int, int] = {}
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=told.__setitem__))
    memory.keep_freed_memory()
    # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of malloc.h.
    assert told == {-3: 2**25, -1: 2**29}
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    memory.keep_freed_memory()


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

        def __call__(self, stage: object) -> float:
            return next(values)

    monkeypatch.setattr("ultr.methods.estimator.LabelValidation", lambda *_: Scripted())
    options: dict[str, Any] = {"hidden": (16,), "recipe": "collapsed"}
    chosen = ClickBaseline(**options, steps=40, evaluate_every=10).fit(small_log, validation=small.validation)
    second_best = ClickBaseline(**options, steps=20, evaluate_every=20).fit(small_log)
    for name, value in second_best.network_.state_dict().items():
        assert torch.equal(value, chosen.network_.state_dict()[name])


def test_a_stage_stops_when_its_patience_is_over(
    small: Splits, small_log: ClickLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = iter([0.1, 0.9, 0.5, 0.2, 0.95])

    class Scripted:
        name = "scripted"

        def __call__(self, stage: object) -> float:
            return next(values)

    monkeypatch.setattr("ultr.methods.estimator.LabelValidation", lambda *_: Scripted())
    ranker = ClickBaseline(hidden=(16,), steps=400, evaluate_every=10, patience=2)
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

    networks: list[torch.nn.Module] = []
    build = Vectorization.build

    def remember(*arguments: object) -> torch.nn.Module:
        networks.append(build(*arguments))  # type: ignore[arg-type]
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

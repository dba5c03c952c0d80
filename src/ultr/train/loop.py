"""The training loop of every method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import nn

from ultr.errors import TrainingError
from ultr.relevance.recipe import PRECISIONS, Training
from ultr.seeding import generator
from ultr.train.allocator import keep_freed_memory
from ultr.train.checkpoint import Checkpoint, Record, TrainingState
from ultr.train.lists import Batch, TrainingLists
from ultr.train.process_group import ALONE, ProcessGroup
from ultr.train.progress import Observer, Silent
from ultr.train.ranking_model import RankingModel
from ultr.train.sampler import ListSampler
from ultr.train.selection import Validation
from ultr.train.stage import Stage


@dataclass(frozen=True)
class LoopOptions:
    """Options of the loop that no stage and no relevance model has."""

    evaluate_every: int
    """Steps between validations and checkpoints."""
    patience: int | None
    """Validations in a row without a new best value after which a stage ends."""
    seed: int


def train(
    model: RankingModel,
    stages: Sequence[Stage],
    lists: TrainingLists,
    *,
    training: Training,
    options: LoopOptions,
    validation: Validation | None = None,
    checkpoint: Checkpoint | None = None,
    observer: Observer | None = None,
) -> list[Record]:
    """Fit the model stage by stage, in place, and give the learning curve.

    Every `evaluate_every` steps the weights are validated and a checkpoint is written. A stage ends with its best
    weights (the last ones without validation). A run that finds its own checkpoint goes on from there.
    """
    keep_freed_memory()
    observer, group = observer or Silent(), ProcessGroup.of_environment()
    optimizer = training.build_optimizer(model, steps_per_epoch=lists.steps_per_epoch(training.batch_size))
    state, best = TrainingState(), None
    if checkpoint is not None and (saved := checkpoint.load(model, optimizer)) is not None:
        state, best = saved
    run = f"{lists.lists} {lists.impressions.sum()} {lists.clicks.sum()}" if checkpoint is None else checkpoint.run
    group.check_same(f"{run} {state.stage} {state.step}")

    for number, stage in enumerate(stages):
        if number < state.stage:
            continue
        model.train_only(stage)
        sampler = ListSampler(lists.impressions, training.batch_size, seed=options.seed, purpose=f"lists {number}")
        with observer.watch(stage.name, stage.steps, done=state.step):
            if stage.begin is not None and state.step == 0:
                stage.begin(model.by_name)

            while state.step < stage.steps and not _out_of_patience(stage, state, options):
                for parameters in optimizer.param_groups:
                    parameters["lr"] = training.rate(state.step / stage.steps)
                drawn = sampler(state.step)
                share = group.share(len(drawn))
                batch = lists.batch(
                    drawn,
                    share=share,
                    sessions=training.sessions,
                    noise=stage.noise,
                    random=partial(_stream, seed=options.seed, stage=number, step=state.step),
                )
                try:
                    loss = train_step(
                        model,
                        stage,
                        batch,
                        optimizer,
                        clip_norm=training.clip_norm,
                        precision=training.precision,
                        group=group,
                        portion=len(share) / len(drawn),
                    )
                except FloatingPointError as error:
                    raise _stopped(error, stage, state, checkpoint) from error
                state.step += 1
                state.loss_sum += loss
                state.loss_count += 1
                observer.step(state.step)

                if state.step % options.evaluate_every == 0 or state.step == stage.steps:
                    value = group.broadcast(
                        validation(model, stage) if validation is not None and group.leads else None
                    )
                    if value is not None and (state.best_value is None or value > state.best_value):
                        state.best_value, state.best_step, best = value, state.step, model.copy_state()
                    record = Record(stage.name, state.step, state.loss_sum / state.loss_count, value)
                    state.history.append(record)
                    state.loss_sum, state.loss_count = 0.0, 0
                    observer.record(record, best=state.best_value)
                    if checkpoint is not None and group.leads:
                        checkpoint.save(model, optimizer, best, state)

        if best is not None and stage.select:
            model.load_state_dict(best)
        state = TrainingState(stage=number + 1, history=state.history)
        best = None

    model.train_only(None)
    return state.history


def train_step(
    model: RankingModel,
    stage: Stage,
    batch: Batch,
    optimizer: torch.optim.Optimizer,
    *,
    clip_norm: float,
    precision: str = "float32",
    group: ProcessGroup = ALONE,
    portion: float = 1.0,
) -> float:
    """Move the weights by one batch and give its mean loss; a `FloatingPointError` leaves them where they were.

    The batch is this `portion` of the lists that all processes drew. Gradients, and the sums for a closed form, are
    summed over the processes.
    """
    parameters = [parameter for part in optimizer.param_groups for parameter in part["params"]]
    device = parameters[0].device if parameters else torch.device("cpu")
    batch = batch.to(device)
    with torch.autocast(device.type, PRECISIONS[precision], enabled=precision != "float32"):
        losses, sums = stage.losses(model.outputs(batch.documents, stage.uses), batch)
    loss = losses.mean() * portion
    objective = loss if stage.penalty is None else loss + stage.penalty(model.by_name) / group.size
    optimizer.zero_grad()
    objective.backward()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        loss, objective = loss.detach(), objective.detach()
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        group.all_reduce([*gradients, loss, objective])
        if sums is not None:
            group.all_reduce([sums])
    norm = float(nn.utils.clip_grad_norm_(parameters, clip_norm))
    value = float(objective)
    if not math.isfinite(value):
        raise FloatingPointError(f"the loss is {value}")
    if not math.isfinite(norm):
        raise FloatingPointError(f"the gradient norm is {norm}")
    optimizer.step()
    for name in stage.moves:
        model.by_name[name].step()
    if stage.update is not None:
        assert sums is not None, "a stage with an update needs a loss that gives sums"
        with torch.no_grad():
            stage.update(sums)
    return float(loss)


def _stream(purpose: str, *, seed: int, stage: int, step: int) -> np.random.Generator:
    """The random numbers of one purpose in one step, which are the same in a run that was resumed."""
    return generator(seed, f"{purpose} {stage}", step)


def _out_of_patience(stage: Stage, state: TrainingState, options: LoopOptions) -> bool:
    if not stage.select or options.patience is None or state.best_value is None:
        return False
    return state.step - state.best_step >= options.patience * options.evaluate_every


def _stopped(
    error: FloatingPointError, stage: Stage, state: TrainingState, checkpoint: Checkpoint | None
) -> TrainingError:
    last = state.history[-1] if state.history else None
    if checkpoint is None:
        kept = "no checkpoint was asked for"
    elif last is None:
        kept = "no checkpoint was written yet"
    else:
        kept = f"the last good checkpoint is {checkpoint.path} (stage {last.stage}, step {last.step})"
    return TrainingError(
        f"training stopped in stage {stage.name} at step {state.step + 1} because {error}; {kept}; "
        "lower learning_rate or look for extreme feature values"
    )

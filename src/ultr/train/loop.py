"""The training loop of every method."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from ultr.errors import TrainingError
from ultr.relevance.recipe import Training
from ultr.train.allocator import keep_freed_memory
from ultr.train.checkpoint import Checkpoint, Record, TrainingState, restore
from ultr.train.full_steps import FullSteps
from ultr.train.lists import TrainingLists
from ultr.train.process_group import ProcessGroup
from ultr.train.progress import Observer, Silent
from ultr.train.ranking_model import RankingModel
from ultr.train.sampled_steps import SampledSteps
from ultr.train.selection import Validation
from ultr.train.stage import Stage
from ultr.train.steps import Steps


def train(
    model: RankingModel,
    stages: Sequence[Stage],
    lists: TrainingLists,
    *,
    training: Training,
    seed: int,
    evaluate_every: int | None = None,
    patience: int | None = None,
    validation: Validation | None = None,
    checkpoint: Checkpoint | None = None,
    observer: Observer | None = None,
) -> list[Record]:
    """Fit the model stage by stage, in place, and give the learning curve.

    Every `evaluate_every` steps (by default as the training says) the weights are validated and a checkpoint is
    written. A stage ends with its best weights (the last ones without validation), early after `patience` validations
    in a row without a new best value. A run that finds its own checkpoint goes on from there.
    """
    keep_freed_memory()
    observer, group = observer or Silent(), ProcessGroup.of_environment()
    state, best = TrainingState(), None
    moments: dict[str, Tensor] = {}
    if checkpoint is not None and (saved := checkpoint.load(model)) is not None:
        state, best, moments = saved
        if not (0 <= state.stage < len(stages) and 0 <= state.step <= stages[state.stage].steps):
            raise checkpoint.damaged(f"there is no step {state.step} of stage {state.stage + 1}")
    run = f"{lists.lists} {lists.impressions.sum()} {lists.clicks.sum()}" if checkpoint is None else checkpoint.run
    group.check_same(f"{run} {state.stage} {state.step}")

    optimizer, now, part = None, training, None
    for number, stage in enumerate(stages):
        if number < state.stage:
            continue
        model.train_only(stage)
        before, now = (now, part), stage.training or training
        part = stage.part
        every = evaluate_every or now.evaluate_every
        if optimizer is None or now != before[0] or part is not before[1]:
            share = 1.0 if part is None else float(np.mean(part))
            optimizer = now.build_optimizer(model, steps_per_epoch=share * lists.steps_per_epoch(now.batch_size))
        restore(optimizer, model, moments)
        moments = {}
        with observer.watch(stage.name, stage.steps, done=state.step):
            if stage.begin is not None and state.step == 0:
                stage.begin(model.by_name)
            # Trees get ready to grow from what `begin` has left.
            steps: Steps = (SampledSteps if now.batch_size else FullSteps)(
                model, stage, number, lists, optimizer, now, group, seed
            )
            while state.step < stage.steps and not _out_of_patience(stage, state, patience, every):
                for parameters in optimizer.param_groups:
                    parameters["lr"] = now.rate(state.step / stage.steps)
                try:
                    loss = steps(state.step)
                except FloatingPointError as error:
                    raise _stopped(error, stage, state, checkpoint) from error
                state.step += 1
                state.loss_sum += loss
                state.loss_count += 1
                observer.step(state.step)

                if state.step % every == 0 or state.step == stage.steps:
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


def _out_of_patience(stage: Stage, state: TrainingState, patience: int | None, evaluate_every: int) -> bool:
    if not stage.select or patience is None or state.best_value is None:
        return False
    return state.step - state.best_step >= patience * evaluate_every


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

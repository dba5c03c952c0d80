"""The training loop of every method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ultr.errors import TrainingError
from ultr.seeding import generator
from ultr.train.checkpoint import Checkpoint, Record, Standing
from ultr.train.lists import Batch, TrainingLists
from ultr.train.memory import keep_freed_memory
from ultr.train.progress import Observer, Silent
from ultr.train.recipe import Recipe
from ultr.train.sampler import ListSampler
from ultr.train.selection import Validation
from ultr.train.stage import Stage
from ultr.train.team import ALONE, Team

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Settings:
    """What the loop needs to know besides the stages."""

    recipe: Recipe
    learning_rate: float
    batch_size: int
    evaluate_every: int
    patience: int | None
    """Stop a stage after this many evaluations in a row without a new best value."""
    precision: str
    """What networks are multiplied in, one of `PRECISIONS`; their weights are kept in float32 whatever it is."""
    seed: int


def train(
    network: nn.Module,
    stages: Sequence[Stage],
    lists: TrainingLists,
    *,
    settings: Settings,
    validation: Validation | None = None,
    checkpoint: Checkpoint | None = None,
    observer: Observer | None = None,
) -> list[Record]:
    """Fit the network stage by stage, in place, and give the learning curve.

    Every `evaluate_every` steps the weights are validated and a checkpoint is written. A stage ends with its best
    weights (the last ones without validation). A run that finds its own checkpoint goes on from there.
    """
    keep_freed_memory()
    observer, team = observer or Silent(), Team.of_environment()
    optimizer = settings.recipe.build_optimizer(
        network, settings.learning_rate, steps_a_pass=lists.steps_a_pass(settings.batch_size)
    )
    standing, best = Standing(), None
    if checkpoint is not None and (saved := checkpoint.load(network, optimizer)) is not None:
        standing, best = saved
    run = f"{lists.lists} {lists.weights.sum()} {lists.clicks.sum()}" if checkpoint is None else checkpoint.run
    team.check_same(f"{run} {standing.stage} {standing.step}")

    for number, stage in enumerate(stages):
        if number < standing.stage:
            continue
        _train_only(network, stage.modules)
        sampler = ListSampler(lists.weights, settings.batch_size, seed=settings.seed, purpose=f"lists {number}")
        with observer.watch(stage.name, stage.steps, done=standing.step):
            if stage.begin is not None and standing.step == 0:
                stage.begin()

            while standing.step < stage.steps and not _out_of_patience(stage, standing, settings):
                for group in optimizer.param_groups:
                    group["lr"] = settings.learning_rate * settings.recipe.rate(standing.step / stage.steps)
                random = None
                if settings.recipe.sessions:
                    random = generator(settings.seed, f"sessions {number}", standing.step)
                drawn = sampler(standing.step)
                share = team.share(len(drawn))
                batch = lists.batch(drawn, share=share, sessions=random)
                try:
                    loss = train_step(
                        stage,
                        batch,
                        optimizer,
                        clip_norm=settings.recipe.clip_norm,
                        precision=settings.precision,
                        team=team,
                        portion=len(share) / len(drawn),
                    )
                except FloatingPointError as error:
                    raise _stopped(error, stage, standing, checkpoint) from error
                standing.step += 1
                standing.loss_sum += loss
                standing.loss_count += 1
                observer.step(standing.step)

                if standing.step % settings.evaluate_every == 0 or standing.step == stage.steps:
                    value = team.told(validation(stage) if validation is not None and team.leads else None)
                    if value is not None and (standing.best_value is None or value > standing.best_value):
                        standing.best_value, standing.best_step, best = value, standing.step, _copy(network)
                    record = Record(stage.name, standing.step, standing.loss_sum / standing.loss_count, value)
                    standing.history.append(record)
                    standing.loss_sum, standing.loss_count = 0.0, 0
                    observer.record(record, best=standing.best_value)
                    if checkpoint is not None and team.leads:
                        checkpoint.save(network, optimizer, best, standing)

        if best is not None and stage.select:
            network.load_state_dict(best)
        standing = Standing(stage=number + 1, history=standing.history)
        best = None

    _train_only(network, ())
    return standing.history


def train_step(
    stage: Stage,
    batch: Batch,
    optimizer: torch.optim.Optimizer,
    *,
    clip_norm: float,
    precision: str = "float32",
    team: Team = ALONE,
    portion: float = 1.0,
) -> float:
    """Move the weights by one batch and give its mean loss; a `FloatingPointError` leaves them where they were.

    The batch is this `portion` of the lists that the team drew. What its processes learn is added up: gradients, and
    the sums for a closed form.
    """
    with torch.autocast("cpu", PRECISIONS[precision], enabled=precision != "float32"):
        losses, sums = stage.losses(batch)
    loss = losses.mean() * portion
    objective = loss if stage.penalty is None else loss + stage.penalty() / team.size
    optimizer.zero_grad()
    objective.backward()  # type: ignore[no-untyped-call]
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    with torch.no_grad():
        loss, objective = loss.detach(), objective.detach()
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        team.add_up([*gradients, loss, objective])
        if sums is not None:
            team.add_up([sums])
    norm = float(nn.utils.clip_grad_norm_(parameters, clip_norm))
    value = float(objective)
    if not math.isfinite(value):
        raise FloatingPointError(f"the loss is {value}")
    if not math.isfinite(norm):
        raise FloatingPointError(f"the gradient norm is {norm}")
    optimizer.step()
    if stage.update is not None:
        assert sums is not None, "a stage with an update needs a loss that gives sums"
        with torch.no_grad():
            stage.update(sums)
    return float(loss)


def _train_only(network: nn.Module, modules: Sequence[nn.Module]) -> None:
    network.requires_grad_(False)
    for parameter in network.parameters():
        parameter.grad = None
    for module in modules:
        module.requires_grad_(True)


def _out_of_patience(stage: Stage, standing: Standing, settings: Settings) -> bool:
    if not stage.select or settings.patience is None or standing.best_value is None:
        return False
    return standing.step - standing.best_step >= settings.patience * settings.evaluate_every


def _stopped(
    error: FloatingPointError, stage: Stage, standing: Standing, checkpoint: Checkpoint | None
) -> TrainingError:
    last = standing.history[-1] if standing.history else None
    if checkpoint is None:
        kept = "no checkpoint was asked for"
    elif last is None:
        kept = "no checkpoint was written yet"
    else:
        kept = f"the last good checkpoint is {checkpoint.path} (stage {last.stage}, step {last.step})"
    return TrainingError(
        f"training stopped in stage {stage.name} at step {standing.step + 1} because {error}; {kept}; "
        "lower learning_rate or look for extreme feature values"
    )


def _copy(network: nn.Module) -> dict[str, Tensor]:
    with torch.no_grad():
        return {name: value.clone() for name, value in network.state_dict().items()}

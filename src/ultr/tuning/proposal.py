"""The settings to try next, by the tree-structured Parzen estimator of optuna."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ultr.errors import imported
from ultr.relevance.search_space import Between, OneOf, SearchSpace
from ultr.seeding import generator

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Settings = Mapping[str, Any]
"""Values of options by name."""


def propose(space: SearchSpace, tried: Sequence[tuple[Settings, float]], *, seed: int, number: int) -> dict[str, Any]:
    """The settings of the trial of this number, given those that were tried with their values; higher is better.

    The random numbers depend on seed and number alone, so a search that goes on where it was stopped tries the same.
    """
    optuna = imported("optuna", "tune", why="a search needs optuna")
    distributions = {name: _distribution(values) for name, values in space.items()}
    with _quiet():
        sampler = optuna.samplers.TPESampler(seed=int(generator(seed, "tuning", number).integers(2**32)))
        study = optuna.create_study(direction="maximize", sampler=sampler)
        for settings, value in tried:
            params = {name: _coded(space[name], settings[name]) for name in space}
            study.add_trial(optuna.trial.create_trial(params=params, distributions=distributions, value=value))
        asked = study.ask(distributions)
    return {name: _decoded(values, asked.params[name]) for name, values in space.items()}


def _distribution(values: Between | OneOf) -> BaseDistribution:
    """Values without an order by their places: optuna takes nothing else for them than numbers and texts."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(values, OneOf):
        return CategoricalDistribution(range(len(values.values)))
    if values.whole:
        return IntDistribution(int(values.low), int(values.high), log=True)
    return FloatDistribution(values.low, values.high, log=True)


def _coded(values: Between | OneOf, value: Any) -> Any:
    return values.values.index(value) if isinstance(values, OneOf) else value


def _decoded(values: Between | OneOf, found: Any) -> Any:
    return values.values[found] if isinstance(values, OneOf) else found


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the lines that optuna writes of every study."""
    logger = logging.getLogger("optuna")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)

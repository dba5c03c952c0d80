from __future__ import annotations

import math
from typing import Any

import numpy as np

from ultr.relevance.search_space import Between, OneOf, SearchSpace
from ultr.tuning.proposal import propose

SPACE: SearchSpace = {
    "learning_rate": Between(0.001, 0.1),
    "steps": Between(10, 1_000, whole=True),
    "hidden": OneOf(((8,), (16, 8))),
}


def value(settings: Any) -> float:
    """Highest for a learning rate of .02, 50 steps and the small network."""
    far = abs(math.log(settings["learning_rate"] / 0.02)) + abs(math.log(settings["steps"] / 50))
    return -far - float(settings["hidden"] != (8,))


def searched(count: int, *, seed: int) -> list[tuple[Any, float]]:
    tried: list[tuple[Any, float]] = []
    for number in range(count):
        settings = propose(SPACE, tried, seed=seed, number=number)
        tried.append((settings, value(settings)))
    return tried


def test_what_is_proposed_lies_in_the_search_space() -> None:
    for settings, _ in searched(15, seed=0):
        assert 0.001 <= settings["learning_rate"] <= 0.1
        assert 10 <= settings["steps"] <= 1_000
        assert isinstance(settings["steps"], int)
        assert settings["hidden"] in ((8,), (16, 8))


def test_the_same_seed_and_the_same_trials_give_the_same_proposal() -> None:
    tried = searched(12, seed=3)
    assert propose(SPACE, tried, seed=3, number=12) == propose(SPACE, tried, seed=3, number=12)
    assert propose(SPACE, tried, seed=3, number=12) != propose(SPACE, tried, seed=4, number=12)
    assert propose(SPACE, tried, seed=3, number=12) != propose(SPACE, tried, seed=3, number=13)


def test_it_learns_where_values_are_high() -> None:
    # The proposals after thirty trials are better than those before there was anything to learn from.
    first, last = ([], [])  # type: tuple[list[float], list[float]]
    for seed in range(3):
        tried = searched(35, seed=seed)
        first += [each for _, each in tried[:10]]
        last += [each for _, each in tried[-10:]]
    assert np.mean(last) > np.mean(first) + 0.5

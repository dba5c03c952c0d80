"""The exact distribution of click patterns, told as the story of one user, from each model's definition.

Nothing here comes from `ultr.clicks`: a model is compared with its paper, not with itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from ultr.arrays import Doubles

MAX_LABEL = 4
Pattern = tuple[int, ...]
Story = Callable[[Pattern], Iterator[tuple[Pattern, float]]]

THETA = (0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06)


@dataclass(frozen=True)
class Case:
    """A model with its options and the story that it must agree with."""

    name: str
    options: dict[str, object]
    story: Story

    def patterns(self, labels: Pattern, sessions: int = 1) -> dict[Pattern, float]:
        """The probability of each possible vector of click counts after some sessions."""
        one = self._one(labels)
        total = {(0,) * len(labels): 1.0}
        for _ in range(sessions):
            bigger: dict[Pattern, float] = defaultdict(float)
            for (before, p), (now, q) in product(total.items(), one.items()):
                bigger[tuple(a + b for a, b in zip(before, now, strict=True))] += p * q
            total = dict(bigger)
        return total

    def moments(self, labels: Pattern) -> tuple[Doubles, Doubles]:
        """The mean and the covariance of the clicks of one session."""
        one = self._one(labels)
        patterns, chances = np.array(list(one), dtype=float), np.array(list(one.values()))
        mean = chances @ patterns
        centred = patterns - mean
        return mean, (centred * chances[:, None]).T @ centred

    def _one(self, labels: Pattern) -> dict[Pattern, float]:
        chances = dict.fromkeys(product((0, 1), repeat=len(labels)), 0.0)
        for clicks, chance in self.story(labels):
            chances[clicks + (0,) * (len(labels) - len(clicks))] += chance
        return chances


def gain(label: int) -> float:
    return float((2**label - 1) / (2**MAX_LABEL - 1))


def noisy(label: int, noise: float) -> float:
    return noise + (1 - noise) * gain(label)


def independent(rate: Callable[[int, int], float]) -> Story:
    """Each document is clicked with its own chance, a function of grade and position (from 1)."""

    def story(labels: Pattern) -> Iterator[tuple[Pattern, float]]:
        for clicks in product((0, 1), repeat=len(labels)):
            chance = 1.0
            for i, click in enumerate(clicks):
                p = rate(labels[i], i + 1)
                chance *= p if click else 1 - p
            yield clicks, chance

    return story


def user_browsing(noise: float, gamma: Callable[[int, int], float]) -> Story:
    def story(labels: Pattern) -> Iterator[tuple[Pattern, float]]:
        for clicks in product((0, 1), repeat=len(labels)):
            chance, last = 1.0, 0
            for position, (label, click) in enumerate(zip(labels, clicks, strict=True), start=1):
                p = gamma(last, position) * noisy(label, noise)
                chance *= p if click else 1 - p
                last = position if click else last
            yield clicks, chance

    return story


def cascade(noise: float) -> Story:
    def story(labels: Pattern) -> Iterator[tuple[Pattern, float]]:
        still_reading = 1.0
        for i, label in enumerate(labels):
            yield (0,) * i + (1,), still_reading * noisy(label, noise)
            still_reading *= 1 - noisy(label, noise)
        yield (), still_reading

    return story


def dependent_click(noise: float, continuation: tuple[float, ...]) -> Story:
    def read(labels: Pattern, clicks: Pattern, chance: float) -> Iterator[tuple[Pattern, float]]:
        position = len(clicks)
        if position == len(labels):
            yield clicks, chance
            return
        attraction = noisy(labels[position], noise)
        yield from read(labels, (*clicks, 0), chance * (1 - attraction))
        yield (*clicks, 1), chance * attraction * (1 - continuation[position])
        yield from read(labels, (*clicks, 1), chance * attraction * continuation[position])

    return lambda labels: read(labels, (), 1.0)


def dynamic_bayesian(noise: float, satisfaction: float, persistence: float) -> Story:
    def read(labels: Pattern, clicks: Pattern, chance: float) -> Iterator[tuple[Pattern, float]]:
        position = len(clicks)
        if position == len(labels):
            yield clicks, chance
            return
        attraction = noisy(labels[position], noise)
        satisfied = satisfaction * gain(labels[position])
        skipped = chance * (1 - attraction)
        yield (*clicks, 0), skipped * (1 - persistence)
        yield from read(labels, (*clicks, 0), skipped * persistence)
        yield (*clicks, 1), chance * attraction * satisfied
        unsatisfied = chance * attraction * (1 - satisfied)
        yield (*clicks, 1), unsatisfied * (1 - persistence)
        yield from read(labels, (*clicks, 1), unsatisfied * persistence)

    return lambda labels: read(labels, (), 1.0)


def trust(noise: float) -> Story:
    def rate(label: int, position: int) -> float:
        plus, minus = 1 - (position + 1) / 100, 0.65 / position
        relevant = noisy(label, noise)
        return THETA[position - 1] * (plus * relevant + minus * (1 - relevant))

    return independent(rate)


_MATRIX = np.linspace(0.05, 0.95, 25).reshape(5, 5) ** np.array([1, 3, 0.5, 2, 1])
_GAMMA = np.random.default_rng(7).uniform(0.1, 1.0, size=(5, 5))
_LAMBDA = (0.9, 0.2, 0.7, 0.4, 0.5)

CASES = (
    Case("real", {"matrix": _MATRIX}, independent(lambda y, p: float(_MATRIX[y, p - 1]))),
    Case("trust", {}, trust(0.0)),
    Case("trust", {"noise": 0.1}, trust(0.1)),
    Case("position-based", {}, independent(lambda y, p: THETA[p - 1] * noisy(y, 0.1))),
    Case("position-based", {"noise": 0.3}, independent(lambda y, p: THETA[p - 1] * noisy(y, 0.3))),
    Case("user-browsing", {}, user_browsing(0.1, lambda last, p: THETA[p - last - 1])),
    Case(
        "user-browsing",
        {"noise": 0.2, "examination": _GAMMA},
        user_browsing(0.2, lambda last, p: float(_GAMMA[last, p - 1])),
    ),
    Case("cascade", {}, cascade(0.1)),
    Case("cascade", {"noise": 0.25, "positions": 6}, cascade(0.25)),
    Case("dependent-click", {}, dependent_click(0.1, (0.6,) * 10)),
    Case("dependent-click", {"noise": 0.0, "continuation": _LAMBDA}, dependent_click(0.0, _LAMBDA)),
    Case("dynamic-bayesian", {}, dynamic_bayesian(0.1, 0.9, 0.9)),
    Case(
        "dynamic-bayesian",
        {"noise": 0.3, "satisfaction": 0.5, "persistence": 0.7},
        dynamic_bayesian(0.3, 0.5, 0.7),
    ),
)

"""Attacks on exploration plans, which `ultr serve` reads."""

from __future__ import annotations

from pathlib import Path
from random import Random

from benchmarks.attack.damage import odd_json
from benchmarks.attack.folders import Folder
from ultr.data.exploration_plan import ExplorationPlan, PlannedPair
from ultr.files import read_json, write_json
from ultr.serving.exploration import parse_exploration


class Plans(Folder):
    """A plan of three pairs."""

    name = "exploration plans"
    share = 0.2

    def make(self, folder: Path) -> None:
        """Write a good one."""
        folder.mkdir()
        pairs = (
            PlannedPair(first=first, second=first + 1, probability=0.01 * first, pages=10_000, why="for want of links")
            for first in (1, 2, 5)
        )
        ExplorationPlan(pairs=tuple(pairs), most_ranks_lost=1).write(folder / "plan.json")

    def read(self, folder: Path) -> object:
        """The exploration, and what it does to lists."""
        exploration = parse_exploration(str(folder / "plan.json"))
        for shown in (0, 1, 3, 10):
            chances = exploration.propensities(range(shown))
            assert all(0 < chance <= 1 for chance in chances), "a plan must not be read that cannot be followed"
        return exploration

    def make_up(self, random: Random) -> str:
        """Exchange a value, with a digest that fits."""
        path = self.copy / "plan.json"
        content, how = odd_json(read_json(path), random)
        write_json(path, content, sealed=True)
        return how

"""A live table of the runs of an experiment: done, running, left, and the time to go."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ultr.experiments.run import Run
from ultr.experiments.store import Outcome
from ultr.printable import visible


class ProgressTable:
    """Shows how far the runs are, on standard error; a line for each finished run where that is no terminal."""

    def __init__(self, runs: Sequence[Run], outcomes: Sequence[Outcome], *, workers: int) -> None:
        self._runs = runs
        self._outcomes = list(outcomes)
        self._running: dict[str, float] = {}
        self._workers = workers
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def started(self, run: Run) -> None:
        """A run begins."""
        self._running[str(run)] = time.monotonic()

    def finished(self, outcome: Outcome) -> None:
        """A run is done."""
        self._running.pop(str(outcome.run), None)
        self._outcomes.append(outcome)
        if not self._console.is_terminal:
            measure, value = outcome.run.measures[-1], np.nanmean(outcome.values[-1])
            self._console.print(
                f"{len(self._outcomes)} of {len(self._runs)}: {visible(str(outcome.run))}: {measure} {value:.4f}, "
                f"{outcome.seconds:.0f} s; {self.time_to_go()}",
                soft_wrap=True,
                highlight=False,
                markup=False,
            )

    def show(self) -> None:
        """Draw the table again."""
        if self._console.is_terminal:
            self._live.update(self.table(), refresh=True)

    def time_to_go(self) -> str:
        """Time that the runs that are left will take: each as long as the finished ones of its label, or as all."""
        if not self._outcomes:
            return "time to go not known yet"
        done = {str(outcome.run) for outcome in self._outcomes}
        now, total = time.monotonic(), 0.0
        for run in self._runs:
            if str(run) not in done:
                alike = self._seconds(run.contender.label) or [outcome.seconds for outcome in self._outcomes]
                total += max(0.0, float(np.mean(alike)) - (now - self._running.get(str(run), now)))
        seconds = total / self._workers
        return f"{seconds / 60:.0f} min to go" if seconds >= 90 else f"{seconds:.0f} s to go"

    def table(self) -> Table:
        """The runs by label."""
        title = f"{len(self._outcomes)} of {len(self._runs)} runs done, {self.time_to_go()}"
        table = Table("method", "done", "running", "left", "seconds each", title=title, box=SIMPLE_HEAD)
        for column in table.columns[1:]:
            column.justify = "right"
        for label in dict.fromkeys(run.contender.label for run in self._runs):
            runs = [str(run) for run in self._runs if run.contender.label == label]
            seconds, running = self._seconds(label), sum(run in self._running for run in runs)
            left = len(runs) - len(seconds) - running
            mean = f"{np.mean(seconds):.0f}" if seconds else ""
            table.add_row(Text(visible(label)), str(len(seconds)), str(running or ""), str(left or ""), mean)
        return table

    def _seconds(self, label: str) -> list[float]:
        """Seconds of each finished run of a label."""
        return [outcome.seconds for outcome in self._outcomes if outcome.run.contender.label == label]

"""Showing how training goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ultr.train.checkpoint import Record

WIDE = 120
"""Columns of a terminal that has room for all figures."""
LINES = 10
"""Lines for a stage after its first one, where standard error is no terminal."""


class Observer(Protocol):
    """Something that is told how training goes; one that derives from it does nothing but what it says itself."""

    def watch(self, stage: str, steps: int, *, done: int) -> AbstractContextManager[None]:
        """A stage begins, or goes on after `done` steps; leaving the context is its end, good or bad."""
        return nullcontext()

    def step(self, done: int) -> None:
        """So many steps of the stage are done."""
        return

    def record(self, record: Record, *, best: float | None) -> None:
        """The learning curve has a new line."""
        return


class Silent(Observer):
    """An observer that shows nothing."""


class Bar:
    """A progress bar for each stage, with loss and validation value, on standard error.

    It fits into 80 columns. Where standard error is no terminal, the first record and one in each tenth of a stage
    are lines, however long.
    """

    def __init__(self, title: str, measure: Callable[[str], str] = lambda _: "validation") -> None:
        self._title, self._measure = title, measure
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._steps, self._tenths = 1, -1

    @contextmanager
    def watch(self, stage: str, steps: int, *, done: int) -> Iterator[None]:
        """Show the bar of a stage while it is trained."""
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=8),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[figures]}"),
            console=Console(stderr=True),
        )
        self._steps, self._tenths = max(steps, 1), LINES * done // max(steps, 1) if done else -1
        self._task = self._bar.add_task(f"{self._title} · {stage}", total=steps, completed=done, figures="")
        with self._bar:
            if done:
                self._bar.console.print(f"going on from step {done} of stage {stage}", soft_wrap=True)
            yield
        self._bar = None

    def step(self, done: int) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done)

    def record(self, record: Record, *, best: float | None) -> None:
        """Show loss, value and best value; in a narrow terminal only the last of them."""
        if self._bar is None:
            return
        loss = [] if record.loss is None else [f"loss {record.loss:.4f}"]
        value = [] if record.value is None else [f"{self._measure(record.stage)} {record.value:.4f}, best {best:.4f}"]
        console = self._bar.console
        short = [*loss, *([] if record.value is None else [f"best {best:.4f}"])][-1:]
        narrow = console.width < WIDE
        self._bar.update(self._task, completed=record.step, figures=", ".join(short if narrow else [*loss, *value]))
        tenths = LINES * record.step // self._steps
        if not console.is_terminal and tenths > self._tenths:
            self._tenths = tenths
            line = f"{self._title} · {record.stage} · step {record.step}: {', '.join([*loss, *value])}"
            console.print(line, soft_wrap=True)

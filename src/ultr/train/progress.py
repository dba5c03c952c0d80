"""Showing how training goes."""

from __future__ import annotations

from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ultr.train.checkpoint import Record


class Observer(Protocol):
    """Something that is told how training goes."""

    def start(self, stage: str, steps: int, *, done: int) -> None:
        """A stage begins, or goes on after `done` steps."""
        ...

    def step(self, done: int) -> None:
        """So many steps of the stage are done."""
        ...

    def record(self, record: Record, *, best: float | None) -> None:
        """The learning curve has a new line."""
        ...

    def finish(self) -> None:
        """The stage is over."""
        ...


class Silent:
    """An observer that shows nothing."""

    def start(self, stage: str, steps: int, *, done: int) -> None:
        """Show nothing."""

    def step(self, done: int) -> None:
        """Show nothing."""

    def record(self, record: Record, *, best: float | None) -> None:
        """Show nothing."""

    def finish(self) -> None:
        """Show nothing."""


class Bar:
    """A progress bar for each stage, with loss and validation value, on standard error."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._bar: Progress | None = None
        self._task = TaskID(0)

    def start(self, stage: str, steps: int, *, done: int) -> None:
        """Open the bar of a stage."""
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=8),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[figures]}"),
            console=Console(stderr=True),
        )
        self._bar.start()
        self._task = self._bar.add_task(f"{self._title} · {stage}", total=steps, completed=done, figures="")

    def step(self, done: int) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done)

    def record(self, record: Record, *, best: float | None) -> None:
        """Show loss, value and best value."""
        figures = f"loss {record.loss:.4f}"
        if record.value is not None:
            figures += f" valid {record.value:.4f} best {best:.4f}"
        if self._bar is not None:
            self._bar.update(self._task, completed=record.step, figures=figures)

    def finish(self) -> None:
        """Close the bar."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

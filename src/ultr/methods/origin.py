"""Where a model comes from, so that it can be made and examined again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from ultr.datasets.source import LETOR_LIKE


class Origin(BaseModel):
    """What a model was trained with.

    Paths are seen from the model's own folder, so that they stay right wherever the command was typed, and when a log
    and its models are moved together.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: str
    """What to type to train it again."""
    log: str | None = None
    """The folder of the click log it learned from."""
    data: str | None = None
    """The judged lists it learned from, as `--data` has them."""
    validation: str = "none"
    """What chose the weights: clicks, none, or labels as `--validate` has them."""
    hold_out: str | None = None
    """What was held out to choose by clicks: query, page, time or hash."""
    fold: int = 1
    seed: int = 0


def seen_from(folder: str | Path, source: str) -> str:
    """A path, or the one in `NAME=FOLDER`, as it is seen from a folder; generated data have none.

    >>> seen_from("runs/model", "runs/log"), seen_from("model", "mq2007=data"), seen_from("model", "letor-like=60")
    ('../log', 'mq2007=../data', 'letor-like=60')
    """
    return _with_path(source, lambda path: os.path.relpath(path, folder))


def found_from(folder: str | Path, source: str) -> str:
    """What `seen_from` was given, as it is seen from the current folder.

    >>> found_from("runs/model", "../log"), found_from("runs/model", "letor-like=60")
    ('runs/log', 'letor-like=60')
    """
    return _with_path(source, lambda path: os.path.normpath(Path(folder) / path))


def _with_path(source: str, change: Callable[[str], str]) -> str:
    name, given, path = source.partition("=")
    if name == LETOR_LIKE:
        return source
    return f"{name}={change(path)}" if given else change(source)

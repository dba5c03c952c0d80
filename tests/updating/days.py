"""Days of a small shop: raw logs, the click log of the first days, and a run that begins with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

from ultr.preparation.log import prepare
from ultr.updating import RunFolder, UpdateSettings, begin

QUERIES, DOCUMENTS, SHOWN = 160, 6, 4
FIRST, SECOND, THIRD = "2026-03-02", "2026-03-03", "2026-03-04"
OPTIONS: dict[str, Any] = {"hidden": [8], "steps": 20}


def write_day(folder: Path, day: str, *, pages: int = 1_500, worth: float = 1.0) -> Path:
    """The raw log of a day: ranked by the first feature with many swaps, clicked for the second."""
    random = np.random.default_rng(int(day[-2:]))
    features = np.random.default_rng(0).normal(size=(QUERIES, DOCUMENTS, 3)).round(3)
    query = random.integers(QUERIES, size=pages)
    order = np.argsort(-(features[query, :, 0] + 0.8 * random.normal(size=(pages, DOCUMENTS))), axis=1)[:, :SHOWN]
    shown = np.take_along_axis(features[query], order[:, :, None], axis=1)
    chance = 1 / (1 + np.exp(-worth * 2 * shown[:, :, 1])) / np.sqrt(np.arange(1, SHOWN + 1))
    columns = {
        "impression": np.repeat([f"{day}-{number}" for number in range(pages)], SHOWN),
        "query": np.repeat([f"q{number}" for number in query], SHOWN),
        "document": [f"d{number}" for number in order.ravel()],
        "position": np.tile(np.arange(1, SHOWN + 1), pages),
        "click": (random.random((pages, SHOWN)) < chance).ravel().astype(int),
        "day": [day] * (pages * SHOWN),
        **{f"x{number}": shown[:, :, number].ravel() for number in range(3)},
    }
    path = folder / f"{day}.parquet"
    folder.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.table(columns), path)
    return path


def first_log(folder: Path) -> Path:
    """The click log of the first day."""
    path = write_day(folder / "clicks", FIRST)
    prepare(path, folder / "log", time="day", periods="day", features=["x0", "x1", "x2"])
    return folder / "log"


def settings_for(**changed: Any) -> UpdateSettings:
    """Settings of a run beside the log and the raw logs."""
    usual = {
        "log": "../log",
        "source": "../clicks/{day}.parquet",
        "served": "../served.onnx",
        "method": "click",
        "options": OPTIONS,
        "reserve": 0.3,
        "tolerance": 5.0,
        "largest_shift": 10.0,
    }
    return UpdateSettings.of(usual | changed, where="a test")


def new_run(folder: Path, **changed: Any) -> RunFolder:
    """A run with the log of the first day, and the raw logs of the two that follow."""
    first_log(folder)
    for day in (SECOND, THIRD):
        write_day(folder / "clicks", day)
    begin(folder / "run", settings_for(**changed))
    return RunFolder(folder / "run")


def change(run: RunFolder, **changed: Any) -> RunFolder:
    """The run with other settings, as somebody has edited them."""
    run.settings.model_copy(update=changed).write(run.path / "settings.toml")
    return RunFolder(run.path)

"""The folder of a saved click log: its manifest, and its arrays left on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, ValidationError

from ultr.data.split import Split
from ultr.errors import DataError
from ultr.files import read_json

FORMAT = "ultr click log 1"


class Levels(BaseModel):
    """The name and the levels of a bias factor."""

    model_config = ConfigDict(extra="forbid")
    name: str
    levels: tuple[str, ...]


class LogManifest(BaseModel):
    """What is not in the arrays; what a log does not have is left out."""

    model_config = ConfigDict(extra="forbid")
    format: str
    factors: tuple[Levels, ...]
    feature_names: tuple[str, ...]
    pair_clicks: bool = False
    period_names: tuple[str, ...] | None = None
    grades: tuple[str, ...] | None = None
    splits: tuple[Split, ...] = ()


def read_manifest(folder: Path) -> LogManifest:
    """The manifest of a saved log, or a `DataError` that says what the folder is not."""
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}; give the folder of a saved click log")
    try:
        manifest = LogManifest.model_validate(read_json(folder / "manifest.json"))
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise DataError(
            f"{folder} is not a click log: its manifest is wrong at {where!r}; write the log again"
        ) from error
    if manifest.format != FORMAT:
        raise DataError(f"{folder} is not a click log that this version reads; simulate or prepare it again")
    return manifest


def read_array(path: Path) -> npt.NDArray[Any]:
    """An array that stays on disk until it is used."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path} is missing or damaged ({error}); write the click log again") from error
    if not isinstance(array, np.ndarray):
        raise DataError(f"{path} is not a .npy array; write the click log again")
    return array

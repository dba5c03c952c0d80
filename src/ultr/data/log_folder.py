"""The folder of a saved click log: its manifest, and its arrays left on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from ultr.arrays import Strings
from ultr.data.array_file import read_array
from ultr.data.bias_factor import BiasFactor
from ultr.data.grades import Grades
from ultr.data.placements import Placements
from ultr.data.signal import Signal
from ultr.data.split import Split
from ultr.errors import DataError
from ultr.files import read_json, write_json

if TYPE_CHECKING:
    from ultr.data.click_log import ClickLog

FORMAT = "ultr click log 1"
ARRAYS = ("features", "documents", "offsets", "impressions", "clicks", "queries", "query_ids")
"""The arrays that every log has."""


class Levels(BaseModel):
    """The name and the levels of a bias factor."""

    model_config = ConfigDict(extra="forbid")
    name: str
    levels: tuple[str, ...]
    edges: tuple[FiniteFloat, ...] = ()


class LogManifest(BaseModel):
    """What is not in the arrays; what a log does not have is left out."""

    model_config = ConfigDict(extra="forbid")
    format: str
    factors: tuple[Levels, ...]
    feature_names: tuple[str, ...]
    pair_clicks: bool = False
    period_names: tuple[str, ...] | None = None
    grades: tuple[str, ...] | None = None
    signals: tuple[str, ...] = ()
    categories: Mapping[str, tuple[str, ...]] = {}
    placements: bool = False
    splits: tuple[Split, ...] = ()
    fingerprint: str | None = None
    """That of the log, which its arrays must have; None if it was written before there was one."""


def write_log(log: ClickLog, folder: Path) -> None:
    """Write the arrays and the manifest of a log into a folder that is there."""
    arrays = {name: getattr(log, name) for name in ARRAYS}
    arrays |= {f"factor-{number}": factor.values for number, factor in enumerate(log.factors)}
    for name, array in (arrays | log.optional()).items():
        path = folder / f"{name}.npy"
        # What was made in its place is there already.
        if not (isinstance(array, np.memmap) and array.filename is not None and Path(array.filename) == path.resolve()):
            np.save(path, array, allow_pickle=False)
    manifest = LogManifest(
        format=FORMAT,
        factors=tuple(Levels(name=each.name, levels=each.levels, edges=each.edges) for each in log.factors),
        feature_names=log.feature_names,
        pair_clicks=log.pair_clicks is not None,
        period_names=None if log.periods is None else log.period_names,
        grades=None if log.grades is None else log.grades.levels,
        signals=tuple(signal.name for signal in log.signals),
        categories=log.categories,
        placements=log.placements is not None,
        splits=log.splits,
        fingerprint=log.fingerprint(),
    )
    write_json(folder / "manifest.json", manifest.model_dump(exclude_defaults=True), sealed=True)


def read_fields(folder: Path, manifest: LogManifest) -> dict[str, Any]:
    """The fields of a saved log by name; its arrays stay on disk until they are used."""
    optional = {"pair_clicks": manifest.pair_clicks, "periods": manifest.period_names is not None}
    names = [*ARRAYS, *(name for name, there in optional.items() if there)]
    grades = manifest.grades
    return {
        **{name: read_array(folder / f"{name}.npy") for name in names},
        "factors": tuple(
            BiasFactor(each.name, read_array(folder / f"factor-{number}.npy"), each.levels, each.edges)
            for number, each in enumerate(manifest.factors)
        ),
        "signals": tuple(
            Signal(name, read_array(folder / f"signal-{number}.npy")) for number, name in enumerate(manifest.signals)
        ),
        "grades": None if grades is None else Grades(read_array(folder / "grades.npy"), grades),
        "feature_names": manifest.feature_names,
        "period_names": manifest.period_names or (),
        "categories": manifest.categories,
        "placements": Placements(
            read_array(folder / "placement-propensities.npy"), read_array(folder / "base-positions.npy")
        )
        if manifest.placements
        else None,
        "splits": manifest.splits,
    }


def read_manifest(folder: Path) -> LogManifest:
    """The manifest of a saved log, or a `DataError` that says what the folder is not."""
    if folder.is_file():
        raise DataError(
            f"{folder} is a file and not the folder of a click log; prepare it first: "
            f"ultr prepare {quote(str(folder))} --out log"
        )
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}; give the folder of a saved click log")
    content = read_json(folder / "manifest.json")
    if isinstance(content, dict) and str(content.get("format")).startswith("ultr model"):
        raise DataError(
            f"{folder} is a model and no click log; give a folder that `ultr prepare` or `ultr simulate` wrote"
        )
    try:
        manifest = LogManifest.model_validate(content)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise DataError(
            f"{folder} is not a click log: its manifest is wrong at {where!r}; write the log again"
        ) from error
    if manifest.format != FORMAT:
        raise DataError(f"{folder} is not a click log that this version reads; simulate or prepare it again")
    return manifest


def read_document_ids(folder: Path, count: int) -> Strings | None:
    """The id of each row of the features of a prepared log; None if the log was not prepared from raw rows."""
    from pyarrow import parquet

    path = folder / "documents.parquet"
    if not path.is_file():
        return None
    table = parquet.read_table(path, columns=["row", "document"])
    names = np.array(table["document"].to_pylist(), dtype=np.str_)
    if not np.array_equal(np.sort(rows := table["row"].to_numpy()), np.arange(count)):
        raise DataError(f"{path} does not belong to the log beside it; prepare the log again")
    ids = np.empty_like(names)
    ids[rows] = names
    return ids

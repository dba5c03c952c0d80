"""Logs that grow day by day: what is kept of a log besides it, so that days can be added and dropped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from ultr import checks
from ultr.arrays import Integers
from ultr.data import ragged
from ultr.data.array_file import read_array
from ultr.data.bias_factor import BiasFactor, ordered_levels
from ultr.data.click_log import ClickLog
from ultr.data.log_checks import trusted
from ultr.data.placements import Placements
from ultr.data.signal import Signal
from ultr.errors import DataError, OptionError
from ultr.files import jsonable, read_json, write_json
from ultr.preparation.assembly import EVENTS
from ultr.preparation.columns import Columns
from ultr.preparation.documents import cells_of
from ultr.preparation.engine import Engine
from ultr.preparation.feature_columns import CATEGORY, FeatureColumn
from ultr.preparation.options import Options
from ultr.preparation.robots import RobotRules
from ultr.preparation.sources import open_table
from ultr.preparation.summary import Summary

RAW = "raw"
"""The folder of the log with all values of its factors and no features, inside the folder of the log."""
SETTINGS = "settings.json"
"""The options that a log was prepared with, inside `RAW`."""
DOCUMENTS = "documents.parquet"
"""Which document each row of the features is, inside the folder of the log."""
_BLOCK = 100_000
_NOT_KEPT = ("columns", "features_from", "clicks_from", "engine", "memory", "strict", "guessed")


@dataclass(frozen=True)
class Grown:
    """A prepared log that days can be added to."""

    folder: Path
    raw: ClickLog
    """The log with all values of its factors and no features."""
    settings: dict[str, Any]
    """The options that it was prepared with."""
    features: tuple[FeatureColumn, ...]
    summary: Summary

    @property
    def edges(self) -> dict[str, tuple[float, ...]]:
        """The edges of each factor; none = categorical."""
        return {factor.name: factor.edges for factor in self.raw.factors}

    @property
    def categories(self) -> frozenset[str]:
        """Names of its categorical features."""
        return frozenset(column.name for column in self.features if column.kind == CATEGORY)

    @classmethod
    def load(cls, folder: str | Path) -> Grown:
        """The log in a folder, or a `DataError` if nothing can be added to it."""
        folder = Path(folder)
        # A damaged log must not live on in the next one under a fingerprint that fits.
        ClickLog.load(folder).fingerprint()
        if not (folder / RAW / SETTINGS).is_file():
            raise DataError(
                f"nothing can be added to {folder}: days are, and it was not prepared by day; "
                "prepare it again with --time COLUMN --periods day"
            )
        options, features = _read_settings(folder)
        raw, summary = ClickLog.load(folder / RAW), Summary.read(folder)
        raw.fingerprint()
        if summary is None:
            raise DataError(f"{folder} has no summary.json, so nothing can be added to it; prepare all days again")
        return cls(folder, raw, options, features, summary)

    def options(self, given: dict[str, Any]) -> dict[str, Any]:
        """The options of the log with these in their place; those that would make another log are refused."""
        for name in ("fewest_pages", "fewest_user_pages"):
            if self.settings.get(name, 1) > 1:
                raise OptionError(
                    f"{self.folder} was prepared with {name} = {self.settings[name]}, which counts the pages of all "
                    "days together, so that nothing can be added to it; prepare all days again"
                )
        for name, value in given.items():
            if name not in _NOT_KEPT and name in self.settings and jsonable(value) != self.settings[name]:
                raise OptionError(
                    f"{self.folder} was prepared with {name} = {self.settings[name]!r}, and what is added must be, "
                    f"too; leave {name} out, or prepare all days again"
                )
        robots = {"robots": RobotRules(**self.settings["robots"])} if "robots" in self.settings else {}
        return self.settings | robots | given

    def documents(self, engine: Engine, columns: tuple[FeatureColumn, ...]) -> Any:
        """Its documents as a table of the engine: query, document, x0, x1, ..., fault, old."""
        import pyarrow
        from pyarrow import parquet

        if columns != self.features:
            raise DataError(
                f"the features of {engine.source} are not those of {self.folder}; give the same columns of one kind"
            )
        features = read_array(self.folder / "features.npy")
        path = engine.work / "old_documents.parquet"

        def values(batch: Any, rows: Integers) -> Iterator[Any]:
            for i, name in enumerate(name for column in columns for name in column.names):
                if name in self.categories:
                    yield batch.column(f"category {name}")
                else:
                    yield pyarrow.array(np.asarray(features[rows, i]), from_pandas=True)

        writer = None
        for batch in parquet.ParquetFile(self.folder / DOCUMENTS).iter_batches(_BLOCK):
            rows = batch.column("row").to_numpy().astype(np.int64)
            table = pyarrow.table(
                {
                    **{name: batch.column(name) for name in ("query", "document")},
                    **dict(zip(cells_of(columns), values(batch, rows), strict=True)),
                    "fault": np.zeros(len(rows), dtype=np.int16),
                    "old": rows,
                }
            )
            writer = writer or parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()
        return engine.connection.read_parquet(str(path))

    def labels(self, engine: Engine) -> Any | None:
        """The labels of its documents: query, document, low and high; None if it has none."""
        table = open_table(engine, self.folder / DOCUMENTS)
        if "low" not in table.columns:
            return None
        return table.filter(table.low.notnull()).select("query", "document", "low", "high")


def keep_growing(
    folder: Path, raw: ClickLog, options: Options, columns: Columns, features: tuple[FeatureColumn, ...]
) -> None:
    """Write what is needed to add days later."""
    inside = folder / RAW
    inside.mkdir()
    empty = np.zeros((len(raw.features), 0), dtype=np.float32)
    trusted(raw, features=empty, feature_names=(), categories={}, grades=None).write(inside)
    names = {each.name for each in fields(Columns)} - set(_NOT_KEPT)
    kept = {each.name: getattr(options, each.name) for each in fields(Options) if each.name not in _NOT_KEPT}
    kept |= {name: getattr(columns, name) for name in names if name != "features"}
    write_json(
        inside / SETTINGS,
        {
            "options": {name: jsonable(value) for name, value in kept.items()},
            "features": TypeAdapter(tuple[FeatureColumn, ...]).dump_python(features),
            "documents": _digest(folder / DOCUMENTS),
        },
        sealed=True,
    )


def _read_settings(folder: Path) -> tuple[dict[str, Any], tuple[FeatureColumn, ...]]:
    path = folder / RAW / SETTINGS
    content = read_json(path)
    try:
        options = TypeAdapter(dict[str, Any]).validate_python(content["options"])
        features = TypeAdapter(tuple[FeatureColumn, ...]).validate_python(content["features"])
        # Logs of before there were digests have none.
        if content.get("documents") not in (None, _digest(folder / DOCUMENTS)):
            raise ValueError(f"the digest of {DOCUMENTS} is another")
    except (OSError, KeyError, TypeError, ValueError) as error:
        why = str(error).partition("\n")[0]
        raise DataError(
            f"{folder} is damaged ({why}), so nothing can be added to it; prepare all days again"
        ) from error
    return options, features


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, lambda: blake2b(digest_size=16)).hexdigest()


def check_new_days(old: ClickLog, new: tuple[str, ...], *, source: str, folder: Path) -> None:
    """Raise a `DataError` if a day that is to be added is there already."""
    again = sorted(set(old.period_names) & set(new))
    if again:
        raise DataError(
            f"{source} has rows of {again[0]}, a day that is in {folder} already; adding them would count pages twice: "
            "leave that day out, or prepare all days again"
        )


def joined(old: ClickLog, new: ClickLog, old_rows: Integers) -> ClickLog:
    """Both logs as one; `old_rows` has the number that each document of the old one has in the new one."""
    ids = np.union1d(old.query_ids, new.query_ids)
    periods = tuple(sorted({*old.period_names, *new.period_names}))
    parts = (trusted(old, documents=old_rows[old.documents], features=new.features), new)
    factors = tuple(_joined_factor(one, other) for one, other in zip(old.factors, new.factors, strict=True))
    names = dict.fromkeys(signal.name for part in (new, old) for signal in part.signals)
    signals = tuple(Signal(name, np.concatenate([_totals(part, name) for part in parts])) for name in names)
    pairs = None
    if old.pair_clicks is not None and new.pair_clicks is not None:
        pairs = np.concatenate([old.pair_clicks, new.pair_clicks])
    return replace(
        new,
        documents=np.concatenate([part.documents for part in parts]),
        offsets=ragged.from_lengths(np.concatenate([part.lengths for part in parts])),
        factors=factors,
        impressions=np.concatenate([part.impressions for part in parts]),
        clicks=np.concatenate([part.clicks for part in parts]),
        queries=np.concatenate([np.searchsorted(ids, part.query_ids)[part.queries] for part in parts]),
        query_ids=ids,
        periods=np.concatenate([_period_numbers(part, periods) for part in parts]),
        period_names=periods,
        signals=signals,
        pair_clicks=pairs,
        placements=Placements.joined((part.placements, len(part.documents)) for part in parts),
    )


def last_days(log: ClickLog, days: int) -> ClickLog:
    """The part of a log that its last days have, a day without a page counting as well."""
    checks.integer("last", days, at_least=1)
    assert log.periods is not None, "a log that grows has days"
    names = np.array(log.period_names, dtype="datetime64[D]")
    first = int((names <= names.max() - np.timedelta64(days, "D")).sum())
    part = log.part(log.periods >= first, ())
    assert part.periods is not None
    return trusted(part, periods=part.periods - first, period_names=log.period_names[first:])


def _totals(log: ClickLog, signal: str) -> Integers:
    """The totals of a signal; a part of the log without a row of several clicks does not count them apart."""
    known = {each.name: each.totals for each in log.signals}
    return known.get(signal, log.clicks) if signal == EVENTS else known[signal]


def _joined_factor(old: BiasFactor, new: BiasFactor) -> BiasFactor:
    levels = old.levels if old.edges else tuple(ordered_levels({*old.levels, *new.levels}))
    place = {level: number for number, level in enumerate(levels)}
    values = [
        np.array([place[level] for level in factor.levels], dtype=np.int32)[factor.values] for factor in (old, new)
    ]
    return BiasFactor(old.name, np.concatenate(values), levels, old.edges)


def _period_numbers(log: ClickLog, names: tuple[str, ...]) -> Integers:
    assert log.periods is not None, "a log that grows has days"
    return np.array([names.index(name) for name in log.period_names], dtype=np.int64)[log.periods]

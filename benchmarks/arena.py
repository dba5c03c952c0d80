"""What every ranker of a comparison is given, in a folder: one click log, its single sessions, and judged lists."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ultr.data import ragged
from ultr.data.click_log import ClickLog
from ultr.data.judged import JudgedLists
from ultr.data.sessions import draw_sessions

PARTS = ("validation", "test")
ARRAYS = ("features", "labels", "offsets")


@dataclass(frozen=True, eq=False)
class Sessions:
    """Every impression of a log on its own, with or without clicks."""

    documents: npt.NDArray[np.int32]
    """[sessions, shown], rows of the features of the log."""
    positions: npt.NDArray[np.int8]
    """From 1; 0 where a page has fewer documents."""
    clicks: npt.NDArray[np.int8]

    @classmethod
    def of(cls, log: ClickLog, *, seed: int) -> Sessions:
        """The sessions that a collapsed log may stem from."""
        drawn = draw_sessions(log, sessions=int(log.impressions.sum()), seed=seed, only_clicked=False)
        documents, positions, clicks = (
            ragged.pad(values, drawn.offsets, width=int(log.lengths.max()), fill=0)
            for values in (drawn.documents, drawn.positions, drawn.clicks)
        )
        return cls(documents.astype(np.int32), positions.astype(np.int8), clicks.astype(np.int8))


@dataclass(frozen=True, eq=False)
class Arena:
    """A click log, once collapsed and once session by session, the lists that choose weights and those that judge."""

    log: ClickLog
    sessions: Sessions
    validation: JudgedLists
    test: JudgedLists

    def save(self, folder: Path) -> None:
        """Write all of it."""
        self.log.save(folder / "log")
        for part in PARTS:
            for name in ARRAYS:
                np.save(folder / f"{part}-{name}.npy", getattr(getattr(self, part), name))
        for name in Sessions.__annotations__:
            np.save(folder / f"sessions-{name}.npy", getattr(self.sessions, name))

    @classmethod
    def load(cls, folder: Path) -> Arena:
        """Read it again, arrays mapped, so that nobody pays for what it does not use."""

        def array(name: str) -> Any:
            return np.load(folder / f"{name}.npy", mmap_mode="r")

        log = ClickLog.load(folder / "log")
        validation, test = (
            JudgedLists.of(**{name: array(f"{part}-{name}") for name in ARRAYS}, feature_names=log.feature_names)
            for part in PARTS
        )
        sessions = Sessions(**{name: array(f"sessions-{name}") for name in Sessions.__annotations__})
        return cls(log, sessions, validation, test)

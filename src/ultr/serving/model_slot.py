"""The ranker that answers now, and how another takes its place while requests go on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Literal

import numpy as np

from ultr.errors import ModelFileError
from ultr.scoring import Scorer

Stamp = tuple[int, int, int]
"""Time, size and inode, which change when a file does."""


@dataclass(frozen=True)
class Loaded:
    """A ranker and since when it answers."""

    scorer: Scorer
    since: datetime


class ModelSlot:
    """Holds one ranker. A request takes `current` once and finishes with it, whatever is put in meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.current = Loaded(_load(path), datetime.now(UTC))
        self._seen = self._waiting = stamp(path)
        self._lock = Lock()

    def reload(self) -> Literal["new", "same"]:
        """Put in what the file holds now. A file that cannot serve is a `ModelFileError`, and the old ranker stays."""
        with self._lock:
            self._seen = stamp(self.path)
            scorer = _load(self.path)
            if scorer.digest == self.current.scorer.digest:
                return "same"
            self.current = Loaded(scorer, datetime.now(UTC))
            return "new"

    def has_changed(self) -> bool:
        """True if the file is another than the one that was last read, and the same as at the last call.

        A file that is still being copied changes from call to call and is left alone.
        """
        now = stamp(self.path)
        settled = now == self._waiting
        self._waiting = now
        return settled and now is not None and now != self._seen


def stamp(path: Path) -> Stamp | None:
    """The stamp of a file; None if it is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _load(path: Path) -> Scorer:
    """The ranker of a file, after it has scored two queries of typical candidates.

    One thread a request: side by side they use the cores better than one after the other on all of them.
    """
    scorer = Scorer.load(path, threads=1)
    typical = np.tile(np.array(scorer.card.typical, dtype=np.float32), (3, 1))
    try:
        scores = scorer.score(typical, np.array([0, 2, 3]))
    # onnxruntime has an exception of its own for each way to fail, and no common one.
    except Exception as error:
        raise ModelFileError(f"{path} cannot score typical candidates; export the model again") from error
    if scores.shape != (3,) or not np.isfinite(scores).all():
        raise ModelFileError(f"{path} has no finite scores for typical candidates; export the model again")
    return scorer

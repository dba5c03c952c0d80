"""The ranker that answers now, and how another takes its place while requests go on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from ultr.scoring import Scorer
from ultr.scoring.scorer import TRIAL_SECONDS

Stamp = tuple[int, int, int]
"""Time, size and inode, which change when a file does."""


@dataclass(frozen=True)
class Loaded:
    """A ranker and since when it answers."""

    scorer: Scorer
    since: datetime


class ModelSlot:
    """Holds one ranker. A request takes `current` once and finishes with it, whatever is put in meanwhile."""

    def __init__(self, path: Path, *, seconds: float = TRIAL_SECONDS) -> None:
        self.path = path
        self.seconds = seconds
        """For a ranker to score typical candidates before it is put in."""
        self._seen = self._waiting = stamp(path)
        self.current = Loaded(self.read(), datetime.now(UTC))

    def read(self) -> Scorer:
        """The ranker that the file holds now; one that cannot serve is a `ModelFileError`."""
        self._seen = stamp(self.path)
        # One thread a request: side by side they use the cores better than one after the other on all of them.
        return Scorer.load(self.path, threads=1, seconds=self.seconds)

    def put(self, scorer: Scorer) -> Literal["new", "same"]:
        """Let this ranker answer from now on."""
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

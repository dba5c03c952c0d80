"""A ranker that scores what is asked without being shown."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from threading import Condition, Thread

import numpy as np
from onnxruntime import RunOptions

from ultr.arrays import Doubles, Floats, Integers
from ultr.scoring import Scorer
from ultr.serving.metrics import Metrics
from ultr.serving.model_slot import ModelSlot
from ultr.serving.rival import obstacle

TOP = 10
MOST_BYTES = 32 * 2**20
"""Size of the features that wait to be scored; queries beyond it are dropped."""
_CLOSE_SECONDS = 1.0


@dataclass(frozen=True)
class Divergence:
    """The difference between the orders that two rankers give to the same candidates."""

    overlap: float
    """Share of the first ten of one that are among the first ten of the other."""
    first_changed: bool
    """True if another candidate is first."""
    largest_move: int
    """The most ranks by which a candidate among the first ten of either moves."""
    drift: float
    """Mean absolute difference of scores, each ranker's less their mean and in units of their standard deviation."""

    @classmethod
    def of(cls, old: Floats | Doubles, new: Floats | Doubles, *, top: int = TOP) -> Divergence:
        """The divergence of the scores of one query, which has at least one candidate.

        >>> Divergence.of(np.array([3.0, 2.0, 1.0]), np.array([30.0, 20.0, 10.0]))
        Divergence(overlap=1.0, first_changed=False, largest_move=0, drift=0.0)
        """
        orders = [np.argsort(-scores, kind="stable") for scores in (old, new)]
        ranks = [np.argsort(order, kind="stable") for order in orders]
        first, second = (order[:top] for order in orders)
        either = np.union1d(first, second)
        return cls(
            overlap=len(np.intersect1d(first, second)) / len(first),
            first_changed=bool(first[0] != second[0]),
            largest_move=int(np.abs(ranks[0][either] - ranks[1][either]).max()),
            drift=float(np.abs(_standard(old) - _standard(new)).mean()),
        )


class Shadow:
    """Takes requests without ever waiting, and compares their order with that of another ranker, one at a time."""

    def __init__(self, rival: ModelSlot, metrics: Metrics, *, most_bytes: int = MOST_BYTES) -> None:
        self.rival = rival
        self._metrics = metrics
        self._most = most_bytes
        self._waiting: deque[tuple[Scorer, Floats, Integers, Floats]] = deque()
        self._bytes = 0
        self._closed = False
        self._changed = Condition()
        self._run = RunOptions()
        self._thread = Thread(target=self._work, name="shadow", daemon=True)
        self._thread.start()

    def put(self, scorer: Scorer, features: Floats, offsets: Integers, scores: Floats) -> None:
        """Let a request be compared, unless too much waits for it."""
        queries = int(np.count_nonzero(np.diff(offsets)))
        with self._changed:
            fits = not self._closed and self._bytes + features.nbytes <= self._most
            if fits:
                self._waiting.append((scorer, features, offsets, scores))
                self._bytes += features.nbytes
                self._changed.notify()
        if not fits:
            self._metrics.shadowed.labels("dropped").inc(queries)

    def close(self) -> bool:
        """Leave what waits; False if the ranker does not end what it has begun."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._run.terminate = True
        self._thread.join(_CLOSE_SECONDS)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    return
                scorer, features, offsets, scores = self._waiting[0]
            self._compare(scorer, features, offsets, scores)
            with self._changed:
                # What is being scored is held as well, so it counts until here.
                self._waiting.popleft()
                self._bytes -= features.nbytes

    def _compare(self, scorer: Scorer, features: Floats, offsets: Integers, scores: Floats) -> None:
        queries = int(np.count_nonzero(np.diff(offsets)))
        # Another may be put in at any moment.
        rival = self.rival.current.scorer
        result = obstacle(scorer, rival)
        if result is None:
            try:
                found = rival.score(features, offsets, run=self._run)
                result = "compared" if np.isfinite(found).all() else "failed"
            except Exception:
                result = "failed"
        self._metrics.shadowed.labels(result).inc(queries)
        if result == "compared":
            for start, end in zip(offsets.tolist(), offsets[1:].tolist(), strict=False):
                if start < end:
                    self._tell(Divergence.of(scores[start:end], found[start:end]))

    def _tell(self, divergence: Divergence) -> None:
        metrics = self._metrics
        metrics.shadow_overlap.observe(divergence.overlap)
        metrics.shadow_first.inc(divergence.first_changed)
        metrics.shadow_move.observe(divergence.largest_move)
        metrics.shadow_drift.observe(divergence.drift)


def _standard(scores: Floats | Doubles) -> Doubles:
    """Scores less their mean and in units of their standard deviation; zeros where all are the same."""
    centred: Doubles = np.asarray(scores, dtype=np.float64) - np.mean(scores, dtype=np.float64)
    spread = centred.std()
    return centred / spread if spread > 0 else np.zeros_like(centred)

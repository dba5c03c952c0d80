"""Lists that the ranker that answers makes together with a new one."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial

import numpy as np
from onnxruntime import RunOptions

from ultr.arrays import Floats, Integers
from ultr.data import ragged
from ultr.scoring import Scorer
from ultr.serving.metrics import Metrics
from ultr.serving.model_slot import ModelSlot
from ultr.serving.rival import obstacle
from ultr.serving.schemas import Query
from ultr.serving.settings import ServiceSettings
from ultr.serving.team_draft import Draft, coin_flips

_PATIENCE = 3
"""Failures in a row after which the new ranker is left alone for a while."""
_REST_SECONDS = 30.0
_CLOSE_SECONDS = 1.0


Contest = Callable[[Sequence[int], int, str], Draft]
"""Drafts an old order with that of the new ranker, down to a place, by the coins of a query id."""


class Interleaving:
    """Draws queries by their ids, and has a new ranker score them beside the thread that answers.

    Whatever the new ranker does, the answer is there: if it takes too long, fails or has other features, the query is
    shown in the old order and counted. That does not depend on the coins, so that the rest is a fair contest.
    """

    def __init__(self, rival: ModelSlot, settings: ServiceSettings, metrics: Metrics) -> None:
        self.rival = rival
        self.share = settings.interleaved_share
        self.seconds = settings.interleave_seconds
        self._metrics = metrics
        self._secret = secrets.token_bytes(32)
        self._pool = ThreadPoolExecutor(settings.cores, thread_name_prefix="rival")
        self._begun: set[Future[Floats]] = set()
        self._failures = 0
        self._rests_until = 0.0

    def contests(
        self, queries: Sequence[Query], query_ids: Sequence[str], features: Floats, offsets: Integers, scorer: Scorer
    ) -> dict[int, Contest]:
        """Orders by the new ranker of the queries that are to be interleaved, by their numbers."""
        drawn = [
            number
            for number, (query, name) in enumerate(zip(queries, query_ids, strict=True))
            if coin_flips(name, share=self.share, secret=self._secret) is not None and _can_be(query)
        ]
        if not drawn:
            return {}
        # Another may be put in at any moment.
        rival = self.rival.current.scorer
        found = obstacle(scorer, rival) or self._scores(rival, features, offsets, np.array(drawn))
        if isinstance(found, str):
            self._metrics.interleaved.labels(found).inc(len(drawn))
            return {}
        lengths = np.diff(offsets)[drawn]
        parts = np.split(found, np.cumsum(lengths)[:-1])
        return {number: partial(self._draft, rival.digest, part) for number, part in zip(drawn, parts, strict=True)}

    def close(self) -> bool:
        """Let go of the threads; False if some do not end."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        return not wait(list(self._begun), timeout=_CLOSE_SECONDS).not_done

    def _draft(self, against: str, scores: Floats, order: Sequence[int], size: int, query_id: str) -> Draft:
        """The draft of an old order with the one by these scores of a new ranker."""
        flips = coin_flips(query_id, share=1.0, secret=self._secret)
        assert flips is not None, "a share of 1 leaves no query out"
        # Ties keep the old order, so that they are nobody's merit.
        rival = np.argsort(-scores[np.asarray(order)], kind="stable")[:size].tolist()
        return Draft.of(rival, flips=flips, against=against, share=self.share)

    def _scores(self, rival: Scorer, features: Floats, offsets: Integers, drawn: Integers) -> Floats | str:
        """The scores of some queries, or a word for why there are none."""
        if time.monotonic() < self._rests_until:
            return "resting"
        rows = ragged.rows_of(drawn, offsets)
        run = RunOptions()
        bounds = ragged.from_lengths(np.diff(offsets)[drawn])
        work = self._pool.submit(rival.score, features[rows], bounds, run=run)
        self._begun.add(work)
        work.add_done_callback(self._begun.discard)
        try:
            scores = work.result(self.seconds)
        except TimeoutError:
            run.terminate = True
            work.cancel()
            return self._failed("slow")
        except Exception:
            return self._failed("failed")
        if not np.isfinite(scores).all():
            return self._failed("failed")
        self._failures = 0
        return scores

    def _failed(self, result: str) -> str:
        self._failures += 1
        if self._failures >= _PATIENCE:
            self._failures = 0
            self._rests_until = time.monotonic() + _REST_SECONDS
        return result


def _can_be(query: Query) -> bool:
    """True for a query that can be logged and in which two orders can differ."""
    return (
        query.user_query is not None
        and len(query.candidates) > 1
        and all(each.id is not None for each in query.candidates)
    )

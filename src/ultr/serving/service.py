"""The parts of a running service, and what it does with a request and with a new model."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore
from typing import Any

from ultr.errors import ModelFileError
from ultr.serving import logs
from ultr.serving.body import Bodies
from ultr.serving.metrics import Metrics
from ultr.serving.model_slot import ModelSlot
from ultr.serving.ranking import RankResponse, rank
from ultr.serving.refusal import try_later
from ultr.serving.settings import ServiceSettings


class Service:
    """A ranker, the threads that score with it, and what is counted."""

    def __init__(self, slot: ModelSlot, settings: ServiceSettings) -> None:
        self.slot = slot
        self.settings = settings
        self.metrics = Metrics()
        self.metrics.show_model(slot.current)
        self.closing = False
        """True once it was told to stop."""
        self.bodies = Bodies(settings.limits)
        self._pool = ThreadPoolExecutor(settings.cores, thread_name_prefix="rank")
        self._places = BoundedSemaphore(settings.limits.requests)

    async def rank(self, body: bytes, *, explain: bool = False) -> RankResponse:
        """The answer to a request, made beside the event loop, which goes on with the others."""
        limits = self.settings.limits
        if not self._places.acquire(blocking=False):
            raise try_later("busy", f"{limits.requests} requests are being answered")
        scorer = self.slot.current.scorer
        work = self._pool.submit(rank, body, scorer, limits=limits, missing=self.settings.missing, explain=explain)
        # The place is free when the thread is, even if nobody waits for it any more.
        work.add_done_callback(lambda _: self._places.release())
        try:
            async with asyncio.timeout(limits.score_seconds):
                return await asyncio.wrap_future(work)
        except TimeoutError:
            error = f"no answer within {limits.score_seconds:g} seconds"
            raise try_later("score_seconds", f"{error}, send fewer candidates or fewer requests at once") from None

    async def reload(self) -> None:
        """Put in the model that the file holds now; if it cannot serve, keep the old one and say so."""
        old = self.slot.current.scorer
        try:
            result: str = await asyncio.to_thread(self.slot.reload)
        except Exception as error:
            result = "failed"
            why: dict[str, Any] = {"problem": str(error)} if isinstance(error, ModelFileError) else {"error": error}
            logs.write("reload failed", level=logging.ERROR, digest=old.digest, **why)
        else:
            self.metrics.show_model(self.slot.current)
            new = self.slot.current.scorer
            names = new.card.feature_names
            same = names == old.card.feature_names
            other: dict[str, Any] = {} if same else {"other_features": True, "feature_names": names}
            logs.write("reloaded", result=result, digest=new.digest, **other)
        self.metrics.reloads.labels(result).inc()

    async def watch(self) -> None:
        """Reload whenever the file has changed, for ever."""
        while True:
            await asyncio.sleep(self.settings.watch_seconds)
            if self.slot.has_changed():
                await self.reload()

    def close(self) -> None:
        """Let go of the threads; what they have begun they finish."""
        self._pool.shutdown(wait=False, cancel_futures=True)

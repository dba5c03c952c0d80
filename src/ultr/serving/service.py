"""The parts of a running service, and what it does with a request and with a new model."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import BoundedSemaphore
from typing import Any

from onnxruntime import RunOptions

from ultr.errors import ModelFileError
from ultr.scoring import Scorer
from ultr.serving import logs
from ultr.serving.body import Bodies
from ultr.serving.feedback import Feedback
from ultr.serving.metrics import Metrics
from ultr.serving.model_slot import ModelSlot
from ultr.serving.ranking import RankResponse, rank
from ultr.serving.refusal import try_later
from ultr.serving.settings import ServiceSettings

_RELOAD_SECONDS = 60.0
_CLOSE_SECONDS = 1.0


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
        self.feedback: Feedback | None = None
        """The log of what was shown, if it is to be kept."""
        if settings.log_to is not None:
            self.feedback = Feedback(
                settings.log_to,
                most_bytes=int(settings.log_gigabytes * 1e9),
                parquet=settings.log_format == "parquet",
                shown=settings.shown,
                exploration=settings.explore,
                metrics=self.metrics,
            )
        self._pool = ThreadPoolExecutor(settings.cores, thread_name_prefix="rank")
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="load")
        self._begun: set[Future[Any]] = set()
        self._given_up: set[Future[Any]] = set()
        self.metrics.stuck.set_function(lambda: self.stuck)
        self._places = BoundedSemaphore(settings.limits.requests)

    @property
    def stuck(self) -> int:
        """Number of threads that still work on a request which was given up."""
        return sum(work.running() for work in list(self._given_up))

    async def rank(self, body: bytes, *, explain: bool = False) -> RankResponse:
        """The answer to a request, made beside the event loop, which goes on with the others."""
        limits = self.settings.limits
        if not self._places.acquire(blocking=False):
            raise try_later("busy", f"{limits.requests} requests are being answered")
        scorer = self.slot.current.scorer
        run = RunOptions()
        work = self._pool.submit(
            rank,
            body,
            scorer,
            limits=limits,
            missing=self.settings.missing,
            explain=explain,
            feedback=self.feedback,
            run=run,
        )
        # The place is free when the thread is, even if nobody waits for it any more.
        work.add_done_callback(lambda _: self._places.release())
        self._keep(self._begun, work)
        try:
            async with asyncio.timeout(limits.score_seconds):
                return await asyncio.wrap_future(work)
        except TimeoutError:
            self._keep(self._given_up, work)
            error = f"no answer within {limits.score_seconds:g} seconds"
            raise try_later("score_seconds", f"{error}, send fewer candidates or fewer requests at once") from None
        finally:
            # Nobody waits for it any more, whatever the reason.
            run.terminate = True

    def _keep(self, futures: set[Future[Any]], work: Future[Any]) -> None:
        futures.add(work)
        work.add_done_callback(futures.discard)

    async def reload(self) -> None:
        """Put in the model that the file holds now; if it cannot serve, keep the old one and say so."""
        old = self.slot.current.scorer
        try:
            result: str = self.slot.put(await self._load())
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

    async def _load(self) -> Scorer:
        work = self._loader.submit(self.slot.read)
        self._keep(self._begun, work)
        try:
            async with asyncio.timeout(_RELOAD_SECONDS):
                return await asyncio.wrap_future(work)
        except TimeoutError:
            raise ModelFileError(f"{self.slot.path} was not loaded within {_RELOAD_SECONDS:g} seconds") from None

    async def watch(self) -> None:
        """Reload whenever the file has changed, for ever."""
        while True:
            await asyncio.sleep(self.settings.watch_seconds)
            if self.slot.has_changed():
                await self.reload()

    def close(self) -> bool:
        """Let go of the threads; False if some do not end."""
        for pool in (self._pool, self._loader):
            pool.shutdown(wait=False, cancel_futures=True)
        have_ended = not wait(list(self._begun), timeout=_CLOSE_SECONDS).not_done
        return (self.feedback is None or self.feedback.close()) and have_ended

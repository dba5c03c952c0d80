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
from ultr.serving.interleaving import Interleaving
from ultr.serving.metrics import Metrics
from ultr.serving.model_slot import ModelSlot
from ultr.serving.ranking import RankResponse, rank
from ultr.serving.refusal import try_later
from ultr.serving.rival import check_fit
from ultr.serving.settings import ServiceSettings
from ultr.serving.shadow import Shadow

_RELOAD_SECONDS = 60.0
_CLOSE_SECONDS = 1.0


class Service:
    """A ranker, the threads that score with it, and what is counted."""

    def __init__(self, slot: ModelSlot, settings: ServiceSettings) -> None:
        self.slot = slot
        self.settings = settings
        self.metrics = Metrics()
        self.closing = False
        """True once it was told to stop."""
        self.bodies = Bodies(settings.limits)
        self.rivals: dict[str, ModelSlot] = {}
        """Second models by what they are for, in files that are watched like that of the one that answers."""
        for role, path in (("interleave", settings.interleave), ("shadow", settings.shadow)):
            if path is not None:
                self.rivals[role] = ModelSlot(path, seconds=slot.seconds)
                check_fit(slot.current.scorer, self.rivals[role].current.scorer)
        self._show_models()
        folder, new, unseen = settings.log_to, self.rivals.get("interleave"), self.rivals.get("shadow")
        self.feedback = None if folder is None else Feedback(folder, settings, self.metrics)
        """The log of what was shown, if it is to be kept."""
        self.interleaving = None if new is None else Interleaving(new, settings, self.metrics)
        self.shadow = None if unseen is None else Shadow(unseen, self.metrics)
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
            interleaving=self.interleaving,
            shadow=self.shadow,
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
        """Put in the models that the files hold now; for one that cannot serve, keep the old one and say so."""
        await self._reload(self.slot)
        for role, rival in self.rivals.items():
            await self._reload(rival, role)

    async def _reload(self, slot: ModelSlot, role: str | None = None) -> None:
        old = slot.current.scorer
        named: dict[str, Any] = {} if role is None else {"role": role}
        try:
            new = await self._load(slot)
            if role is not None:
                check_fit(self.slot.current.scorer, new)
            result: str = slot.put(new)
        except Exception as error:
            result = "failed"
            why: dict[str, Any] = {"problem": str(error)} if isinstance(error, ModelFileError) else {"error": error}
            logs.write("reload failed", level=logging.ERROR, digest=old.digest, **named, **why)
        else:
            self._show_models()
            names = new.card.feature_names
            same = names == old.card.feature_names
            other: dict[str, Any] = {} if same else {"other_features": True, "feature_names": names}
            logs.write("reloaded", result=result, digest=new.digest, **named, **other)
        counter = self.metrics.reloads if role is None else self.metrics.rival_reloads
        counter.labels(**named, result=result).inc()

    def _show_models(self) -> None:
        self.metrics.show_models(self.slot.current, {role: rival.current for role, rival in self.rivals.items()})

    async def _load(self, slot: ModelSlot) -> Scorer:
        work = self._loader.submit(slot.read)
        self._keep(self._begun, work)
        try:
            async with asyncio.timeout(_RELOAD_SECONDS):
                return await asyncio.wrap_future(work)
        except TimeoutError:
            raise ModelFileError(f"{slot.path} was not loaded within {_RELOAD_SECONDS:g} seconds") from None

    async def watch(self) -> None:
        """Reload whenever a file has changed, for ever."""
        while True:
            await asyncio.sleep(self.settings.watch_seconds)
            if self.slot.has_changed():
                # A second model that did not fit before may fit the new one.
                await self.reload()
            for role, rival in self.rivals.items():
                if rival.has_changed():
                    await self._reload(rival, role)

    def close(self) -> bool:
        """Let go of the threads; False if some do not end."""
        for pool in (self._pool, self._loader):
            pool.shutdown(wait=False, cancel_futures=True)
        have_ended = not wait(list(self._begun), timeout=_CLOSE_SECONDS).not_done
        parts = (self.interleaving, self.shadow, self.feedback)
        return all([have_ended, *(part.close() for part in parts if part is not None)])

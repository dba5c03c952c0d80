"""The service on a socket, from its start to the last answer."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from functools import partial
from pathlib import Path
from types import FrameType

import uvicorn

from ultr.errors import OptionError
from ultr.serving import logs
from ultr.serving.app import build_app
from ultr.serving.model_slot import ModelSlot
from ultr.serving.protocol import GuardedProtocol
from ultr.serving.service import Service
from ultr.serving.settings import ServiceSettings

_SWITCH_SECONDS = 0.0005
"""Wait of the event loop behind a thread that parses; Python's own 5 ms is as long as a whole answer takes."""

_ACCEPTS = 16
"""Listening sockets, all the same one: uvloop accepts one connection of each in a turn of its loop, which is too few if
clients are thrown out and come again by the hundreds."""
_TRIAL_SECONDS = 1.0
"""Time for a new model to score typical candidates, at least: its first scores take the longest."""


def serve(model: Path, settings: ServiceSettings) -> None:
    """Serve a model until told to stop (SIGTERM, SIGINT)."""
    listener = listen(settings)
    with listener:
        service = Service(ModelSlot(model, seconds=max(settings.limits.score_seconds, _TRIAL_SECONDS)), settings)
        logs.configure(settings.log_level, dropped=service.metrics.dropped.inc)
        sys.setswitchinterval(_SWITCH_SECONDS)
        _Server(service).run(sockets=[listener, *(listener.dup() for _ in range(_ACCEPTS - 1))])
    if service.close():
        logs.write("stopped")
        logs.close()
        return
    logs.write("stopped", level=logging.ERROR, problem="threads that did not end were left behind")
    logs.close()
    # Python itself would wait for them.
    os._exit(1)


def listen(settings: ServiceSettings) -> socket.socket:
    """A socket on the host and port; an `OptionError` if it cannot be had or should not."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise OptionError(f"--host {settings.host} is no address of this machine; give another one") from error
    settings.check_exposure(str(address[0]))
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise OptionError(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror}; give another --host or --port"
        ) from error
    return listener


class _Server(uvicorn.Server):
    """uvicorn, which tells the service of signals and ends well when it is told to stop."""

    def __init__(self, service: Service) -> None:
        settings = service.settings
        config = uvicorn.Config(
            build_app(service),
            http=partial(GuardedProtocol, limits=settings.limits, metrics=service.metrics),  # type: ignore[arg-type]
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=settings.limits.idle_seconds,  # type: ignore[arg-type]
            timeout_graceful_shutdown=settings.shutdown_seconds,  # type: ignore[arg-type]
        )
        super().__init__(config)
        self.service = service
        self._reloads: set[asyncio.Task[None]] = set()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept, and to reload on SIGHUP."""
        await super().startup(sockets)
        if hasattr(signal, "SIGHUP"):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._reload)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        scorer, settings = self.service.slot.current.scorer, self.service.settings
        logs.write(
            "listening",
            address=f"http://{f'[{host}]' if ':' in host else host}:{port}",
            model=str(self.service.slot.path),
            digest=scorer.digest,
            features=len(scorer.card.feature_names),
            threads=settings.cores,
            token=settings.token is not None,
        )
        if settings.log_to is not None:
            logs.write("exploration", what=settings.explore.in_words())

    def _reload(self) -> None:
        task = asyncio.get_running_loop().create_task(self.service.reload())
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say so, wait for balancers to notice, and finish what has begun."""
        self.service.closing = True
        logs.write("stopping", in_flight=len(self.server_state.tasks))
        waited = 0.0
        while waited < self.service.settings.drain_seconds and not self.force_exit:
            await asyncio.sleep(0.1)
            waited += 0.1
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop. Unlike uvicorn's own, the signal is not raised again at the end, so that the exit code is 0."""
        if self.should_exit:
            self.force_exit = True
        self.should_exit = True

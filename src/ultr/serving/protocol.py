"""Limits that uvicorn lacks: on clients that connect and then say nothing, too much, or never listen."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ultr.serving import logs
from ultr.serving.limits import RequestLimits
from ultr.serving.metrics import Metrics
from ultr.serving.refusal import Refusal, try_later

_FLOOD_BYTES = 64 * 2**20
_PIPELINED = 100
"""Requests that may be sent before the first is answered; no common client sends more than one."""
_FRAMING = 8
"""Bytes on the wire per byte of the body: sent in chunks of one byte, each takes six."""


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits on connections, headers, and clients that do not read their answers."""

    def __init__(self, *, limits: RequestLimits, metrics: Metrics, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._limits = limits
        self._metrics = metrics
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._head_bytes = 0
        self._request_bytes = 0
        self._most_bytes = max(_FLOOD_BYTES, _FRAMING * limits.body_bytes)
        self._waits_since: float | None = None
        """Since when the client is to send or to read something; None while it is to wait."""
        self._was_answered = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there: it must send the headers of a request soon."""
        super().connection_made(transport)
        self._waits_since = self.loop.time()
        if len(self.connections) > self._limits.connections and not self._make_room():
            self._refuse(self._too_many())
        else:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._stop("head", "write")
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Some bytes have arrived."""
        if self.transport.is_closing():
            return
        is_head = self._is_between_requests()
        if is_head and "head" not in self._timers:
            self._await_head()
        super().data_received(data)
        self._request_bytes += len(data)
        self._head_bytes += len(data) if is_head and self._is_between_requests() else 0
        if self._head_bytes > self._limits.header_bytes:
            self._refuse_long_head()
        elif self._request_bytes > self._most_bytes:
            # A body that was refused and still goes on, or one that is nearly all framing.
            self._metrics.refused.labels("flood").inc()
            self.transport.abort()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._request_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The app takes over, and with it the time limit on the body."""
        self._stop("head")
        self._head_bytes = 0
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > self._limits.header_bytes:
            self._refuse_long_head()
            # The parser stops, and nothing is answered to what has been refused.
            raise ValueError
        super().on_headers_complete()
        if len(self.pipeline) > _PIPELINED:
            # uvicorn would queue them without end.
            self._metrics.refused.labels("pipelined").inc()
            self.transport.abort()

    def on_message_complete(self) -> None:
        """The request has arrived."""
        self._waits_since = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The answer is written, though perhaps not yet sent."""
        self._waits_since, self._was_answered = self.loop.time(), True
        super().on_response_complete()
        if self.transport.is_closing():
            self._cut_later()

    def pause_writing(self) -> None:
        """The client does not read as fast as it is written to."""
        super().pause_writing()
        self._waits_since = self.loop.time()
        if "write" not in self._timers:
            self._timers["write"] = self._cut_later()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._stop("write")
        if not self._is_between_requests():
            self._waits_since = None
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """No further request came."""
        super().timeout_keep_alive_handler()
        self._cut_later()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        if not self._is_between_requests() and self.cycle.response_started:
            self.transport.close()
            return
        self._refuse(Refusal(400, "not_http", "this is not an HTTP request that can be understood"))

    def _is_between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        self._timers["head"] = self.loop.call_later(self._limits.header_seconds, self._refuse_slow_head)

    def _make_room(self) -> bool:
        """Close the connection whose client is waited for the longest, first of those that never got an answer.

        False if none is waited for.
        """
        waiting = [
            (each._was_answered, each._waits_since, number, each)
            for number, each in enumerate(self.connections)
            if isinstance(each, GuardedProtocol) and each is not self and each._waits_since is not None
        ]
        if not waiting:
            return False
        min(waiting)[-1]._give_way()
        return True

    def _give_way(self) -> None:
        self._waits_since = None
        between = self._is_between_requests()
        if "head" not in self._timers if between else self.cycle.response_started:
            self._metrics.refused.labels("connections").inc()
            self.transport.abort()
        else:
            self._refuse(self._too_many())

    def _too_many(self) -> Refusal:
        return try_later("connections", f"{self._limits.connections} connections are open")

    def _refuse_long_head(self) -> None:
        error = f"the headers have more than {self._limits.header_bytes} bytes; send fewer"
        self._refuse(Refusal(431, "header_bytes", error))

    def _refuse_slow_head(self) -> None:
        error = f"no complete headers within {self._limits.header_seconds:g} seconds; send them faster"
        self._refuse(Refusal(408, "header_seconds", error))

    def _refuse(self, refusal: Refusal) -> None:
        """Answer before there is a request, and close."""
        self._stop("head", "write")
        if self.transport.is_closing():
            return
        self._metrics.requests.labels("other", refusal.status).inc()
        self._metrics.refused.labels(refusal.reason).inc()
        logs.write("refused", status=refusal.status, reason=refusal.reason)
        headers = refusal.all_headers() | {"connection": "close"}
        lines = [f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + refusal.content())
        self.transport.close()
        self._cut_later()

    def _cut_later(self) -> asyncio.TimerHandle:
        return self.loop.call_later(self._limits.write_seconds, self._cut)

    def _cut(self) -> None:
        """Give up a client that has not taken what was written, or closed its side, in time."""
        if self in self.connections:
            self._metrics.refused.labels("write_seconds").inc()
            self.transport.abort()

    def _stop(self, *timers: str) -> None:
        for name in timers:
            if name in self._timers:
                self._timers.pop(name).cancel()

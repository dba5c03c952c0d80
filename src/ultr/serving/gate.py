"""The gate that every request passes: an id, the token, the count, one line in the log."""

from __future__ import annotations

import asyncio
import hmac
import logging
import time
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ultr.serving import logs
from ultr.serving.refusal import Refusal
from ultr.serving.service import Service

OPEN = ("/health", "/ready", "/docs", "/")
"""Routes that need no token: probes, and pages that know nothing until they are given one."""
ROUTES = ("/rank", "/events", "/model", "/health", "/ready", "/metrics", "/status", "/docs", "/openapi.json", "/")
_QUIET = ("/health", "/ready", "/metrics", "/status")
_LINGER_SECONDS = 1.0


class Gate:
    """Wraps the app; nothing reaches it or leaves it uncounted."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app = app
        self.service = service
        self._hosts = service.settings.hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = Exchange(scope, receive, send)
        metrics = self.service.metrics
        started = time.perf_counter()
        with metrics.in_flight.track_inprogress():
            await self._answer(exchange)
        seconds = time.perf_counter() - started
        metrics.requests.labels(exchange.route, exchange.status).inc()
        metrics.seconds.labels(exchange.route).observe(seconds)
        if exchange.reason is not None:
            metrics.refused.labels(exchange.reason).inc()
        quiet = exchange.route in _QUIET and exchange.status == 200
        logs.write("request", level=logging.DEBUG if quiet else logging.INFO, **exchange.fields(seconds))

    async def _answer(self, exchange: Exchange) -> None:
        try:
            self._check_host(exchange)
            self._check_token(exchange)
            await self.app(exchange.scope, exchange.receive, exchange.send)
        except Refusal as refusal:
            await exchange.refuse(refusal)
        except asyncio.CancelledError:
            await exchange.refuse(Refusal(503, "closing", "the service was stopped before the answer was ready"))
        except Exception as error:
            logs.write("error", level=logging.ERROR, error=error, request=exchange.id, route=exchange.route)
            await exchange.refuse(Refusal(500, "error", f"the service failed; its log says more at {exchange.id}"))

    def _check_host(self, exchange: Exchange) -> None:
        """Refuse a request for another service. None of a browser lacks the header."""
        for value in exchange.headers.getlist("host") if self._hosts is not None else ():
            try:
                known = urlsplit(f"//{value}").hostname in (self._hosts or ())
            except ValueError:
                known = False
            if not known:
                error = "this service has another name; ask it as localhost, or start it with --allow-host NAME"
                raise Refusal(421, "host", error)

    def _check_token(self, exchange: Exchange) -> None:
        token = self.service.settings.token
        if token is None or exchange.scope["path"] in OPEN:
            return
        scheme, _, given = exchange.headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip().encode(), token.encode())
        if scheme.lower() != "bearer" or not right:
            error = "this needs the service's token; send the header Authorization: Bearer TOKEN"
            raise Refusal(401, "token", error, headers={"WWW-Authenticate": "Bearer"})


class Exchange:
    """A request and its answer, as far as they are known."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = {**scope, "exchange": self}
        self.headers = Headers(scope=scope)
        self.id = logs.request_id(self.headers.get("x-request-id", ""))
        self.route = scope["path"] if scope["path"] in ROUTES else "other"
        self.status = 0
        self.reason: str | None = None
        self.queries = 0
        self.candidates = 0
        self._unread = self.headers.get("content-length", "0") != "0" or "transfer-encoding" in self.headers
        self._receive = receive
        self._send = send

    def fields(self, seconds: float) -> dict[str, Any]:
        """Fields of its line in the log."""
        fields: dict[str, Any] = {
            "request": self.id,
            "method": self.scope["method"],
            "route": self.route,
            "status": self.status,
            "milliseconds": round(seconds * 1e3, 2),
        }
        if self.reason is not None:
            fields["reason"] = self.reason
        if self.queries:
            fields |= {"queries": self.queries, "candidates": self.candidates}
        return fields

    async def receive(self) -> Message:
        """The next part of the request."""
        message = await self._receive()
        if not message.get("more_body", False):
            self._unread = False
        return message

    async def send(self, message: Message) -> None:
        """The next part of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-ID"] = self.id
            headers["X-Content-Type-Options"] = "nosniff"
            if self._unread:
                headers["Connection"] = "close"
        elif self._unread and not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            await self._linger()
            message = {"type": "http.response.body", "body": b""}
        try:
            await self._send(message)
        except (OSError, RuntimeError):
            # uvicorn does not know of every connection that was cut.
            self.reason = "disconnected"

    async def _linger(self) -> None:
        """Read on for a moment before the connection is closed.

        Closing it while data arrives makes the client's machine throw the answer away before the client has read it.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                while self._unread:
                    await self.receive()

    async def refuse(self, refusal: Refusal) -> None:
        """Answer with a refusal, unless an answer is on its way."""
        if self.status:
            return
        self.reason = refusal.reason
        answer = Response(refusal.content(), refusal.status, refusal.all_headers())
        await answer(self.scope, self.receive, self.send)

"""The body of a request, within its limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect, Request

from ultr.serving.limits import RequestLimits
from ultr.serving.refusal import Refusal, try_later

SMALL = 64 * 2**10
"""Bodies of at most these bytes always have room."""


class _Arrival:
    """The bytes of a body that have arrived."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.size = 0
        self.since = asyncio.get_running_loop().time()
        self.gave_way = False
        self.timeout = asyncio.timeout(None)


class Bodies:
    """Receives the bodies of requests and knows how much memory they take together.

    If it is too much, the one that has held the most bytes for the longest gives way, so that clients who send slowly
    keep nobody out.
    """

    def __init__(self, limits: RequestLimits) -> None:
        self.limits = limits
        self.held = 0
        self._arriving: set[_Arrival] = set()

    @asynccontextmanager
    async def receive(self, request: Request) -> AsyncIterator[bytes]:
        """The whole body; a `Refusal` as soon as it is clear that it is not JSON, too large or too slow."""
        _check_type(request)
        length = request.headers.get("content-length")
        # What it says may be a lie, so the bytes are counted as well.
        if length is not None and length.isdecimal() and int(length[:20]) > self.limits.body_bytes:
            raise _too_large(self.limits)
        arrival = _Arrival()
        self._arriving.add(arrival)
        try:
            await self._fill(arrival, request)
            body = b"".join(arrival.chunks)
            arrival.chunks.clear()
            self._arriving.discard(arrival)
            yield body
        finally:
            self._arriving.discard(arrival)
            self._forget(arrival)

    async def _fill(self, arrival: _Arrival, request: Request) -> None:
        limits = self.limits
        try:
            async with asyncio.timeout(limits.body_seconds) as arrival.timeout:
                async for chunk in request.stream():
                    arrival.chunks.append(chunk)
                    arrival.size += len(chunk)
                    self.held += len(chunk)
                    if arrival.size > limits.body_bytes:
                        raise _too_large(limits)
                    if self.held > limits.all_body_bytes:
                        self._make_room()
                    if arrival.gave_way:
                        raise TimeoutError
        except TimeoutError:
            if arrival.gave_way:
                raise try_later("all_body_bytes", "too many large requests are on their way") from None
            error = f"the body did not arrive within {limits.body_seconds:g} seconds; send it faster"
            raise Refusal(408, "body_seconds", error) from None
        except ClientDisconnect:
            # Nobody is there to read it, but the log and the metrics are.
            raise Refusal(400, "disconnected", "the connection was closed before the body had arrived") from None

    def _make_room(self) -> None:
        """Give up the worst of the large bodies that are on their way."""
        now = asyncio.get_running_loop().time()
        large = [each for each in self._arriving if each.size > SMALL]
        if large:
            worst = max(large, key=lambda each: each.size * (now - each.since))
            worst.gave_way = True
            self._forget(worst)
            worst.timeout.reschedule(now)

    def _forget(self, arrival: _Arrival) -> None:
        self.held -= arrival.size
        arrival.size = 0
        arrival.chunks.clear()


def _check_type(request: Request) -> None:
    """Raise a `Refusal` unless the body is said to be plain JSON.

    A browser lets any page send other types to a service on the same machine, but must ask first for this one.
    """
    kind, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().replace('"', "")
    if kind.strip().lower() != "application/json" or charset not in ("", "charset=utf-8"):
        raise Refusal(415, "type", "the body must be JSON in UTF-8; send the header Content-Type: application/json")
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Refusal(415, "type", "the body must not be compressed; send it without Content-Encoding")


def _too_large(limits: RequestLimits) -> Refusal:
    error = f"the body has more than {limits.body_bytes} bytes; send fewer candidates at once"
    return Refusal(413, "body_bytes", error)

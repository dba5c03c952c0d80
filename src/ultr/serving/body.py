"""The body of a request, within its limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import ClientDisconnect, Request

from ultr.serving.limits import RequestLimits
from ultr.serving.refusal import Refusal, try_later


class Bodies:
    """Receives the bodies of requests and knows how much memory they take together."""

    def __init__(self, limits: RequestLimits) -> None:
        self.limits = limits
        self.held = 0

    @asynccontextmanager
    async def receive(self, request: Request) -> AsyncIterator[bytes]:
        """The whole body; a `Refusal` as soon as it is clear that it is not JSON, too large or too slow."""
        _check_type(request)
        length = request.headers.get("content-length")
        # What it says may be a lie, so the bytes are counted as well.
        if length is not None and length.isdecimal() and int(length[:20]) > self.limits.body_bytes:
            raise _too_large(self.limits)
        chunks: list[bytes] = []
        try:
            await self._fill(chunks, request)
            yield b"".join(chunks)
        finally:
            self.held -= sum(map(len, chunks))

    async def _fill(self, chunks: list[bytes], request: Request) -> None:
        limits = self.limits
        size = 0
        try:
            async with asyncio.timeout(limits.body_seconds):
                async for chunk in request.stream():
                    chunks.append(chunk)
                    size += len(chunk)
                    self.held += len(chunk)
                    if size > limits.body_bytes:
                        raise _too_large(limits)
                    if self.held > limits.all_body_bytes:
                        raise try_later("all_body_bytes", "too many large requests are on their way")
        except TimeoutError:
            error = f"the body did not arrive within {limits.body_seconds:g} seconds; send it faster"
            raise Refusal(408, "body_seconds", error) from None
        except ClientDisconnect:
            # Nobody is there to read it, but the log and the metrics are.
            raise Refusal(400, "disconnected", "the connection was closed before the body had arrived") from None


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

"""A service in this process, and one in a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from ultr.serving import logs
from ultr.serving.app import build_app
from ultr.serving.model_slot import ModelSlot
from ultr.serving.service import Service
from ultr.serving.settings import ServiceSettings

SOURCE = Path(__file__).parents[2] / "src"
PATIENCE = 30.0
"""Seconds until something that should happen at once counts as not happening; machines may be busy."""


@dataclass(frozen=True)
class Client:
    """A client of a service in this process."""

    service: Service
    app: Any

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, path, **options)

        return asyncio.run(ask())

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)


@contextmanager
def client(model: Path, settings: ServiceSettings | None = None) -> Iterator[Client]:
    """A service in this process that is closed in the end."""
    service = Service(ModelSlot(model), settings or ServiceSettings())
    try:
        yield Client(service, build_app(service))
    finally:
        service.close()


@dataclass
class Running:
    """A service in a process of its own."""

    process: subprocess.Popen[str]
    lines: list[dict[str, Any]] = field(default_factory=list)
    arrived: queue.Queue[dict[str, Any]] = field(default_factory=queue.Queue)

    @property
    def url(self) -> str:
        return str(self.lines[0]["address"])

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=PATIENCE)

    def wait_for(self, event: str) -> dict[str, Any]:
        """The next line of the log with this event."""
        end = time.monotonic() + PATIENCE
        while (left := end - time.monotonic()) > 0:
            line = self.arrived.get(timeout=left)
            self.lines.append(line)
            if line["event"] == event:
                return line
        raise TimeoutError(event)

    def stop(self, sent: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(sent)
        return self.process.wait(PATIENCE)

    def log(self) -> str:
        """All that was written to stderr, once the process has ended."""
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        while not self.arrived.empty():
            self.lines.append(self.arrived.get())
        return "\n".join(json.dumps(line) for line in self.lines)

    def start_reading(self) -> None:
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            try:
                self.arrived.put(json.loads(line))
            except ValueError:
                self.arrived.put({"event": "not JSON", "text": line})


@contextmanager
def running(model: Path, *options: object, environment: Mapping[str, str] | None = None) -> Iterator[Running]:
    """`ultr serve` on a free port; killed at the end if it still runs."""
    command = ["-m", "ultr", "serve", str(model), "--port", "0", *map(str, options)]
    with running_python(*command, environment=environment) as service:
        yield service


@contextmanager
def running_python(*arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[Running]:
    """A Python that runs a service; killed at the end if it still runs."""
    paths = os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
    with subprocess.Popen(
        [sys.executable, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths, **(environment or {})},
    ) as process:
        service = Running(process)
        service.start_reading()
        try:
            service.wait_for("listening")
            yield service
        finally:
            process.kill()


def read_answer(connection: socket.socket) -> tuple[int, dict[str, str], Any]:
    """Status, headers and content of the next answer on a connection, which is JSON."""
    with connection.makefile("rb") as stream:
        status = int(stream.readline().split()[1])
        headers: dict[str, str] = {}
        while line := stream.readline().strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        return status, headers, json.loads(stream.read(int(headers["content-length"])))


def read_log(captured: pytest.CaptureFixture[str]) -> str:
    """What a service in this process has written to stderr; it writes no more."""
    logs.close()
    return captured.readouterr().err


def error_of(answer: httpx.Response) -> str:
    """The sentence of a refusal, which has the one shape of all of them."""
    content = answer.json()
    assert set(content) == {"error", "where"}
    assert set(content["where"]) <= {"query", "query_id", "candidate", "candidate_id", "feature", "field"}
    assert answer.headers["content-type"] == "application/json"
    sentence = content["error"]
    assert isinstance(sentence, str)
    assert "\n" not in sentence
    return sentence

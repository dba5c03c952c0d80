"""The service under attack: every attacker at once, honest clients beside them, and a new model file now and then.

    python -m benchmarks.siege --minutes 2

Each attacker of `ATTACKERS` does for the whole time what it is named after, and counts the answers that it gets. Honest
clients rank 100 candidates a request, some on one connection each, some on a new one for every request; a probe asks
`/health` four times a second. Every `--reload-seconds` another file takes the place of the model: good ones in turn,
and between them one without an end, with weights elsewhere, with an odd graph, cut short. The log is a pipe that nobody
reads. In the end SIGTERM must be obeyed with exit code 0, and whatever an honest client did not get is an error.

With `--log` the service logs what it shows and exchanges pairs (`--log-to`, `--explore swaps=0.05`), and every list
that an honest client was answered must be in the log exactly once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
from tests.scoring.odd_graphs import endless, odd_graphs, with_external_data
from tests.serving.ranker_file import write_ranker

from benchmarks.measurement import Measurement, write
from benchmarks.serving import HIDDEN, bodies, large_client, post, read_answer, resident_mib
from benchmarks.shown_log import missing_and_repeated, named

FEATURES, MOST_BYTES = 46, 8 * 2**20
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
Attacker = Callable[[int, random.Random], Awaitable[str]]
"""One attack on a port; gives what came back, in a word."""


async def answer_of(port: int, *pieces: bytes, seconds: float = 15.0) -> str:
    """The status of the answer to some bytes; the connection is kept open until there is one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(seconds):
            with suppress(OSError):
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
            line = await reader.readline()
            return line.split()[1].decode() if line.count(b" ") > 1 else "closed"
    except TimeoutError:
        return "no answer"
    except OSError:
        return "cut"
    finally:
        writer.transport.abort()


async def wrong_parts(port: int, draw: random.Random) -> str:
    """A body as large as it may be, of parts that are all wrong."""
    candidates = b'{"queries":[{"candidates":['
    start, part = draw.choice(
        [
            (candidates, b"1,"),
            (b'{"queries":[', b"{},"),
            (b'{"queries":[', b'{"candidates":[]},'),
            (candidates + b'{"features":[', b"[],"),
            (candidates + b'{"features":[', b'"a",'),
            (candidates, b'{"id":[],"features":[1]},'),
            (candidates + b"{", b'"a":1,'),
            (b"", b"["),
            (b"", b'"'),
        ]
    )
    body = start + part * ((MOST_BYTES - len(start)) // len(part))
    await asyncio.sleep(draw.uniform(1, 3))
    return await answer_of(port, post(body))


async def odd_requests(port: int, draw: random.Random) -> str:
    """A small request with some bytes exchanged."""
    values = {"a\u003a": 1, "\n": None, "bm25": draw.random()}
    body = bytearray(json.dumps({"queries": [{"id": "\\u003a", "candidates": [{"features": values}]}]}).encode())
    for _ in range(draw.randrange(4)):
        body[draw.randrange(len(body))] = draw.randrange(256)
    await asyncio.sleep(0.1)
    return await answer_of(port, post(bytes(body)))


async def odd_http(port: int, draw: random.Random) -> str:
    """Bytes that are hardly HTTP, headers that are too long, upgrades, other names."""
    head = b"GET /model HTTP/1.1\r\nHost: "
    sent = draw.choice(
        [
            draw.randbytes(200) + b"\r\n\r\n",
            head + b"localhost\r\nX: " + b"a" * 60_000 + b"\r\n\r\n",
            head + b"localhost\r\n" + b"X: a\r\n" * 10_000 + b"\r\n",
            head + b"attacker.example\r\n\r\n",
            head + b"localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            head + b"localhost\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            HEALTH * 300,
        ]
    )
    await asyncio.sleep(0.1)
    return await answer_of(port, sent)


async def slow_bodies(port: int, draw: random.Random) -> str:
    """All of a large body but its last byte."""
    size = draw.choice([MOST_BYTES, MOST_BYTES // 2, 2**20])
    head = re.sub(rb"Content-Length: \d*", b"Content-Length: %d" % size, post(b"x"))[:-1]
    found = await answer_of(port, head, *[b" " * 2**16] * (size // 2**16 - 1), b" " * (2**16 - 1))
    await asyncio.sleep(1)
    return found


async def slow_heads(port: int, draw: random.Random) -> str:
    """Half of a head."""
    found = await answer_of(port, b"POST /rank HTTP/1.1\r\nHost: localhost\r\nX: ")
    await asyncio.sleep(draw.uniform(1, 3))
    return found


async def idle_connections(port: int, draw: random.Random) -> str:
    """One request, and then nothing for as long as the connection stays open."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(HEALTH)
        status, _ = await read_answer(reader)
        async with asyncio.timeout(draw.uniform(5, 20)):
            await reader.read(1)
        return f"{status}, then closed"
    except TimeoutError:
        return f"{status}, then left"
    except (OSError, asyncio.IncompleteReadError):
        return "cut"
    finally:
        writer.transport.abort()
        await asyncio.sleep(1)


async def silent_readers(port: int, _: random.Random) -> str:
    """Many answers, none of which is read."""
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        connection.setblocking(False)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await loop.sock_connect(connection, ("127.0.0.1", port))
        for _round in range(40):
            try:
                await loop.sock_sendall(connection, b"GET /docs HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
            except OSError:
                return "cut"
            await asyncio.sleep(0.5)
    return "left"


ATTACKERS: dict[Attacker, int] = {
    wrong_parts: 2,
    odd_requests: 4,
    odd_http: 4,
    slow_bodies: 40,
    slow_heads: 600,
    idle_connections: 50,
    silent_readers: 4,
}
"""Number of each."""


def run_attackers(port: int, seconds: float, report: Connection) -> None:
    until = time.monotonic() + seconds

    async def keep_on(attack: Attacker, counts: Counter[str], seed: int) -> None:
        draw = random.Random(seed)
        while time.monotonic() < until:
            try:
                counts[await attack(port, draw)] += 1
            except OSError as error:
                counts[type(error).__name__] += 1
                await asyncio.sleep(1)

    async def run() -> dict[str, dict[str, int]]:
        found: dict[str, Counter[str]] = {attack.__name__: Counter() for attack in ATTACKERS}
        tasks = [
            asyncio.create_task(keep_on(attack, found[attack.__name__], seed))
            for attack, number in ATTACKERS.items()
            for seed in range(number)
        ]
        endless_bodies = [asyncio.create_task(large_client(port, until)) for _ in range(2)]
        await asyncio.wait([*tasks, *endless_bodies], timeout=seconds + 30)
        refused = sum(task.result() for task in endless_bodies if task.done() and not task.cancelled())
        return {**{name: dict(counts) for name, counts in found.items()}, "endless_bodies": {"413": refused}}

    allow_many_files()
    report.send(asyncio.run(run()))


def plain(body: bytes, _: str) -> bytes:
    """A request that is not logged."""
    return post(body)


def run_honest(
    port: int, requests: list[bytes], seconds: float, request_of: Callable[[bytes, str], bytes], report: Connection
) -> None:
    until = time.monotonic() + seconds
    times: dict[str, list[float]] = {"kept": [], "new": [], "health": []}
    errors: Counter[str] = Counter()
    answered: list[str] = []

    async def ask(kind: str, query_id: str, request: bytes, connection: Any) -> Any:
        started = time.perf_counter()
        try:
            async with asyncio.timeout(30):
                reader, writer = connection or await asyncio.open_connection("127.0.0.1", port)
                writer.write(request)
                status, content = await read_answer(reader)
            if status != 200 or (kind != "health" and content.count(b'"score"') != 100):
                errors[f"{kind}: {status} {content[:100].decode()}"] += 1
            elif kind != "health":
                answered.append(query_id)
            connection = reader, writer
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            errors[f"{kind}: {type(error).__name__}"] += 1
            connection = None
        times[kind].append(time.perf_counter() - started)
        return connection

    async def keep_on(kind: str, seed: int) -> None:
        draw, connection, number = random.Random(seed), None, 0
        while time.monotonic() < until:
            number += 1
            query_id = f"{kind}-{seed}-{number}"
            request = HEALTH if kind == "health" else request_of(draw.choice(requests), query_id)
            connection = await ask(kind, query_id, request, connection)
            if kind != "kept" and connection is not None:
                connection[1].close()
                connection = None
            await asyncio.sleep(0.25 if kind == "health" else 0.01)

    async def run() -> None:
        await asyncio.gather(
            *(keep_on(kind, seed) for seed, kind in enumerate(["kept", "kept", "new", "new", "health"]))
        )

    asyncio.run(run())
    report.send((dict(errors), times, answered))


def model_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """What takes the place of the model in turn: `good` or what is wrong with it, and the content."""
    names = [f"feature_{number}" for number in range(FEATURES)]
    good = [write_ranker(folder / "other", names, hidden=HIDDEN, seed=seed).read_bytes() for seed in range(2)]
    broken = {
        "no end": endless().SerializeToString(),
        "external": with_external_data("token")["initializer"].SerializeToString(),
        "two outputs": odd_graphs()["two outputs"].SerializeToString(),
        "cut short": good[0][: len(good[0]) // 2],
    }
    for number, (name, content) in enumerate(cycle(broken.items())):
        yield "good", good[number % 2]
        yield name, content


def allow_many_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192), most))


def peak_mib(process: int) -> float:
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")


def siege(folder: Path, arguments: argparse.Namespace) -> list[Measurement]:
    seconds = arguments.minutes * 60
    names = [f"feature_{number}" for number in range(FEATURES)]
    model = write_ranker(folder / "model.onnx", names, hidden=HIDDEN)
    requests = bodies(model, by_name=False)
    allow_many_files()
    shown = folder / "shown"
    logging = ["--log-to", str(shown), "--explore", "swaps=0.05"] if arguments.log else []
    command = [sys.executable, "-m", "ultr", "serve", str(model), "--port", "0", *logging, *arguments.option]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        port = int(json.loads(process.stderr.readline())["address"].rpartition(":")[2])
        try:
            results = _watch(
                process.pid, port, model, requests, seconds, arguments.reload_seconds, logged=arguments.log
            )
            metrics = urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()
        finally:
            process.terminate()
            code = process.wait(60)
    errors, times, attacks, memory, answered = results
    for error, number in errors.items():
        print(f"ERROR {number} x {error}")
    print(f"\n{'attacker':>20}  what it got")
    for name, counts in attacks.items():
        print(
            f"{name.replace('_', ' '):>20}  " + ", ".join(f"{key}: {value:,}" for key, value in sorted(counts.items()))
        )
    found = [
        Measurement("errors of honest clients", sum(errors.values()), "", headline=True),
        Measurement("exit code after SIGTERM", code, ""),
    ]
    for kind, said in (("kept", "kept connections"), ("new", "new connections"), ("health", "/health")):
        values = np.array(times[kind]) * 1e3
        found.append(Measurement(f"requests, {said}", len(values), ""))
        for name, share in (("p50", 50), ("p99", 99), ("largest", 100)):
            found.append(
                Measurement(f"{name}, {said}", float(np.percentile(values, share)), "ms", headline=name == "p99")
            )
    settled = memory["mib"][len(memory["mib"]) // 3 :]
    slope = float(np.polyfit(np.arange(len(settled)), settled, 1)[0]) * 60 if len(settled) > 2 else float("nan")
    found += [
        Measurement("memory at the start", memory["mib"][0], "MiB"),
        Measurement("memory after a third of the time", settled[0], "MiB"),
        Measurement("memory at the end", settled[-1], "MiB"),
        Measurement("peak memory", memory["peak"], "MiB", headline=True),
        Measurement("growth over the last two thirds", slope, "MiB/min", headline=True),
        Measurement("files put in place", memory["exchanges"], ""),
    ]
    for result in ("new", "same", "failed"):
        found.append(
            Measurement(f"reloads, {result}", _metric(metrics, f'ultr_reloads_total{{result="{result}"}}'), "")
        )
    found.append(Measurement("lines of the log dropped", _metric(metrics, "ultr_log_lines_dropped_total"), ""))
    found.append(Measurement("load average", os.getloadavg()[0], ""))
    if arguments.log:
        missing, repeated = missing_and_repeated(answered, shown)
        found += [
            Measurement("lists answered to honest clients", len(answered), ""),
            Measurement("answered and not in the log", len(missing), "", headline=True),
            Measurement("more than once in the log", repeated, "", headline=True),
        ]
    return found


def _metric(text: str, name: str) -> float:
    return next(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{name} "))


def _watch(
    pid: int, port: int, model: Path, requests: list[bytes], seconds: float, reload_seconds: float, *, logged: bool
) -> tuple[dict[str, int], dict[str, list[float]], dict[str, dict[str, int]], dict[str, Any], list[str]]:
    """Let all of them loose, exchange the model meanwhile, and read the memory of the service every second."""

    def child(target: Any, *given: Any) -> Connection:
        ours, theirs = multiprocessing.Pipe()
        multiprocessing.get_context("spawn").Process(target=target, args=(port, *given, theirs), daemon=True).start()
        return ours

    honest = child(run_honest, requests, seconds, named if logged else plain)
    attack = child(run_attackers, seconds)
    files, exchanges, due, memory = model_files(model.parent), 0, time.monotonic() + reload_seconds, []
    while not honest.poll(1.0):
        memory.append(resident_mib(pid))
        if time.monotonic() > due:
            draft = model.with_suffix(".draft")
            draft.write_bytes(next(files)[1])
            draft.replace(model)
            exchanges, due = exchanges + 1, due + reload_seconds
    errors, times, answered = honest.recv()
    return errors, times, attack.recv(), {"mib": memory, "peak": peak_mib(pid), "exchanges": exchanges}, answered


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--reload-seconds", type=float, default=15)
    parser.add_argument(
        "--option", action="append", default=[], help="a further option of ultr serve, such as --threads=1"
    )
    parser.add_argument("--log", action="store_true", help="log and explore, and check the log in the end")
    parser.add_argument("--json", type=Path, help="file for the numbers")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = siege(Path(folder), arguments)
    print()
    for each in found:
        print(each)
    write(found, arguments.json)


if __name__ == "__main__":
    main()

"""The service under load: requests a second, latency and memory, with attackers beside it.

    python -m benchmarks.serving model.onnx --seconds 60
    python -m benchmarks.serving --features 46 136         # rankers of 512-256-128 with random weights

Starts `ultr serve`, and a client in a process of its own that keeps some connections busy, 100 candidates a request.
Beside it, slow clients open connections and send a byte of a body now and then, and others send bodies without end.
Every answer is read and checked; memory is that of the service's process, read every second. The machine is shared
between all of them, so the numbers are what is left for the service, not what it could do alone; the processor time
that a request takes, attackers' included, does not depend on who else is there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from tests.serving.ranker_file import write_ranker

from benchmarks.measurement import Measurement, write
from ultr.scoring import Scorer

HIDDEN, CANDIDATES, DIFFERENT = (512, 256, 128), 100, 50
SLOW_CLIENTS, LARGE_CLIENTS = 50, 2


UNITS = {
    "_ms": "ms",
    "_ms_a_request": "ms",
    "_mib": "MiB",
    "_mib_a_minute": "MiB/min",
    "seconds": "s",
    "_a_second": "/s",
}
"""By how a name ends; other numbers are counts."""
HEADLINES = ("requests_a_second", "p99_ms", "errors", "rss_growth_mib_a_minute")


@dataclass(frozen=True)
class Result:
    """What was seen."""

    features: int
    candidates: int
    seconds: float
    connections: int
    requests: int
    requests_a_second: float
    p50_ms: float
    p99_ms: float
    largest_ms: float
    processor_ms_a_request: float
    errors: int
    slow_clients_refused: int
    oversize_bodies_refused: int
    rss_start_mib: float
    rss_end_mib: float
    rss_growth_mib_a_minute: float
    load_average: float


def bodies(model: Path, *, by_name: bool) -> list[bytes]:
    """Different requests to draw from, as bytes."""
    names = Scorer.load(model).card.feature_names
    draw = np.random.default_rng(0)
    found = []
    for _ in range(DIFFERENT):
        rows = draw.normal(size=(CANDIDATES, len(names))).round(6).tolist()
        features = [dict(zip(names, row, strict=True)) for row in rows] if by_name else rows
        candidates = [{"id": f"doc-{number}", "features": row} for number, row in enumerate(features)]
        found.append(json.dumps({"queries": [{"id": "query", "candidates": candidates}]}).encode())
    return found


def post(body: bytes) -> bytes:
    lines = ("POST /rank HTTP/1.1", "Host: localhost", "Content-Type: application/json", f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    size = re.search(rb"content-length: (\d+)", head)
    assert size is not None
    return int(head.split()[1]), await reader.readexactly(int(size[1]))


async def client(port: int, requests: list[bytes], until: float, times: list[float], seed: int) -> int:
    """Sends one request after the other; gives the number that went wrong."""
    draw = random.Random(seed)
    errors = 0
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < until:
        started = time.perf_counter()
        try:
            writer.write(draw.choice(requests))
            status, content = await read_answer(reader)
            errors += status != 200 or content.count(b'"score"') != CANDIDATES
        except (OSError, asyncio.IncompleteReadError):
            errors += 1
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        times.append(time.perf_counter() - started)
    writer.close()
    return errors


def run_clients(port: int, requests: list[bytes], seconds: float, connections: int, report: Connection) -> None:
    times: list[float] = []

    async def run() -> int:
        until = time.monotonic() + seconds
        return sum(await asyncio.gather(*(client(port, requests, until, times, seed) for seed in range(connections))))

    errors = asyncio.run(run())
    report.send((errors, times))


async def slow_client(port: int, until: float) -> int:
    """Sends half of a head or a byte of a body now and then, and comes again when it is thrown out."""
    thrown_out = 0
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            whole = thrown_out % 2 == 0
            writer.write(post(b"x" * 1_000)[:-1_000] if whole else b"POST /rank HTTP/1.1\r\nHost: localhost")
            answer = asyncio.create_task(reader.read(1))
            while not answer.done() and time.monotonic() < until:
                writer.write(b"[")
                await asyncio.wait([answer], timeout=0.5)
            thrown_out += answer.done() and answer.exception() is None
            answer.cancel()
            writer.close()
        except OSError:
            pass
    return thrown_out


async def large_client(port: int, until: float) -> int:
    """Sends bodies without end, in chunks so that no length gives them away."""
    refused = 0
    chunk = b"10000\r\n" + b"[" * 0x10000 + b"\r\n"
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            head = (
                "POST /rank HTTP/1.1",
                "Host: localhost",
                "Content-Type: application/json",
                "Transfer-Encoding: chunked",
                "",
                "",
            )
            writer.write("\r\n".join(head).encode())
            answer = asyncio.create_task(reader.read(12))
            for _ in range(200):
                writer.write(chunk)
                await writer.drain()
                if answer.done():
                    break
            refused += b"413" in await answer
            writer.close()
        except OSError:
            pass
        await asyncio.sleep(0.5)
    return refused


def run_attackers(port: int, seconds: float, report: Connection) -> None:
    async def run() -> tuple[int, int]:
        until = time.monotonic() + seconds
        slow = [slow_client(port, until) for _ in range(SLOW_CLIENTS)]
        large = [large_client(port, until) for _ in range(LARGE_CLIENTS)]
        counts = await asyncio.gather(*slow, *large)
        return sum(counts[:SLOW_CLIENTS]), sum(counts[SLOW_CLIENTS:])

    report.send(asyncio.run(run()))


def resident_mib(process: int) -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start(model: Path, options: list[str]) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, "-m", "ultr", "serve", str(model), "--port", "0", *options]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stderr=log, text=True)
        while process.poll() is None:
            log.seek(0)
            if found := re.search(r"http://127.0.0.1:(\d+)", log.read()):
                return process, int(found[1])
            time.sleep(0.1)
        log.seek(0)
        raise SystemExit(log.read())


def measure(model: Path, arguments: argparse.Namespace) -> Result:
    found = bodies(model, by_name=arguments.by_name)
    requests = [post(body) for body in found]
    options = ["--body-seconds", "5", "--header-seconds", "5", *arguments.option]
    process, port = start(model, options)

    def child(target: Any, *given: Any) -> Connection:
        ours, theirs = multiprocessing.Pipe()
        multiprocessing.get_context("spawn").Process(target=target, args=(port, *given, theirs), daemon=True).start()
        return ours

    try:
        child(run_clients, requests, arguments.warm_up, arguments.connections).recv()
        attack = child(run_attackers, arguments.seconds) if arguments.attack else None
        load = child(run_clients, requests, arguments.seconds, arguments.connections)
        memory = []
        spent = processor_seconds(process.pid)
        while not load.poll(1.0):
            memory.append(resident_mib(process.pid))
        errors, times = load.recv()
        spent = processor_seconds(process.pid) - spent
        slow, large = attack.recv() if attack is not None else (0, 0)
    finally:
        process.terminate()
        code = process.wait(30)
    milliseconds = np.array(times) * 1e3
    # The first fifth still fills pools and caches; the slope is that of a straight line through the rest.
    settled = memory[len(memory) // 5 :]
    slope = float(np.polyfit(np.arange(len(settled)), settled, 1)[0]) * 60 if len(settled) > 2 else float("nan")
    return Result(
        features=len(Scorer.load(model).card.feature_names),
        candidates=CANDIDATES,
        seconds=arguments.seconds,
        connections=arguments.connections,
        requests=len(times),
        requests_a_second=round(len(times) / arguments.seconds, 1),
        p50_ms=round(float(np.percentile(milliseconds, 50)), 2),
        p99_ms=round(float(np.percentile(milliseconds, 99)), 2),
        largest_ms=round(float(milliseconds.max()), 2),
        processor_ms_a_request=round(spent / len(times) * 1e3, 2),
        errors=errors + (code != 0),
        slow_clients_refused=slow,
        oversize_bodies_refused=large,
        rss_start_mib=round(settled[0], 1),
        rss_end_mib=round(settled[-1], 1),
        rss_growth_mib_a_minute=round(slope, 2),
        load_average=round(os.getloadavg()[0], 1),
    )


def _unit(name: str) -> str:
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?", help="a file of ultr export; by default one with random weights")
    parser.add_argument("--features", type=int, nargs="+", default=[46], help="of rankers with random weights")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--warm-up", type=float, default=3)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--by-name", action="store_true", help="features as objects instead of arrays")
    parser.add_argument("--no-attack", dest="attack", action="store_false")
    parser.add_argument(
        "--option", action="append", default=[], help="a further option of ultr serve, such as --threads=1"
    )
    parser.add_argument("--json", type=Path, help="file for the numbers")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = [arguments.model] if arguments.model else [_ranker(Path(folder), size) for size in arguments.features]
        results = [asdict(measure(model, arguments)) for model in models]
    print("| |" + "".join(f" {result['features']} features |" for result in results))
    print("|---" * (1 + len(results)) + "|")
    for name in list(results[0])[1:]:
        print(f"| {_words(name)} |" + "".join(f" {result[name]:,} |" for result in results))
    write(
        [
            Measurement(
                f"{result['features']} features, {_words(name)}", value, _unit(name), headline=name in HEADLINES
            )
            for result in results
            for name, value in result.items()
        ],
        arguments.json,
    )


def _ranker(folder: Path, size: int) -> Path:
    names = [f"feature_{number}" for number in range(size)]
    return write_ranker(folder / f"model-{size}.onnx", names, hidden=HIDDEN)


def _words(name: str) -> str:
    return name.replace("_", " ")


if __name__ == "__main__":
    main()

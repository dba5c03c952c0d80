"""Clients and model files that would keep everybody else from an answer."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from time import sleep

import httpx
import pytest
from tests.scoring.odd_graphs import endless, write
from tests.serving.service import PATIENCE, SOURCE, Running, read_answer, running, running_python

from ultr.serving.limits import RequestLimits
from ultr.serving.parts import SPARE, check_parts
from ultr.serving.refusal import Refusal
from ultr.serving.schemas import RankRequest

REQUEST = {"queries": [{"candidates": [{"features": [1, 2, 3]}]}]}
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
MOST = RequestLimits().body_bytes
OPEN_QUERIES, OPEN_CANDIDATES = b'{"queries":[', b'{"queries":[{"candidates":['


def full(start: bytes, part: bytes, end: bytes) -> bytes:
    """A body as large as it may be."""
    return start + part * ((MOST - len(start + end)) // len(part)) + end


WRONG = {
    "candidates": lambda: full(OPEN_CANDIDATES, b"1,", b"1]}]}"),
    "queries": lambda: full(OPEN_QUERIES, b"{},", b"{}]}"),
    "no candidates": lambda: full(OPEN_QUERIES, b'{"candidates":[]},', b'{"candidates":[]}]}'),
    "features": lambda: full(OPEN_CANDIDATES + b'{"features":[', b"[],", b"1]}]}]}"),
    "ids": lambda: full(OPEN_CANDIDATES, b'{"id":[],"features":[1]},', b"{}]}]}"),
    "keys": lambda: OPEN_CANDIDATES + b"{" + b",".join(b'"%x":1' % number for number in range(700_000)) + b"}]}]}",
}


def post(body: bytes, *, length: int | None = None) -> bytes:
    lines = ["POST /rank HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
    return "\r\n".join([*lines, f"Content-Length: {length or len(body)}", "", ""]).encode() + body


def processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def largest_mib(process: int) -> float:
    line = next(each for each in Path(f"/proc/{process}/status").read_text().splitlines() if "VmHWM" in each)
    return int(line.split()[1]) / 1024


@pytest.fixture(scope="module")
def service(model: Path) -> Iterator[Running]:
    with running(model) as found:
        yield found
        assert found.stop() == 0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("what", WRONG)
def test_a_body_of_wrong_parts_takes_little_time_and_memory(service: Running, what: str) -> None:
    """Before they were counted, the first of these took 22 seconds and 4.6 GiB."""
    body = WRONG[what]()
    httpx.post(f"{service.url}/rank", json=REQUEST)
    pid = service.process.pid
    time_before, memory_before = processor_seconds(pid), largest_mib(pid)
    answer = httpx.post(
        f"{service.url}/rank", content=body, headers={"Content-Type": "application/json"}, timeout=PATIENCE
    )
    assert answer.status_code == 422
    assert processor_seconds(pid) - time_before < 1
    assert largest_mib(pid) - memory_before < 100


@pytest.mark.parametrize("body", [b'{"queries":[1,1,1]}', b'{"queries":[{"candidates":[1,1,1]}]}'])
def test_only_the_first_error_of_a_list_is_made(body: bytes) -> None:
    with pytest.raises(ValueError, match="1 validation error"):
        RankRequest.model_validate_json(body)


@pytest.mark.parametrize(
    "id_", ["d{}", ",[{:\\" * 40, '"{[,:' * 40, "{" * 256], ids=["plain", "comma", "quote", "brace"]
)
def test_a_request_within_the_limits_has_never_too_many_parts(id_: str) -> None:
    """However its ids look: what stands in texts is not counted."""
    limits = RequestLimits(queries=200, candidates=10, all_candidates=2_000)
    names = [f"{number}{id_[:20]}" for number in range(4)]
    rows = [{"id": id_, "features": dict.fromkeys(names, 0.5)} for _ in range(10)]
    body = json.dumps({"queries": [{"id": id_, "candidates": rows}] * 200}).encode()
    check_parts(body, limits, features=4)
    with pytest.raises(Refusal, match="more parts than 200 queries with 2000 candidates of 4 features"):
        check_parts(body[:-2] + b",[]" * (SPARE + 1) + b"]}", limits, features=4)


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="needs pipes of a given size")
def test_a_log_that_nobody_reads_stops_neither_the_answers_nor_the_end(model: Path) -> None:
    command = [sys.executable, "-m", "ultr", "serve", str(model), "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, bufsize=0) as process:
        try:
            assert process.stderr is not None
            fcntl.fcntl(process.stderr, fcntl.F_SETPIPE_SZ, 4096)
            first = json.loads(process.stderr.readline())
            with httpx.Client(base_url=first["address"], timeout=PATIENCE) as client:
                for _ in range(100):
                    assert client.post("/rank", json=REQUEST).status_code == 200
            process.terminate()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


def test_a_model_without_an_end_is_given_up_and_the_next_one_taken(model: Path, tmp_path: Path) -> None:
    file = Path(shutil.copy(model, tmp_path / "model.onnx"))
    with running(file, "--watch-seconds", 0.1, "--score-seconds", 1) as service:
        write(endless(), tmp_path / "draft.onnx").replace(file)
        assert "did not score three candidates within 1 seconds" in service.wait_for("reload failed")["problem"]
        assert httpx.post(f"{service.url}/rank", json=REQUEST).status_code == 200
        write(endless(above=100), tmp_path / "draft.onnx").replace(file)
        assert service.wait_for("reloaded")["result"] == "new"
        assert 'ultr_reloads_total{result="failed"} 1.0' in httpx.get(f"{service.url}/metrics").text
        assert service.stop() == 0


def test_a_model_without_an_end_is_not_started_with(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ultr", "serve", str(write(endless(), tmp_path / "model.onnx")), "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    ended = subprocess.run(
        [*command, "--score-seconds", "1"], env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert ended.returncode == 2
    assert "did not score three candidates within 1 seconds; export" in ended.stderr


def test_a_request_without_an_end_gives_its_thread_back(tmp_path: Path) -> None:
    file = write(endless(above=100), tmp_path / "model.onnx")
    with running(file, "--threads", 2, "--score-seconds", 1) as service:
        for _ in range(3):
            answer = httpx.post(
                f"{service.url}/rank",
                json={"queries": [{"candidates": [{"features": [99, 99, 99]}]}]},
                timeout=PATIENCE,
            )
            assert answer.status_code == 429
        end = time.monotonic() + PATIENCE
        while "ultr_stuck_threads 0.0" not in httpx.get(f"{service.url}/metrics").text:
            assert time.monotonic() < end
        assert httpx.post(f"{service.url}/rank", json=REQUEST).status_code == 200
        assert httpx.get(f"{service.url}/ready").status_code == 200
        assert service.stop() == 0


def test_threads_that_never_end_are_left_behind(model: Path) -> None:
    code = f"""
import sys, time
from ultr.serving import service
service.rank = lambda *_, **__: time.sleep(1_000)
sys.argv = ["ultr", "serve", {str(model)!r}, "--port", "0", "--score-seconds", "0.2", "--threads", "1"]
from ultr.cli import main
main()
"""
    with running_python("-c", code) as service:
        assert httpx.post(f"{service.url}/rank", json=REQUEST, timeout=PATIENCE).status_code == 429
        assert httpx.get(f"{service.url}/ready").status_code == 503
        assert service.stop() == 1
        assert "threads that did not end" in service.log()


def test_slow_large_bodies_keep_nobody_out(model: Path) -> None:
    """Four times more than fits is on its way, all but the last byte of each body."""
    size = 500_000
    with running(model, "--max-body-mib", 0.5, "--max-all-bodies-mib", 1) as service, ExitStack() as stack:
        held = [stack.enter_context(service.connect()) for _ in range(8)]
        senders = [threading.Thread(target=_send, args=(each, post(b" " * (size - 1), length=size))) for each in held]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join(PATIENCE)
        large = json.dumps(REQUEST).encode() + b" " * (size - 100)
        with httpx.Client(base_url=service.url, timeout=PATIENCE) as client:
            for _ in range(20):
                assert client.post("/rank", json=REQUEST).status_code == 200
                answer = client.post("/rank", content=large, headers={"Content-Type": "application/json"})
                assert answer.status_code == 200
        assert service.stop(signal.SIGINT) == 0


def _send(connection: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        connection.sendall(data)


def test_beyond_the_limit_the_connection_that_was_silent_the_longest_gives_way(model: Path) -> None:
    with running(model, "--max-connections", 3) as service, ExitStack() as stack:
        known, silent = (stack.enter_context(service.connect()) for _ in range(2))
        # By the second answer the silent one has been accepted, before the slow one comes.
        for _ in range(2):
            known.sendall(HEALTH)
            assert read_answer(known)[0] == 200
        sleep(0.2)
        slow = stack.enter_context(service.connect())
        slow.sendall(post(b"{", length=1_000))
        for gives_way in (silent, slow):
            other = stack.enter_context(service.connect())
            status, headers, content = read_answer(gives_way)
            assert (status, headers["retry-after"]) == (429, "1")
            assert "3 connections are open" in content["error"]
            other.sendall(HEALTH)
            assert read_answer(other)[0] == 200
        stack.enter_context(service.connect())
        assert known.recv(1) == b"", "all others got their answer later"
        assert service.stop() == 0

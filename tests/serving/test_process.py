from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.cli.console import ultr
from tests.serving.service import PATIENCE, Running, read_answer, running, running_python

CANDIDATES = {"queries": [{"candidates": [{"features": [1, 2, 3]}]}]}
BODY = json.dumps(CANDIDATES).encode()
SECRET = "s3cr3t-m4rk3r"


def head(*lines: str) -> bytes:
    return "\r\n".join(
        ["POST /rank HTTP/1.1", "Host: localhost", "Content-Type: application/json", *lines, "", ""]
    ).encode()


def drip_until_answered(connection: socket.socket, drip: bytes) -> None:
    """Send something five times a second, as long as nothing comes back."""
    connection.settimeout(0.2)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            connection.recv(1, socket.MSG_PEEK)
            return
        except TimeoutError:
            connection.sendall(drip)
    raise TimeoutError("no answer")


def wait_for_metric(service: Running, line: str) -> None:
    end = time.monotonic() + PATIENCE
    while line not in httpx.get(f"{service.url}/metrics").text:
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture(scope="module")
def impatient(model: Path) -> Iterator[Running]:
    """A service with limits that are soon reached."""
    seconds = [f"--{of}-seconds=1.5" for of in ("header", "body", "idle", "write")]
    with running(model, *seconds, "--max-body-mib=0.01") as service:
        yield service
        with httpx.Client(base_url=service.url) as client:
            assert client.post("/rank", json=CANDIDATES).status_code == 200, "after all that, it still answers"
        assert service.stop() == 0


def test_a_request_over_a_socket(impatient: Running) -> None:
    with impatient.connect() as connection:
        for _ in range(2):
            connection.sendall(head(f"Content-Length: {len(BODY)}") + BODY)
            status, headers, content = read_answer(connection)
            assert status == 200
            assert len(content["queries"][0]["ranking"]) == 1
            assert "server" not in headers


@pytest.mark.parametrize(
    ("begun", "drip", "status"),
    [
        (b"", b"", 408),
        (b"\r\n", b"\r\n", 408),
        (b"POST /ra", b"", 408),
        (b"POST /ra", b"x", 408),
        (b"POST /rank HTTP/1.1\r\nHost: localhost\r\nX: ", b"x", 408),
        (b"\r\n", b"x", 400),
    ],
)
def test_headers_that_do_not_end_are_given_up(impatient: Running, begun: bytes, drip: bytes, status: int) -> None:
    with impatient.connect() as connection:
        connection.sendall(begun)
        drip_until_answered(connection, drip)
        given, headers, content = read_answer(connection)
        assert given == status
        assert headers["connection"] == "close"
        assert set(content) == {"error", "where"}


def test_the_headers_of_a_second_request_have_no_more_time(impatient: Running) -> None:
    with impatient.connect() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_answer(connection)[0] == 200
        connection.sendall(b"GET /health")
        drip_until_answered(connection, b"x")
        assert read_answer(connection)[0] == 408


@pytest.mark.parametrize("drip", [b"", b" "])
def test_a_body_that_does_not_end_is_given_up(impatient: Running, drip: bytes) -> None:
    with impatient.connect() as connection:
        connection.sendall(head("Content-Length: 1000") + b"{")
        drip_until_answered(connection, drip)
        status, headers, content = read_answer(connection)
        assert status == 408
        assert headers["connection"] == "close"
        assert "within 1.5 seconds" in content["error"]


def test_a_large_body_is_refused_by_its_length_before_it_is_sent(impatient: Running) -> None:
    with impatient.connect() as connection:
        connection.sendall(head("Content-Length: 1000000", "Expect: 100-continue"))
        status, _, content = read_answer(connection)
        assert status == 413
        assert "more than 10485 bytes" in content["error"]


@pytest.mark.parametrize("length", ["Transfer-Encoding: chunked", "Content-Length: 2000000"])
def test_a_large_body_is_refused_while_it_is_sent_and_the_answer_arrives(impatient: Running, length: str) -> None:
    piece = b" " * 50_000
    sent = b"c350\r\n" + piece + b"\r\n" if "chunked" in length else piece
    with impatient.connect() as connection:
        connection.sendall(head(length))
        for _ in range(40):
            connection.sendall(sent)
        status, headers, _ = read_answer(connection)
        assert status == 413
        assert headers["connection"] == "close"
        assert connection.recv(1) == b"", "the connection is closed"


def test_a_body_longer_than_it_said_is_refused(impatient: Running) -> None:
    with impatient.connect() as connection:
        connection.sendall(head(f"Content-Length: {len(BODY)}") + BODY + b"garbage\r\n\r\n")
        status, headers, content = read_answer(connection)
        assert (status, headers["connection"]) == (400, "close")
        assert set(content) == {"error", "where"}


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET /\xff HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused_in_the_shape_of_all_errors(impatient: Running, sent: bytes) -> None:
    with impatient.connect() as connection:
        connection.sendall(sent)
        status, _, content = read_answer(connection)
        assert status == 400
        assert set(content) == {"error", "where"}


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /health HTTP/1.1\r\nX: " + b"a" * 100_000,
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 2**15 + b"\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X: a\r\n" * 5_500 + b"\r\n",
        b"GET /health?" + b"a" * 2**15 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=["unfinished", "one", "many", "url"],
)
def test_headers_that_are_too_long_are_refused(impatient: Running, sent: bytes) -> None:
    with impatient.connect() as connection:
        connection.sendall(sent)
        status, headers, content = read_answer(connection)
        assert (status, headers["connection"]) == (431, "close")
        assert set(content) == {"error", "where"}
        with suppress(ConnectionError):
            assert connection.recv(1) == b"", "there is no second answer"


def test_headers_just_within_the_limit_are_taken(impatient: Running) -> None:
    with impatient.connect() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * (2**15 - 100) + b"\r\n\r\n")
        assert read_answer(connection)[0] == 200


def test_an_upgrade_to_a_websocket_is_answered_without_a_word_in_the_log(model: Path) -> None:
    sent = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    with running(model) as service:
        with service.connect() as connection:
            connection.sendall(sent)
            assert read_answer(connection)[0] == 200
        assert service.stop() == 0
        assert "ebSocket" not in service.log()


def test_an_idle_connection_is_closed(impatient: Running) -> None:
    with impatient.connect() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_answer(connection)[0] == 200
        assert connection.recv(1) == b""


def test_a_client_that_never_reads_is_cut_off(model: Path) -> None:
    """Many answers are asked for, more than the buffers of both sides hold, and none is read."""
    # Only writing has a short limit: on a busy machine the connection would be idle for too long between two rounds.
    with running(model, "--write-seconds=1") as service, service.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        metrics, asked = "", 0
        end = time.monotonic() + PATIENCE
        while 'ultr_refused_total{reason="write_seconds"}' not in metrics:
            assert time.monotonic() < end, metrics
            answered = metrics.partition('ultr_requests_total{route="/docs",status="200"} ')[2].partition(".")[0] or "0"
            # Never more than 50 are waiting: a longer queue is cut off for its length.
            if int(answered) == asked:
                with suppress(ConnectionError):
                    connection.sendall(b"GET /docs HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
                asked += 50
            time.sleep(0.05)
            metrics = httpx.get(f"{service.url}/metrics").text
        assert service.stop() == 0


def test_requests_are_not_queued_without_end(impatient: Running) -> None:
    with impatient.connect() as connection, suppress(ConnectionError):
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1_000)
        wait_for_metric(impatient, 'ultr_refused_total{reason="pipelined"}')


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_it_finishes_what_it_started_and_exits_well(model: Path, sent: signal.Signals) -> None:
    with running(model, "--drain-seconds", 2) as service, service.connect() as begun, service.connect() as idle:
        idle.sendall(b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_answer(idle)[0] == 200
        begun.sendall(head(f"Content-Length: {len(BODY)}") + BODY[:10])
        wait_for_metric(service, "ultr_in_flight 2.0")
        service.process.send_signal(sent)
        assert service.wait_for("stopping")["in_flight"] == 1
        idle.sendall(b"GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert read_answer(idle)[0] == 503
        assert idle.recv(1) == b"", "it is closed when the service stops accepting"
        with pytest.raises(ConnectionRefusedError):
            service.connect()
        begun.sendall(BODY[10:])
        status, headers, _ = read_answer(begun)
        assert status == 200
        assert headers["connection"] == "close"
        assert service.process.wait(PATIENCE) == 0
        assert '"stopped"' in service.log()


def test_it_does_not_wait_for_ever(model: Path) -> None:
    with running(model, "--shutdown-seconds", 0.5) as service, service.connect() as begun:
        begun.sendall(head("Content-Length: 1000") + b"{")
        wait_for_metric(service, "ultr_in_flight 2.0")
        service.process.send_signal(signal.SIGTERM)
        status, _, content = read_answer(begun)
        assert status == 503
        assert "stopped before" in content["error"]
        assert service.process.wait(PATIENCE) == 0


def test_logs_and_metrics_never_hold_what_a_request_contains(model: Path) -> None:
    token = f"token-{SECRET}"
    requests: list[dict[str, Any]] = [
        {"json": {"queries": [{"id": SECRET, "candidates": [{"id": SECRET, "features": [1, 2, 3]}]}]}},
        {"json": {"queries": [{"id": SECRET, "candidates": [{"id": SECRET, "features": {SECRET: 1}}]}]}},
        {"json": {"queries": [{"candidates": [{"features": [1, 2, SECRET]}]}]}},
        {"json": {SECRET: 1}},
        {"content": f'{{"{SECRET}'},
        {"content": SECRET, "headers": {"Content-Type": SECRET}},
        {"json": CANDIDATES, "headers": {"X-Request-ID": f"{SECRET} with a space", "User-Agent": SECRET}},
        {"json": CANDIDATES, "headers": {"Authorization": f"Bearer {SECRET}-wrong"}},
    ]
    with running(model, "--log-level", "debug", environment={"ULTR_TOKEN": token}) as service:
        known = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        with httpx.Client(base_url=service.url) as client:
            statuses = [
                client.post(
                    "/rank", params={"q": SECRET}, **{**request, "headers": {**known, **request.get("headers", {})}}
                )
                for request in requests
            ]
            client.get(f"/{SECRET}", headers=known)
            metrics = client.get("/metrics", headers=known).text
        with service.connect() as connection:
            connection.sendall(f"{SECRET}\r\n\r\n".encode())
            read_answer(connection)
        assert service.stop() == 0
        log = service.log()
    assert [answer.status_code for answer in statuses] == [200, 422, 422, 422, 400, 415, 200, 401]
    assert SECRET not in metrics
    assert SECRET not in log
    lines = [line for line in service.lines if line["event"] == "request" and line["route"] == "/rank"]
    assert [line["status"] for line in lines] == [200, 422, 422, 422, 400, 415, 200, 401]
    assert lines[0].keys() == {
        "time",
        "level",
        "event",
        "request",
        "method",
        "route",
        "status",
        "milliseconds",
        "queries",
        "candidates",
    }
    assert (lines[0]["queries"], lines[0]["candidates"]) == (1, 1)
    assert not [line for line in service.lines if line["event"] in ("not JSON", "error")]


def test_it_runs_without_what_only_training_needs(model: Path) -> None:
    """As after `pip install '.[serve]'`; pyarrow is always there, but nothing here needs it."""
    code = f"""
import sys
for name in ("torch", "sklearn", "matplotlib", "pandas", "jinja2", "onnx", "pyarrow", "scipy", "httpx"):
    sys.modules[name] = None
sys.argv = ["ultr", "serve", {str(model)!r}, "--port", "0"]
from ultr.cli import main
main()
"""
    with running_python("-c", code) as service:
        answer = httpx.post(f"{service.url}/rank", json=CANDIDATES)
        assert answer.status_code == 200
        assert httpx.get(f"{service.url}/openapi.json").status_code == 200
        assert service.stop() == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "can be reached from other machines; set ULTR_TOKEN or give --token-file"),
        (["--host", "no.such.host.invalid"], "is no address of this machine"),
        (["--port", "70000"], "port must be below 65536"),
        (["--missing", "guess"], "missing must be one of as-trained, refuse, fill"),
        (["--log-level", "loud"], "log level must be one of"),
        (["--max-queries", "0"], "queries must be an integer of at least 1"),
        (["--threads", "-1"], "threads must be an integer of at least 0"),
        (["--threads", "100000000"], "threads must be at most 1024"),
        (["--token-file", "none"], "cannot read the token in none"),
        (["--token-file", __file__, "--no-token"], "--no-token contradicts --token-file"),
    ],
)
def test_options_that_do_not_fit_end_in_one_sentence(
    model: Path, options: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ULTR_TOKEN", raising=False)
    sentence = ultr("serve", model, *options, expect=2).stderr
    assert words in sentence
    assert sentence.count("\n") == 1


def test_files_that_are_no_model_end_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"broken")
    assert "damaged or not an ONNX model" in ultr("serve", tmp_path / "broken.onnx", "--port", 0, expect=2).stderr
    assert "cannot read" in ultr("serve", tmp_path / "none.onnx", "--port", 0, expect=2).stderr
    assert "ultr export" in ultr("serve", tmp_path, "--port", 0, expect=2).stderr


def test_a_port_in_use_ends_in_one_sentence(model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        sentence = ultr("serve", model, "--port", taken.getsockname()[1], expect=2).stderr
    assert "Address already in use; give another --host or --port" in sentence

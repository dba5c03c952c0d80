"""The log of the service against what it answered: `python -m benchmarks.shown_log`.

Honest clients rank 100 candidates a request, each under an id of its own, and remember which ids were answered and
when. Then the folder of `--log-to` is read: every id that was answered must be there exactly once.

- *calm*: the service is told to stop (SIGTERM) while clients ask; nothing may be lost.
- *killed*: the service is killed (SIGKILL) under load and started again on the same folder, several times. Lists of the
  last second before a kill may be lost (`FLUSH_SECONDS`); the age of the oldest of them is printed.
- *full disk*: the folder is a file system of a megabyte. Ranking goes on, and the metrics count what is lost.

`python -m benchmarks.siege --log` asks the same under attack.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

import pyarrow.parquet as parquet
from tests.serving.ranker_file import write_ranker

from benchmarks.measurement import Measurement, write
from benchmarks.serving import HIDDEN, bodies, post, read_answer
from ultr.serving.journal import FLUSH_SECONDS

FEATURES = 46
_UNNAMED = b'"id": "query"'
"""How `bodies` names its queries."""


@dataclass
class Answers:
    """The ids that clients got an answer for, and the errors that they got instead."""

    at: dict[str, float] = field(default_factory=dict)
    """When an id was answered, in seconds of the clock."""
    errors: Counter[str] = field(default_factory=Counter)


def named(body: bytes, query_id: str) -> bytes:
    """A request of `bodies` as one that is logged under an id."""
    query = json.dumps({"id": query_id, "user_query": "red shoes", "shown": 10})[1:-1].encode()
    assert body.count(_UNNAMED) == 1
    return post(body.replace(_UNNAMED, query))


async def ask_until(port: int, requests: list[bytes], until: float, answers: Answers, name: str) -> None:
    """One request after the other on one connection, or on a new one after an error."""
    draw, connection, number = random.Random(name), None, 0
    while time.monotonic() < until:
        number += 1
        query_id = f"{name}-{number}"
        try:
            reader, writer = connection or await asyncio.open_connection("127.0.0.1", port)
            writer.write(named(draw.choice(requests), query_id))
            status, content = await read_answer(reader)
            connection = reader, writer
            if status == 200 and f'"query_id":"{query_id}"'.encode() in content.replace(b'": "', b'":"'):
                answers.at[query_id] = time.time()
            else:
                answers.errors[f"{status} {content[:80].decode()}"] += 1
        except (OSError, asyncio.IncompleteReadError) as error:
            answers.errors[type(error).__name__] += 1
            connection = None
            await asyncio.sleep(0.05)


def logged_ids(folder: Path) -> Counter[str]:
    """How often each query id is in the lists of a folder, whatever the format of its files."""
    found: Counter[str] = Counter()
    for path in sorted(folder.glob("ubi_queries*")):
        if path.suffix == ".parquet":
            found.update(parquet.read_table(path, columns=["query_id"])["query_id"].to_pylist())
        else:
            found.update(json.loads(line)["query_id"] for line in path.read_text().splitlines())
    return found


def missing_and_repeated(answered: Iterable[str], folder: Path) -> tuple[list[str], int]:
    """Answered ids that the log lacks, and how many ids it has more than once."""
    logged = logged_ids(folder)
    return [each for each in answered if not logged[each]], sum(count > 1 for count in logged.values())


class Served:
    """A running service that logs and explores."""

    def __init__(self, model: Path, folder: Path) -> None:
        command = [sys.executable, "-m", "ultr", "serve", str(model), "--port", "0"]
        self.process = subprocess.Popen(
            [*command, "--log-to", str(folder), "--explore", "swaps=0.05"], stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        self.port = int(json.loads(self.process.stderr.readline())["address"].rpartition(":")[2])

    def counted(self, result: str) -> int:
        """Lists of which the metrics say so."""
        text = urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30).read().decode()
        found = re.search(rf'ultr_shown_queries_total{{result="{result}"}} (\S+)', text)
        return int(float(found[1])) if found else 0


def ask(served: Served, requests: list[bytes], seconds: float, answers: Answers, name: str) -> None:
    """Let four clients ask for some time; answers are remembered, also of a service that ends meanwhile."""

    async def run() -> None:
        until = time.monotonic() + seconds
        await asyncio.gather(
            *(ask_until(served.port, requests, until, answers, f"{name}-{number}") for number in range(4))
        )

    asyncio.run(run())


def stop_later(served: Served, seconds: float, *, kill: bool) -> subprocess.Popen[bytes]:
    """A process that stops the service after some time, while its clients still ask."""
    signal = "KILL" if kill else "TERM"
    return subprocess.Popen(["sh", "-c", f"sleep {seconds}; kill -{signal} {served.process.pid}"])


def calm(model: Path, folder: Path, requests: list[bytes], seconds: float) -> list[Measurement]:
    """Stopped by SIGTERM under load."""
    answers, served = Answers(), Served(model, folder)
    stopping = stop_later(served, seconds, kill=False)
    ask(served, requests, seconds + 1, answers, "calm")
    stopping.wait(30)
    code = served.process.wait(60)
    missing, repeated = missing_and_repeated(answers.at, folder)
    return [
        Measurement("SIGTERM: lists answered", len(answers.at), ""),
        Measurement("SIGTERM: answered and not in the log", len(missing), "", headline=True),
        Measurement("SIGTERM: more than once in the log", repeated, "", headline=True),
        Measurement("SIGTERM: exit code", code, ""),
    ]


def killed(model: Path, folder: Path, requests: list[bytes], seconds: float, times: int) -> list[Measurement]:
    """Killed under load some times, and started again on the same folder."""
    answers, ends = Answers(), []
    for number in range(times):
        served = Served(model, folder)
        stopping = stop_later(served, seconds, kill=True)
        ask(served, requests, seconds + 1, answers, f"killed-{number}")
        stopping.wait(30)
        served.process.wait(60)
        ends.append(max((at for each, at in answers.at.items() if each.startswith(f"killed-{number}-")), default=0.0))
    last = Served(model, folder)
    last.process.terminate()
    last.process.wait(60)
    missing, repeated = missing_and_repeated(answers.at, folder)
    ages = [min(end - answers.at[each] for end in ends if end >= answers.at[each]) for each in missing]
    return [
        Measurement("SIGKILL: times", times, ""),
        Measurement("SIGKILL: lists answered", len(answers.at), ""),
        Measurement("SIGKILL: answered and not in the log", len(missing), "", headline=True),
        Measurement(f"SIGKILL: age of the oldest lost (at most {FLUSH_SECONDS:g})", max(ages, default=0.0), "s"),
        Measurement("SIGKILL: more than once in the log", repeated, "", headline=True),
    ]


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """A file system of a megabyte at a folder; False where this process may not mount one."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True)
    try:
        yield mounted.returncode == 0
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", str(folder)], check=True)


def full_disk(model: Path, folder: Path, requests: list[bytes], seconds: float) -> list[Measurement]:
    """A disk that is full after a moment."""
    with small_disk(folder) as is_small:
        if not is_small:
            print("full disk: not measured, this process may not mount a small file system")
            return []
        answers, served = Answers(), Served(model, folder)
        ask(served, requests, seconds, answers, "full")
        time.sleep(2 * FLUSH_SECONDS)
        lost, logged = served.counted("disk"), served.counted("logged")
        served.process.terminate()
        served.process.wait(60)
        missing, repeated = missing_and_repeated(answers.at, folder)
    return [
        Measurement("full disk: lists answered", len(answers.at), ""),
        Measurement("full disk: errors of clients", sum(answers.errors.values()), "", headline=True),
        Measurement("full disk: lost by the metrics", lost, ""),
        Measurement("full disk: answered and not in the log", len(missing), ""),
        Measurement("full disk: answered, neither counted as logged nor as lost", len(answers.at) - lost - logged, ""),
        Measurement("full disk: more than once in the log", repeated, "", headline=True),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10, help="of each stage, and until each kill; %(default)s")
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        names = [f"feature_{number}" for number in range(FEATURES)]
        model = write_ranker(folder / "model.onnx", names, hidden=HIDDEN)
        requests = bodies(model, by_name=False)
        found = [
            *calm(model, folder / "calm", requests, arguments.seconds),
            *killed(model, folder / "killed", requests, arguments.seconds, arguments.kills),
            *full_disk(model, folder / "full", requests, arguments.seconds),
        ]
    for each in found:
        print(each)
    write(found, arguments.json)


if __name__ == "__main__":
    main()

"""What the log, exploration, a second model and its shadow cost a request, as ratios in one run.

    python -m benchmarks.loop_cost                      # ten rounds of 3 seconds for each
    python -m benchmarks.loop_cost --seconds 2 --rounds 4

Services with random rankers of 512-256-128 stand side by side, one without a log and the others with one thing more
each. In every round each of them is loaded for some seconds in turn, in an order that changes, by four connections
that send one request after the other, with 100 candidates and the user's query. A ratio is that of a service to the
first over all rounds, with that of every second round and of the others behind it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
from tests.serving.ranker_file import write_ranker

from benchmarks.measurement import Measurement, write
from benchmarks.serving import CANDIDATES, HIDDEN, post, processor_seconds, run_clients, start
from ultr.arrays import Doubles

CONNECTIONS, DIFFERENT = 4, 50
QUANTITIES = {"rate": "requests a second", "p50": "p50", "p99": "p99", "processor": "processor time of a request"}


@dataclass
class Contender:
    """A running service and what was measured of it, a value for each round."""

    name: str
    process: subprocess.Popen[str]
    port: int
    times: list[Doubles] = field(default_factory=list)
    """Milliseconds of every request, an array for each round."""
    seconds: list[float] = field(default_factory=list)
    """Processor time of each round."""
    errors: int = 0

    def run(self, requests: list[bytes], seconds: float) -> None:
        ours, theirs = multiprocessing.Pipe()
        arguments: tuple[Any, ...] = (self.port, requests, seconds, CONNECTIONS, theirs)
        spent = processor_seconds(self.process.pid)
        child = multiprocessing.get_context("spawn").Process(target=run_clients, args=arguments, daemon=True)
        child.start()
        errors, times = _received(ours)
        child.join()
        spent = processor_seconds(self.process.pid) - spent
        self.errors += errors
        self.times.append(np.array(times) * 1e3)
        self.seconds.append(spent)

    def measured(self, seconds: float, rounds: slice) -> dict[str, float]:
        """What some of the rounds gave together."""
        times = np.concatenate(self.times[rounds])
        return {
            "rate": len(times) / seconds / len(self.times[rounds]),
            "p50": float(np.percentile(times, 50)),
            "p99": float(np.percentile(times, 99)),
            "processor": sum(self.seconds[rounds]) / len(times) * 1e3,
        }

    def counted(self, name: str) -> float:
        with urlopen(f"http://127.0.0.1:{self.port}/metrics") as answer:
            found = re.findall(rf"^{re.escape(name)} ([0-9.e+]+)$", answer.read().decode(), re.MULTILINE)
        return float(found[0])


def _received(connection: Connection) -> tuple[int, list[float]]:
    found: tuple[int, list[float]] = connection.recv()
    return found


def bodies(features: int) -> list[bytes]:
    """Requests without an id, so that each is a list of its own."""
    draw = np.random.default_rng(0)
    found = []
    for number in range(DIFFERENT):
        rows = draw.normal(size=(CANDIDATES, features)).round(6).tolist()
        candidates = [{"id": f"doc-{index}", "features": row} for index, row in enumerate(rows)]
        found.append(
            post(json.dumps({"queries": [{"user_query": f"query {number}", "candidates": candidates}]}).encode())
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, default=46)
    parser.add_argument("--seconds", type=float, default=3.0, help="for each service in each round")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        names = [f"feature_{number}" for number in range(asked.features)]
        model = write_ranker(Path(folder) / "old.onnx", names, hidden=HIDDEN)
        rival = str(write_ranker(Path(folder) / "new.onnx", names, hidden=HIDDEN, seed=1))
        ways = {
            "no log": [],
            "log": ["--log-to", f"{folder}/log"],
            "log, explored 5 %": ["--log-to", f"{folder}/explored", "--explore", "swaps=0.05"],
            "log, interleaved 5 %": ["--log-to", f"{folder}/interleaved", "--interleave", rival],
            "shadow": ["--shadow", rival],
        }
        contenders = [Contender(name, *start(model, ["--threads", "2", *options])) for name, options in ways.items()]
        try:
            requests = bodies(asked.features)
            for contender in contenders:
                contender.run(requests, 2.0)
                contender.times.clear()
                contender.seconds.clear()
            for number in range(asked.rounds):
                turn = number % len(contenders)
                for contender in [*contenders[turn:], *contenders[:turn]]:
                    contender.run(requests, asked.seconds)
            found = report(contenders, asked.seconds)
            print(f"load average {os.getloadavg()[0]:.1f}, errors {sum(each.errors for each in contenders)}")
            logged = contenders[1].counted('ultr_shown_queries_total{result="logged"}')
            drafted = contenders[3].counted('ultr_interleaved_queries_total{result="shown"}')
            slow = contenders[3].counted('ultr_interleaved_queries_total{result="slow"}')
            compared = contenders[4].counted('ultr_shadow_queries_total{result="compared"}')
            dropped = contenders[4].counted('ultr_shadow_queries_total{result="dropped"}')
            print(
                f"{logged:,.0f} lists logged; {drafted:,.0f} interleaved and {slow:,.0f} too slow for it; "
                f"{compared:,.0f} compared in the shadow and {dropped:,.0f} dropped"
            )
        finally:
            for contender in contenders:
                contender.process.terminate()
                contender.process.wait(30)
    write(found, asked.json)


def report(contenders: list[Contender], seconds: float) -> list[Measurement]:
    parts = (slice(None), slice(0, None, 2), slice(1, None, 2))
    measured = {each.name: [each.measured(seconds, part) for part in parts] for each in contenders}
    first, found = measured[contenders[0].name], []
    print(f"| | {' | '.join(QUANTITIES.values())} |\n|---|{'---|' * len(QUANTITIES)}")
    plain = [f"{first[0][name]:.1f} {'/s' if name == 'rate' else 'ms'}" for name in QUANTITIES]
    print(f"| {contenders[0].name} | {' | '.join(plain)} |")
    for contender in contenders[1:]:
        cells = []
        for name, what in QUANTITIES.items():
            ratios = [mine[name] / without[name] for mine, without in zip(measured[contender.name], first, strict=True)]
            low, high = sorted(ratios[1:])
            cells.append(f"{ratios[0]:.2f} ({low:.2f}, {high:.2f})")
            label = f"{contender.name}: {what}, to that without"
            found.append(Measurement(label, ratios[0], "times", low, high, headline=name == "processor"))
        print(f"| {contender.name} | {' | '.join(cells)} |", flush=True)
    return found


if __name__ == "__main__":
    main()

"""The largest body that is allowed, filled with whatever costs the most: processor time, memory, and who waits for it.

    python -m benchmarks.worst_bodies --features 136

Each body goes to a service of its own, which a probe asks for `/health` on a kept connection meanwhile.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path

import httpx
from tests.serving.ranker_file import write_ranker
from tests.serving.service import running

from benchmarks.measurement import Measurement, write
from benchmarks.serving import HIDDEN, processor_seconds
from benchmarks.siege import MOST_BYTES, peak_mib

QUERIES, CANDIDATES, FEATURES = (
    b'{"queries":[',
    b'{"queries":[{"candidates":[',
    b'{"queries":[{"candidates":[{"features":[',
)
JSON = {"Content-Type": "application/json"}


def worst_bodies(features: int) -> dict[str, bytes]:
    """Bodies by what they are full of."""
    parts = {
        "numbers as candidates": (CANDIDATES, b"1,", b"1]}]}"),
        "queries without anything": (QUERIES, b"{},", b"{}]}"),
        "queries without candidates": (QUERIES, b'{"candidates":[]},', b'{"candidates":[]}]}'),
        "wrong ids": (CANDIDATES, b'{"id":[],"features":[]},', b"{}]}]}"),
        "features, small": (FEATURES, b"1,", b"1]}]}]}"),
        "features, large": (FEATURES, b"1e9,", b"1]}]}]}"),
        "features, arrays": (FEATURES, b"[],", b"1]}]}]}"),
        "features, texts": (FEATURES, '"äb",'.encode(), b"1]}]}]}"),
        "open brackets": (b"", b"[", b""),
        "quotes": (CANDIDATES, b'"', b""),
        "escaped quotes": (CANDIDATES + b'"', rb"\"", b""),
    }
    found = {
        name: start + part * ((MOST_BYTES - len(start + end)) // len(part)) + end
        for name, (start, part, end) in parts.items()
    }
    keys = b",".join(b'"%x":1' % number for number in range(700_000))
    row = b",".join([b"0.25"] * features)
    named = b",".join(b'"f%d":0.25' % number for number in range(features))
    for name, each in (("a right request, arrays", b"[" + row + b"]"), ("a right request, names", b"{" + named + b"}")):
        candidates = [b'{"id":"%d","features":' % number + each + b"}" for number in range(10_000)]
        fits = min(len(candidates), (MOST_BYTES - 100) // (len(candidates[-1]) + 1))
        found[name] = CANDIDATES + b",".join(candidates[:fits]) + b"]}]}"
    return found | {"keys that are not known": CANDIDATES + b"{" + keys + b"}]}]}"}


def measure(model: Path, body: bytes, features: int) -> tuple[int, float, float, float]:
    """Status, processor seconds, the longest wait for `/health`, and how far the peak of memory rose."""
    with (
        running(model, "--max-candidates", 10_000) as service,
        httpx.Client(base_url=service.url, timeout=60) as client,
    ):
        client.post("/rank", json={"queries": [{"candidates": [{"features": [1] * features}]}]})
        waits, done = [0.0], threading.Event()

        def probe() -> None:
            with httpx.Client(base_url=service.url, timeout=60) as kept:
                while not done.is_set():
                    started = time.perf_counter()
                    kept.get("/health")
                    waits.append(time.perf_counter() - started)

        pid, prober = service.process.pid, threading.Thread(target=probe)
        spent, peak = processor_seconds(pid), peak_mib(pid)
        prober.start()
        status = client.post("/rank", content=body, headers=JSON).status_code
        done.set()
        prober.join()
        found = status, processor_seconds(pid) - spent, max(waits), peak_mib(pid) - peak
        service.stop()
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    arguments = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        names = [f"f{number}" for number in range(arguments.features)]
        model = write_ranker(Path(folder) / "model.onnx", names, hidden=HIDDEN)
        for name, body in worst_bodies(arguments.features).items():
            status, spent, wait, memory = measure(model, body, arguments.features)
            print(
                f"{name:>28} {status} {spent:6.2f} processor s, /health {wait:5.2f} s, +{memory:4.0f} MiB", flush=True
            )
            found.append(Measurement(f"wait for /health, {name}", wait, "s"))
            found.append(Measurement(f"memory, {name}", memory, "MiB"))
    write(found, arguments.json)


if __name__ == "__main__":
    main()

"""`ultr update` killed at any moment: `python -m benchmarks.killed_updates --kills 20`.

A run takes in a day once without a kill. Then, each time from the same beginning, the same command is killed (SIGKILL)
after a random part of that time. At that moment the served file must be the old one or the new one, whole, and the
ledger must be readable. The command is called again, and in the end the served file and the decision must be those of
the run that nobody killed, bit for bit.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.updating.days import SECOND, new_run

from benchmarks.measurement import Measurement, write
from ultr.updating import RunFolder

SERVED, DONE = "served.onnx", "done already"


def started(folder: Path) -> subprocess.Popen[str]:
    """The command on the run of a folder."""
    command = [sys.executable, "-m", "ultr", "update", str(folder / "run"), "--log-day", SECOND, "--quiet"]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def decided(folder: Path) -> tuple[int, str, str]:
    """The number of the last entry of the ledger, its decision and its model."""
    entry = RunFolder(folder / "run").ledger().entries[-1]
    return entry.number, entry.decision, entry.model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        start, whole, trial = (Path(name) / each for each in ("start", "whole", "trial"))
        new_run(start)
        shutil.copytree(start, whole)
        begun = time.monotonic()
        with started(whole) as process:
            assert process.wait() == 0, "the run that nobody kills"
        seconds = time.monotonic() - begun
        old, new, wanted = (start / SERVED).read_bytes(), (whole / SERVED).read_bytes(), decided(whole)
        assert old != new, "the new ranker is served"
        counts = dict.fromkeys(("before the decision", "after it", "half a file served", "another end"), 0)
        for _ in range(options.kills):
            shutil.copytree(start, trial)
            with started(trial) as process:
                time.sleep(draw.uniform(0, seconds))
                process.kill()
            counts["half a file served"] += (trial / SERVED).read_bytes() not in (old, new)
            counts["after it" if decided(trial) == wanted else "before the decision"] += 1
            with started(trial) as process:
                _, said = process.communicate()
            ended = process.returncode == 0 or DONE in said
            counts["another end"] += not ended or (trial / SERVED).read_bytes() != new or decided(trial) != wanted
            shutil.rmtree(trial)
    found = [
        Measurement("kills", options.kills, ""),
        Measurement("seconds without a kill", seconds, "s"),
        *(Measurement(what, count, "") for what, count in counts.items()),
    ]
    for each in found:
        print(each)
    write(found, options.json)
    if counts["half a file served"] or counts["another end"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()

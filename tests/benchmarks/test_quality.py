from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.quality import Outcome, row


def _outcome(recipe: str, seed: int, seconds: float, curve: list[tuple[float, float]], test: float = 0.5) -> Outcome:
    return Outcome("letor-like", "trust", "dla", recipe, seed, [8], seconds, test, curve)


def test_a_value_is_reached_at_the_first_look_that_is_as_good() -> None:
    outcome = _outcome("fast", 0, 9.0, [(2.0, 0.5), (4.0, 0.7), (6.0, 0.8), (8.0, 0.6)])
    assert (outcome.end, outcome.best) == (0.6, 0.8)
    assert [outcome.until(target) for target in (0.5, 0.6, 0.7, 0.8, 0.81)] == [2.0, 4.0, 4.0, 6.0, None]


def test_time_to_quality_is_told_by_seed_against_the_run_of_the_paper_on_the_same_log() -> None:
    ours = [_outcome("fast", 0, 8.0, [(2.0, 0.7)], 0.6), _outcome("fast", 1, 8.0, [(4.0, 0.5), (6.0, 0.9)], 0.8)]
    paper = [_outcome("paper", 0, 20.0, [(20.0, 0.6)]), _outcome("paper", 1, 40.0, [(20.0, 0.8), (40.0, 0.4)])]
    line, measurements = row("dla", list(zip(ours, paper, strict=True)))
    values = {each.name.partition(": ")[2]: each for each in measurements}
    for target, second in (("end", 4 / 40), ("best", 6 / 40)):
        share = values[f"time to the paper's {target}, of its time"]
        assert (share.value, share.low, share.high) == ((2 / 20 + second) / 2, 2 / 20, second)
    assert values["whole run, of the paper's"].value == (8 / 20 + 8 / 40) / 2
    assert values["test nDCG@10, ours"].value == 0.7
    # With the second seed, the paper has its last value at half of its time.
    assert values["the paper's own time to its end, of its time"].value == (20 / 20 + 20 / 40) / 2
    assert line.startswith("| dla | 3.0 | 10% | 75% | 4.0 | 12% | 8.0 | 30% |")


def test_a_quality_that_is_not_reached_is_said_so() -> None:
    line, measurements = row(
        "dla", [(_outcome("fast", 0, 8.0, [(2.0, 0.5)]), _outcome("paper", 0, 20.0, [(9.0, 0.6), (20.0, 0.4)]))]
    )
    assert "| 2.0 | 10% | 45% | reached in 0 of 1 |" in line
    assert [each.name for each in measurements if "time to the paper's best" in each.name] == []


def test_finished_runs_are_kept_and_not_run_again(tmp_path: Path) -> None:
    runs, numbers = tmp_path / "runs.jsonl", tmp_path / "numbers.json"
    outcomes = [
        {"data": data, "clicks": "trust", "method": "click", "recipe": recipe, "seed": 0, "hidden": [64, 32]}
        | {"seconds": seconds, "test": 0.5, "curve": [[seconds / 2, 0.6]]}
        for data, factor in (("letor-like=10000", 1), ("letor-like=500", 100))
        for recipe, seconds in (("fast", 2.0 * factor), ("paper", 10.0))
    ]
    runs.write_text("".join(json.dumps(each) + "\n" for each in outcomes))
    command = ["-m", "benchmarks.quality", "--methods", "click", "--clicks", "trust", "--runs", str(runs)]
    done = subprocess.run(
        [sys.executable, *command, "--json", str(numbers)], capture_output=True, text=True, check=True, timeout=60
    )
    assert (
        "| click | 1.0 | 10% | 50% | 1.0 | 10% | 2.0 | 20% | 0.600 | 0.600 | 0.600 | 0.500 | 0.500 | 1 |" in done.stdout
    )
    assert len(json.loads(numbers.read_text())) == 6

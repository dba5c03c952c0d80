from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ultr.data.bias_factor import position_factor
from ultr.data.click_log import ClickLog

LISTS, LENGTH, FEATURES = 400_000, 10, 4
_WITHIN_A_LIMIT = """
import resource, sys
from pathlib import Path
import torch
from ultr.data import gathering
from ultr.data.click_log import ClickLog
from ultr.methods import Vectorization
from ultr.relevance import MLP, inputs

torch.set_num_threads(1)
gathering.LARGE = inputs.IN_MEMORY = 2**20
small, large, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])

def fit(folder):
    train, held_out = ClickLog.load(folder).split(0.1)
    ranker = Vectorization(relevance=MLP(hidden=(8,), steps=20), base_steps=10, evaluate_every=10)
    return ranker.fit(train, validation=held_out)

fit(small)
lines = Path("/proc/self/status").read_text().splitlines()
used = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (used + limit, -1))
print(fit(large).history_[-1].value)
"""


def _log(lists: int) -> ClickLog:
    random = np.random.default_rng(0)
    shown = lists * LENGTH
    return ClickLog(
        features=random.normal(size=(shown, FEATURES)).astype(np.float32),
        documents=np.arange(shown),
        offsets=np.arange(lists + 1) * LENGTH,
        factors=(position_factor(np.tile(np.arange(LENGTH) + 1, lists)),),
        impressions=random.integers(1, 9, size=lists),
        clicks=(random.random(shown) < 0.2).astype(np.int64),
        queries=np.arange(lists) % 1_000,
        query_ids=np.arange(1_000).astype(np.str_),
        feature_names=tuple("abcd"),
    )


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the memory of a process")
def test_training_on_a_large_log_takes_a_fraction_of_its_size_in_memory(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    _log(2_000).save(small)
    _log(LISTS).save(large)
    size = sum(path.stat().st_size for path in large.iterdir())
    command = [sys.executable, "-c", _WITHIN_A_LIMIT, str(small), str(large), str(size // 4)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert np.isfinite(float(done.stdout))

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ultr.data.bias_factor import position_factor
from ultr.data.click_log import ClickLog

LENGTH, LISTS, CHOICE = 10, 4, 20
_WITHIN_A_LIMIT = """
import resource, sys
from pathlib import Path
import numpy as np
from ultr.bias import ResampledPropensities, identities, position_based_fit, predictability
from ultr.data import gathering, ragged, row_blocks
from ultr.data.click_log import ClickLog
from ultr.diagnosis import diagnose
from ultr.evaluation import compare, placement
from ultr.metrics import intervals

# All that takes a fixed amount of memory, whatever the log, takes little.
sys.modules["ultr.evaluation.trial"].AT_ONCE = 2**6
gathering.LARGE = placement._VALUES = identities._VALUES = predictability._CHUNK = intervals._CHUNK = 2**16
ragged.SPAN = row_blocks.BLOCK = row_blocks._BINS = position_based_fit._DENSE = 2**13
sys.modules["ultr.bias.scalar_test"].MOST_ROWS = sys.modules["ultr.evaluation.halves"].MOST_SHOWN = 2**13
sys.modules["ultr.bias.linear_inputs"].MOST_LISTS = 2**10
ResampledPropensities.of_log.__func__.__kwdefaults__["samples"] = 20
what, small, large, limit = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])

class Feature:
    def __init__(self, number):
        self.number = number

    def score(self, features, offsets):
        return features[:, self.number]

    def click_shares(self, log):
        return np.broadcast_to(0.1, log.documents.shape)

    click_probabilities = click_shares

def answer(folder):
    log = ClickLog.load(folder)
    if what == "diagnose":
        return diagnose(log, samples=5, draws=19).position_bias.best.values[-1]
    return compare(Feature(1), Feature(0), log).value.difference.mean

answer(small)
lines = Path("/proc/self/status").read_text().splitlines()
used = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData"))
resource.setrlimit(resource.RLIMIT_DATA, (used + limit, -1))
print(answer(large))
"""


def _log(queries: int) -> ClickLog:
    """Queries with four lists each, of ten out of twenty documents in any order, and position-based clicks."""
    random = np.random.default_rng(0)
    lists = queries * LISTS
    order = random.random((lists, CHOICE)).argsort(axis=1)[:, :LENGTH]
    numbers = np.arange(queries).repeat(LISTS)
    documents = (numbers[:, None] * CHOICE + order).reshape(-1)
    features = random.normal(size=(queries * CHOICE, 2)).astype(np.float32)
    relevance = 0.5 / (1 + np.exp(-features[:, 0].astype(np.float64)))
    return ClickLog(
        features=features,
        documents=documents,
        offsets=np.arange(lists + 1) * LENGTH,
        factors=(position_factor(np.tile(np.arange(LENGTH) + 1, lists)),),
        impressions=np.full(lists, 10),
        clicks=random.binomial(10, relevance[documents] / np.tile(np.arange(LENGTH) + 1, lists)),
        queries=numbers,
        query_ids=np.arange(queries).astype(np.str_),
        feature_names=("a", "b"),
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the limit on data counts what we mean on Linux only")
@pytest.mark.parametrize("what", ["diagnose", "compare"])
def test_a_large_log_is_examined_in_a_fraction_of_its_size(tmp_path: Path, what: str) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    _log(500).save(small)
    _log(20_000).save(large)
    size = sum(path.stat().st_size for path in large.iterdir())
    command = [sys.executable, "-c", _WITHIN_A_LIMIT, what, str(small), str(large), str(size // 2)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert np.isfinite(float(done.stdout))
